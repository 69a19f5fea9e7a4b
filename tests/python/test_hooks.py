"""The hooks on torch, one behaviour each, with a writer that keeps what it is given."""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from leaf_folder import make_folder

torch = pytest.importorskip("torch", reason="torch is not installed")

from stoker.hooks import hook_file, loader_facts, model_facts, on_import, pure_ring, sites, torch_hooks  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, Subset, TensorDataset  # noqa: E402


class Keeper:
    """Stands in for the extension's writer."""

    def __init__(self) -> None:
        self.names = ["unnamed"]
        self.log: list[tuple[str, str, float]] = []

    def event_name(self, name: str) -> int:
        self.names.append(name)
        return len(self.names) - 1

    def event_begin(self, name: int) -> None:
        self.log.append((self.names[name], "begin", 0.0))

    def event_end(self, name: int, value: float = 0.0) -> None:
        self.log.append((self.names[name], "end", value))

    def event_instant(self, name: int, value: float = 0.0) -> None:
        self.log.append((self.names[name], "instant", value))

    def event_counter(self, name: int, value: float) -> None:
        self.log.append((self.names[name], "counter", value))

    def take(self) -> list[str]:
        """What came since the last call: "name(" for a begin, ")name" for an end, "name" for an instant."""
        forms = {"begin": "{}(", "end": "){}", "instant": "{}", "counter": "{}="}
        taken = [forms[kind].format(name) for name, kind, _ in self.log]
        self.log.clear()
        return taken


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    keeper = Keeper()
    sites._use(keeper)
    undo = torch_hooks.patch()
    yield keeper
    undo()
    on_import.stop()
    sites.reset()


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 2)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.inner(x)
        return out


FORWARD = ["forward(", ")forward"]
BACKWARD = ["backward(", ")backward"]
OPTIMIZER = ["optimizer(", ")optimizer"]


def test_a_step_is_forward_backward_optimizer(keeper: Keeper) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(3, 4)).sum().backward()
    optimizer.step()
    assert keeper.take() == FORWARD + BACKWARD + OPTIMIZER


def test_only_the_outermost_module_is_recorded(keeper: Keeper) -> None:
    model = Net()
    list(model.inner.parameters())  # makes nn.Sequential a known class, also inside the model
    list(model.parameters())
    model(torch.ones(3, 4))
    assert keeper.take() == FORWARD


def test_eval_mode_or_no_grad_is_evaluation(keeper: Keeper) -> None:
    model = Net().to("cpu")
    with torch.no_grad():
        model(torch.ones(3, 4))
    model.eval()
    model(torch.ones(3, 4))
    assert keeper.take() == ["eval.forward(", ")eval.forward"] * 2


def test_evaluation_lasts_from_eval_to_train_of_a_model_that_trains(keeper: Keeper) -> None:
    teacher, model = Net().eval(), Net()
    model.train()
    model(torch.ones(3, 4))
    assert keeper.take() == FORWARD, "a model that is never trained opens no evaluation"
    model.eval()
    with torch.no_grad():
        teacher(torch.ones(3, 4))
        model(torch.ones(3, 4))
    model.train()
    assert keeper.take() == ["eval(", *["eval.forward(", ")eval.forward"] * 2, ")eval"]


def test_a_training_step_ends_an_evaluation_that_was_left_open(keeper: Keeper) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(3, 4)).sum().backward()
    model.eval()
    keeper.take()
    optimizer.step()
    assert keeper.take() == [")eval", *OPTIMIZER]


@pytest.mark.parametrize("workers", [0, 1])
def test_loader_tells_its_epochs_and_waits(keeper: Keeper, workers: int) -> None:
    loader = DataLoader(TensorDataset(torch.ones(5, 4), torch.ones(5)), batch_size=2, num_workers=workers)
    list(loader)
    wait = ["data.wait(", ")data.wait"]
    log = list(keeper.log)
    assert keeper.take() == ["data.epoch", "data.start(", ")data.start", *wait * 4, "data.end"]
    assert log[0] == ("data.epoch", "instant", 3.0)
    assert [value for name, kind, value in log if (name, kind) == ("data.wait", "end")] == [2, 2, 1, 0]


def test_optimizers_of_every_kind_make_one_span_a_step(keeper: Keeper) -> None:
    class Mine(torch.optim.SGD):
        def step(self, closure: object = None) -> None:  # type: ignore[override]
            super().step()

    for kind in (torch.optim.Adam, torch.optim.AdamW, Mine):
        model = Net()
        optimizer = kind(model.parameters(), lr=0.1)
        model(torch.ones(3, 4)).sum().backward()
        keeper.take()
        optimizer.step()
        assert keeper.take() == OPTIMIZER, kind


def test_closure_runs_inside_the_step(keeper: Keeper) -> None:
    model = Net()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=1)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss: torch.Tensor = model(torch.ones(3, 4)).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    log = keeper.take()
    assert log[0] == "optimizer("
    assert log[-1] == ")optimizer"
    assert "forward(" in log[1:-1]


def test_a_step_that_raises_leaves_no_span_open_for_the_next(keeper: Keeper) -> None:
    model = Net()
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=1)

    def fails() -> torch.Tensor:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        optimizer.step(fails)
    keeper.take()
    with pytest.raises(RuntimeError):
        optimizer.step(fails)
    assert keeper.take() == [")optimizer", "optimizer("]


def test_saving_and_loading_are_checkpoints_with_their_size(keeper: Keeper, tmp_path: Path) -> None:
    torch.save({"a": torch.ones(1000)}, tmp_path / "a.pt")
    size = (tmp_path / "a.pt").stat().st_size
    assert keeper.log == [("checkpoint", "begin", 0.0), ("checkpoint", "end", float(size))]
    keeper.take()
    torch.save({}, io.BytesIO())
    torch.load(tmp_path / "a.pt")
    assert keeper.take() == ["checkpoint(", ")checkpoint", "checkpoint.load(", ")checkpoint.load"]


def test_nested_backward_is_one(keeper: Keeper) -> None:
    from torch.utils.checkpoint import checkpoint

    model = Net()
    list(model.parameters())
    x = torch.ones(3, 4, requires_grad=True)
    checkpoint(lambda y: model.inner(y), x, use_reentrant=True).sum().backward()
    assert keeper.take() == BACKWARD


def test_other_threads_pass_through(keeper: Keeper) -> None:
    model = Net()
    list(model.parameters())
    thread = threading.Thread(target=lambda: model(torch.ones(3, 4)).sum().backward())
    thread.start()
    thread.join()
    assert keeper.take() == []


def test_models_are_pickled_and_copied_without_us(keeper: Keeper) -> None:
    model = Net()
    list(model.parameters())
    model(torch.ones(3, 4))
    assert b"stoker" not in pickle.dumps(model.state_dict()).replace(b"test_hooks", b"")
    assert "stoker" not in str(vars(model)).replace("test_hooks", "")
    twin = copy.deepcopy(model)
    keeper.take()
    twin(torch.ones(3, 4))
    assert keeper.take() == FORWARD


def test_fx_still_sees_the_modules(keeper: Keeper) -> None:
    model = Net()
    list(model.inner.parameters())
    list(model.parameters())
    graph = torch.fx.symbolic_trace(model).graph
    assert [node.op for node in graph.nodes].count("call_module") == 3


def test_compile_with_fullgraph_is_not_broken(keeper: Keeper) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    for _ in range(2):
        compiled(torch.ones(3, 4)).sum().backward()
        optimizer.step()
    log = keeper.take()
    assert log.count("backward(") == 2
    assert log.count("forward(") == 2
    assert log.count("compile(") == log.count(")compile") == 1


def test_nothing_is_left_after_stop() -> None:
    loader = torch.utils.data.DataLoader
    before = [
        nn.Module.train,
        nn.Module.parameters,
        loader.__iter__,
        torch.autograd.backward,
        torch.save,
        torch.load,
    ]
    sites._use(Keeper())
    undo = torch_hooks.patch()
    list(Net().parameters())
    assert "__call__" in vars(Net)
    undo()
    sites.reset()
    after = [
        nn.Module.train,
        nn.Module.parameters,
        loader.__iter__,
        torch.autograd.backward,
        torch.save,
        torch.load,
    ]
    assert after == before
    assert "__call__" not in vars(Net)
    assert not sys.modules["torch.optim.optimizer"]._global_optimizer_pre_hooks


def test_pure_python_writer_is_read_by_the_recorder(tmp_path: Path, cli: object) -> None:
    """The child cannot load the extension; its events arrive all the same."""
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent("""
        import sys
        sys.modules["stoker._native"] = None  # import fails
        import torch
        model = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(5):
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()
        """)
    )
    out = cli("run", "--", sys.executable, script, env={**os.environ, "STOKER_RUNS": str(tmp_path)})  # type: ignore[operator]
    assert out.returncode == 0, out.stderr
    from trace_decode import spans

    (run,) = tmp_path.glob("*-train-*")
    assert [span.name for span in spans(run) if span.name != "gc"] == ["forward", "backward", "optimizer"] * 5
    assert "pure Python" in (run / "run.json").read_text()


def test_ring_of_another_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ring").write_bytes(b"STKRING9" + bytes(5000))
    with pytest.raises(ValueError, match="not an event ring"):
        pure_ring.PureRing(str(tmp_path / "ring"))


def facts_of(loader: object, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the hooks write about a loader."""
    written: list[dict[str, Any]] = []
    monkeypatch.setattr(hook_file, "add_loader", written.append)
    loader_facts.note(loader)
    loader_facts.note(loader)
    (facts,) = written  # once a loader
    json.dumps(facts)
    return facts


def test_loader_facts_have_the_recipe_that_accelerate_would_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    v2 = pytest.importorskip("torchvision.transforms.v2")
    from torchvision.datasets import ImageFolder

    end = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    data = ImageFolder(str(make_folder(tmp_path)), v2.Compose([v2.RandomResizedCrop(32, (0.5, 1)), *end]))
    facts = facts_of(DataLoader(Subset(data, range(9))), monkeypatch)
    assert facts["accelerable"] is True
    assert facts["root"] == str(tmp_path)
    assert facts["samples"] == 9
    (step,) = facts["recipe"]
    assert (step["kind"], step["width"], step["scale"]) == ("RandomResizedCrop", 32, [0.5, 1.0])

    data.transform = v2.Compose([v2.Grayscale(3), *end])
    facts = facts_of(DataLoader(data), monkeypatch)
    assert facts["accelerable"] is False
    assert "Grayscale" in facts["why"]
    assert "recipe" not in facts

    # accelerate reads the single steps, but the core has no such order
    data.transform = v2.Compose([v2.CenterCrop(16), v2.Resize(32), *end])
    facts = facts_of(DataLoader(data), monkeypatch)
    assert facts["accelerable"] is False
    assert facts["why"].startswith("this transform: ")


def test_loader_facts_neither_load_torchvision_nor_raise(tmp_path: Path) -> None:
    code = """
        import sys
        from torch.utils.data import DataLoader
        from stoker.hooks import hook_file, loader_facts
        hook_file.add_loader = lambda facts: print(facts["accelerable"], facts["why"])
        loader_facts.note(DataLoader([1, 2, 3]))
        sys.modules["stoker._torchvision"] = None
        loader_facts.note(DataLoader([1, 2, 3]))
        print("torchvision" in sys.modules)
    """
    out = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "STOKER_RUN": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert out.returncode == 0, out.stderr
    refused, not_asked, loaded = out.stdout.splitlines()
    assert refused == "False the dataset builtins.list"
    assert not_asked.startswith("None stoker.accelerate cannot be loaded here")
    assert loaded == "False"


def test_forked_child_is_silent(tmp_path: Path) -> None:
    code = """
        import os, sys
        from stoker.hooks import sites
        class Loud:
            def event_name(self, name): return 1
            def event_begin(self, name): sys.stdout.write("loud"); sys.stdout.flush()
            event_end = event_instant = event_counter = event_begin
        site = sites.Site("x")
        sites._use(Loud())
        if os.fork() == 0:
            site.begin()
            os._exit(0)
        os.wait()
    """
    out = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert out.stdout == ""


def conv_net() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 1), nn.Conv2d(8, 4, 3))


IMAGES = torch.zeros(2, 3, 8, 8)


@pytest.mark.parametrize(
    ("model", "images", "convolutions", "channels_last"),
    [
        (conv_net(), IMAGES, 3, False),
        (conv_net().to(memory_format=torch.channels_last), IMAGES, 3, True),  # type: ignore[call-overload]
        (conv_net(), IMAGES.to(memory_format=torch.channels_last), 3, True),
        (nn.Sequential(nn.Flatten(), nn.Linear(192, 2)), IMAGES, 0, False),
    ],
)
def test_models_layout_is_noted_once(
    keeper: Keeper,
    monkeypatch: pytest.MonkeyPatch,
    model: nn.Module,
    images: torch.Tensor,
    convolutions: int,
    channels_last: bool,
) -> None:
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(hook_file, "set_python", lambda **facts: told.append(facts["model"]))
    list(model.parameters())  # as every optimizer asks: by this the model is known
    for _ in range(2):
        model(images)
    assert [(one["convolutions"], one["channels_last"]) for one in told] == [(convolutions, channels_last)]
    assert told[0]["parameters"] == sum(weight.numel() for weight in model.parameters())


def test_the_larger_of_two_models_is_the_one_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[int] = []
    monkeypatch.setattr(hook_file, "set_python", lambda **facts: told.append(facts["model"]["parameters"]))
    model_facts.forget()
    for width in (2, 8, 4):
        model_facts.note(nn.Linear(width, 1, bias=False), ())
    assert told == [2, 8]


class Batches:
    """An iterator that gives what it holds, and raises what is an exception."""

    def __init__(self, *batches: object) -> None:
        self.left = list(batches)

    def __next__(self) -> object:
        if not self.left:
            raise StopIteration
        batch = self.left.pop(0)
        if isinstance(batch, Exception):
            raise batch
        return batch


@pytest.mark.parametrize("way", ["native", "python"])
def test_next_is_reported_the_same_in_both_ways(keeper: Keeper, way: str) -> None:
    class Mine(Batches):
        pass

    take = Batches.__next__
    if way == "native":
        torch_hooks.patch_next(Mine)
    else:
        Mine.__next__ = torch_hooks._hooked_next(take)  # type: ignore[method-assign]
    images = torch.zeros(3, 2)
    batches: list[object] = [
        [images, images],
        {"x": (images, 1)},
        [],
        7,
        torch.zeros(()),
        ValueError("bad file"),
    ]
    mine = Mine(*batches)
    for expected in batches[:-1]:
        assert next(mine) is expected
    with pytest.raises(ValueError, match="bad file"):
        mine.__next__()
    with pytest.raises(StopIteration):
        next(mine)
    ends = [value for name, kind, value in keeper.log if (name, kind) == ("data.wait", "end")]
    assert ends == [3, 3, 0, 0, 0, 0, 0]
    assert keeper.take()[-3:] == ["data.wait(", ")data.wait", "data.end"]
    assert Mine.__next__.__wrapped__ is take  # type: ignore[attr-defined]


def test_an_event_call_takes_a_number_or_nothing() -> None:
    native = pytest.importorskip("stoker._native")
    call = native._EventCall(2, 0)
    assert call() is None
    assert call(4) is None
    with pytest.raises(TypeError):
        call("many")
    with pytest.raises(ValueError, match="kind 9"):
        native._EventCall(9, 0)
