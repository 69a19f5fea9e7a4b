"""The Store as a user has it: every value comes back, damage is named, nothing whole is ever lost."""

from __future__ import annotations

import collections
import math
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import stoker
from stoker import _native
from stoker._model_keys import bare_names
from stoker.store import Store, adapt_keys

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")


def same(a: Any, b: Any) -> bool:
    """Equal bit for bit and type by type."""
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        flat = [t.detach().contiguous().reshape(-1).view(torch.uint8) for t in (a, b)]
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(*flat)
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple, collections.deque)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float):
        return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (math.isnan(a) and math.isnan(b))
    return bool(a == b)


def round_trip(dir: Path, **state: Any) -> Any:
    with Store(dir) as store:
        store.save(1, **state)
        store.wait()
        return store.load()


VALUES = {
    "none": None,
    "bools": [True, False],
    "ints": [0, -1, 2**53, 2**53 + 1, -(2**63), 2**200, -(2**200), 3**20_000],
    "floats": [0.0, -0.0, 1e-310, 0.1, 1.7976931348623157e308, math.inf, -math.inf, math.nan],
    "strings": ["", "leaf", "Blätter \u0000 \U0001f33f", "\ud800 lone", '"$"'],
    "bytes": [b"", b"\x00\xff", bytearray(b"abc")],
    "tuples": [(), (1, (2, [3]))],
    "int keys": {0: "a", -5: "b", (1, 2): "c", None: "d", 1.5: "e"},
    "dollar": {"$": "tensor", "v": "not one"},
    "ordered": collections.OrderedDict(b=1, a=2),
    "counter": collections.Counter("abracadabra"),
    "default": collections.defaultdict(list, {"x": [1]}),
    "deque": collections.deque([1, 2, 3], maxlen=5),
    "sets": [{1, 2}, frozenset("ab")],
    "complex": [1 + 2j, complex(math.inf, -0.0)],
    "numpy": [
        np.float32(1.1),
        np.int64(-3),
        np.bool_(True),
        np.float64(math.inf),
        np.str_("é"),
        np.uint8(255),
    ],
    "torch": [torch.Size([2, 3]), torch.bfloat16, torch.device("cuda:1")],
    "random": random.Random(3).getstate(),
    "generator": np.random.default_rng(3).bit_generator.state,
    "legacy": np.random.RandomState(3).get_state(),
}


@pytest.mark.parametrize("name", VALUES)
def test_value_comes_back_equal_and_of_its_type(tmp_path: Path, name: str) -> None:
    assert same(round_trip(tmp_path, value=VALUES[name])["value"], VALUES[name])


TORCH_DTYPES = [
    "float64",
    "float32",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint64",
    "uint32",
    "uint16",
    "uint8",
    "bool",
    "complex64",
    "complex128",
    "complex32",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
]


@pytest.mark.parametrize("name", TORCH_DTYPES)
@pytest.mark.parametrize("shape", [(3, 5), (), (0, 4), (1,)])
def test_torch_dtype_comes_back_bit_for_bit(tmp_path: Path, name: str, shape: tuple[int, ...]) -> None:
    dtype = getattr(torch, name, None)
    if dtype is None:
        pytest.skip(f"this torch has no {name}")
    raw = torch.randint(0, 2 if name == "bool" else 256, (*shape, torch.empty(0, dtype=dtype).element_size()))
    tensor = raw.to(torch.uint8).reshape(-1).view(dtype).reshape(shape)
    assert same(round_trip(tmp_path, t=tensor)["t"], tensor)


@pytest.mark.parametrize(
    "text",
    [
        "<f8",
        "<f4",
        "<f2",
        "<i8",
        "<i2",
        "|i1",
        "<u8",
        "|u1",
        "|b1",
        "<c8",
        "<c16",
        ">f4",
        ">i8",
        "<M8[s]",
        "<U5",
        "|S3",
    ],
)
def test_numpy_dtype_comes_back_bit_for_bit(tmp_path: Path, text: str) -> None:
    array = np.frombuffer(bytes(range(240)), dtype=np.uint8)
    array = (array % 2 if text == "|b1" else array % 64)[: 6 * np.dtype(text).itemsize]
    array = np.zeros(6, text) if text[1] in "US" else array.view(text)
    loaded = round_trip(tmp_path, a=array.reshape(2, 3), zero=array[0:1].reshape(()), none=array[:0])
    assert same(loaded["a"], array.reshape(2, 3))
    assert same(loaded["zero"], array[0:1].reshape(()))
    assert same(loaded["none"], array[:0])


def test_layouts_survive(tmp_path: Path) -> None:
    x = torch.randn(2, 3, 4, 5)
    last = x.to(memory_format=torch.channels_last)
    fortran = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    loaded = round_trip(
        tmp_path, t=x.transpose(0, 3), step=x[:, ::2], last=last, wide=x[0].expand(9, 3, 4, 5), f=fortran
    )
    assert torch.equal(loaded["t"], x.transpose(0, 3))
    assert loaded["t"].stride() == x.transpose(0, 3).stride()
    assert torch.equal(loaded["step"], x[:, ::2])
    assert loaded["last"].is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(loaded["wide"], x[0].expand(9, 3, 4, 5))
    assert loaded["f"].flags.f_contiguous
    assert same(loaded["f"], fortran)


def test_tied_tensors_are_saved_once_and_stay_tied(tmp_path: Path) -> None:
    embedding = torch.nn.Embedding(1000, 64)
    head = torch.nn.Linear(64, 1000, bias=False)
    head.weight = embedding.weight
    flat = torch.arange(100.0)
    loaded = round_trip(
        tmp_path,
        model={"e": embedding.state_dict(), "h": head.state_dict()},
        a=flat[:60],
        b=flat[40:].view(6, 10),
    )
    assert loaded.info.size_bytes == 1000 * 64 * 4 + 100 * 4
    assert loaded["model"]["e"]["weight"].data_ptr() == loaded["model"]["h"]["weight"].data_ptr()
    loaded["a"][50] = -1
    assert loaded["b"][1, 0] == -1
    assert torch.equal(loaded["b"].reshape(-1)[20:], flat[60:])


def test_loaded_tensors_outlive_their_file(tmp_path: Path) -> None:
    loaded = round_trip(tmp_path / "s", t=torch.arange(1000))
    for file in (tmp_path / "s").rglob("*.safetensors"):
        file.write_bytes(b"")
        file.unlink()
    assert torch.equal(loaded["t"], torch.arange(1000))
    loaded["t"][0] = 7


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (torch.empty(2, device="meta"), "'model.x' is on the meta device"),
        (torch.eye(3).to_sparse(), "'model.x' is a sparse tensor"),
        (torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8), "'model.x' is a quantised tensor"),
        (np.array([object()]), "'model.x' is a NumPy value of dtype object"),
        (object(), "'model.x' is a builtins.object, which is not stored"),
        (lambda: 0, "'model.x' is a builtins.function"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_stored_is_refused_by_name(tmp_path: Path, value: Any, words: str) -> None:
    with Store(tmp_path) as store:
        with pytest.raises(stoker.BadInputError, match=words):
            store.save(1, model={"x": value})
        assert store.list() == []
        assert sorted(p.name for p in tmp_path.iterdir()) == ["lock"]


def test_a_state_that_holds_itself_is_refused(tmp_path: Path) -> None:
    loop: list[Any] = []
    loop.append(loop)
    with Store(tmp_path) as store, pytest.raises(stoker.BadInputError, match="refers to itself"):
        store.save(1, loop=loop)


def test_files_open_in_safetensors(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    state = {
        "w": torch.randn(3, 4),
        "h": torch.randn(5).bfloat16(),
        "n": torch.tensor(7),
        "b": torch.tensor([True]),
    }
    round_trip(tmp_path, model=state)
    opened = safetensors.load_file(next(tmp_path.rglob("*.safetensors")))
    assert {name: same(tensor, state[name.removeprefix("model.")]) for name, tensor in opened.items()} == {
        f"model.{name}": True for name in state
    }


def test_flipped_byte_is_named_and_the_newest_whole_one_loaded(tmp_path: Path, caplog: Any) -> None:
    with Store(tmp_path, keep=stoker.Keep(last=0)) as store:
        for step in (9, 10):
            store.save(step, model={"w": torch.randn(64), "v": torch.randn(64)})
        store.wait()
        part = tmp_path / "step-10/part-10.safetensors"
        raw = bytearray(part.read_bytes())
        raw[-1] ^= 1
        part.write_bytes(raw)
        with pytest.raises(
            stoker.CorruptError, match=r"tensor model\.v fails its hash\n.*part-10.*offset 4352"
        ):
            store.load(10)
        loaded = store.load()
        assert loaded.step == 9
        assert [damaged.step for damaged in loaded.skipped] == [10]
        assert "model.v" in loaded.skipped[0].why
        assert "passed over" in caplog.text
        assert [damaged.step for damaged in store.verify()] == [10]
        assert store.verify(9) == []


def test_resumed_run_saves_again_where_a_damaged_step_was(tmp_path: Path) -> None:
    with Store(tmp_path, keep=stoker.Keep(last=0)) as store:
        store.save(1, x=1)
        store.save(2, x=2, t=torch.ones(3))
        store.wait()
        (tmp_path / "step-2/part-2.safetensors").write_bytes(b"short")
        with pytest.raises(stoker.BadInputError, match="step-1 exists already, and is whole"):
            store.save(1, x=5)
        store.save(2, x=3)
        store.wait()
        assert store.load().step == 2
        assert store.load()["x"] == 3
        assert (tmp_path / "damaged-step-2").is_dir()


def test_an_emergency_stands_beside_and_is_never_the_latest(tmp_path: Path) -> None:
    with Store(tmp_path, keep=stoker.Keep(last=1)) as store:
        store.save(5, x="boundary")
        store.save(5, pin="emergency", exact=False, x="torn")
        store.save(6, x="next")
        store.wait()
        assert store.latest == 6
        assert store.load(pin="emergency")["x"] == "torn"
        assert store.load(5)["x"] == "torn"
        assert [(c.step, c.pin) for c in store.list()] == [(5, "emergency"), (6, None)]


def test_nan_never_wins_best(tmp_path: Path) -> None:
    with Store(tmp_path, keep=stoker.Keep(last=1, best="loss", mode="min")) as store:
        for step, loss in enumerate([0.5, 0.2, math.nan, 0.2]):
            store.save(step, metrics={"loss": loss}, x=step)
        store.wait()
        assert store.best == 1
        assert store.load("best")["x"] == 1
        assert [c.step for c in store.list()] == [1, 3]


def test_nothing_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(stoker.Error, match="absent"):
        Store(tmp_path / "absent", read_only=True)
    with Store(tmp_path) as store:
        assert store.latest is None
        with pytest.raises(stoker.BadInputError, match="has no checkpoint") as caught:
            store.load()
        assert caught.value.code == "not-found"


def test_numpy_states_need_no_torch(tmp_path: Path) -> None:
    code = """
import sys
sys.modules["torch"] = None
import numpy as np, stoker
with stoker.Store(sys.argv[1]) as store:
    store.save(1, a=np.arange(5), lr=0.1)
    store.wait()
    assert store.load()["a"].tolist() == [0, 1, 2, 3, 4]
try:
    stoker.Store(sys.argv[2], read_only=True).load()
except stoker.BadInputError as error:
    print(error)
"""
    round_trip(tmp_path / "torch", t=torch.ones(2))
    command = [sys.executable, "-c", code, str(tmp_path / "numpy"), str(tmp_path / "torch")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "cannot be had without torch" in done.stdout
    assert "hint: install torch" in done.stdout


def test_a_state_whose_json_lies_is_corrupt_and_takes_no_memory(tmp_path: Path) -> None:
    round_trip(tmp_path, t=torch.randn(4, 6).t())
    manifest = tmp_path / "step-1/manifest.json"
    good = manifest.read_bytes()[:-35]
    for lie in (
        b'"stride":[1,1000000000000]',
        b'"stride":[1]',
        b'"view":{"dtype":"float32","offset_bytes":0,"shape":[1000000000000],"stride":[0]}',
        b'"view":{"dtype":"float64","offset_bytes":64,"shape":[90],"stride":[1]}',
        b'"view":{"dtype":"nn","offset_bytes":0,"shape":[1],"stride":[1]}',
    ):
        forged = good.replace(b'"stride":[1,6]', lie)
        assert forged != good
        manifest.write_bytes(forged + _native.hash_hex(forged).encode() + b'"}\n')
        if b"[0]" in lie:  # a view of one element, many times: legal, and costs nothing
            assert Store(tmp_path, read_only=True).load()["t"].numel() == 10**12
            continue
        with pytest.raises(stoker.CorruptError, match="cannot be put together"):
            Store(tmp_path, read_only=True).load()


def test_wrapped_models_load_either_way() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)).state_dict()
    for prefix in ("module.", "_orig_mod.", "module._orig_mod."):
        wrapped = {prefix + key: value for key, value in model.items()}
        assert list(adapt_keys(wrapped, model)) == list(model)
        assert list(adapt_keys(model, wrapped)) == list(wrapped)
    inner = {key.replace("0.", "0._orig_mod."): value for key, value in model.items()}
    assert list(adapt_keys(inner, model)) == list(model)


def test_another_model_is_named_by_its_first_differences() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    other = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 7), torch.nn.Linear(7, 1))
    with pytest.raises(stoker.BadInputError, match="of another model") as caught:
        adapt_keys(other.state_dict(), model.state_dict())
    text = str(caught.value)
    assert "1.weight is 2×4 in the model and 7×4 in the checkpoint" in text
    assert "not in the model: 2.weight, 2.bias" in text
    assert list(adapt_keys(other.state_dict(), model.state_dict(), strict=False)) == ["0.weight", "0.bias"]


def test_a_key_keeps_its_wrapper_where_two_would_become_one() -> None:
    assert bare_names(["module.a.module.w", "module.b._orig_mod.w"]) == {
        "module.a.module.w": "a.w",
        "module.b._orig_mod.w": "b.w",
    }
    twins = ["a.w", "a.module.w"]
    assert bare_names(twins) == {key: key for key in twins}
    assert bare_names(["module"]) == {"module": "module"}  # a parameter of this name
