"""accelerate(): the same batches from a DataLoader, or the same DataLoader."""

from __future__ import annotations

import copy
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import stoker
import torch
from leaf_folder import make_folder
from stoker import acceleration
from torch.utils.data import (
    DataLoader,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler
from torchvision import transforms as v1
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
V1_EVAL = v1.Compose([v1.Resize(40), v1.CenterCrop(32), v1.ToTensor(), v1.Normalize(MEAN, STD)])
V2_EVAL = v2.Compose(
    [
        v2.Resize(40),
        v2.CenterCrop(32),
        v2.ToImage(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(MEAN, STD),
    ]
)
V2_TRAIN = v2.Compose(
    [
        v2.RandomResizedCrop(32),
        v2.RandomHorizontalFlip(),
        v2.ToImage(),
        v2.ToDtype(torch.float32, scale=True),
        v2.Normalize(MEAN, STD),
    ]
)

Batches = list[tuple[torch.Tensor, torch.Tensor]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("leaves") / "train")


@pytest.fixture(autouse=True)
def warnings_are_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def take(loader: Any) -> Batches:
    return [(x.clone(), y.clone()) for x, y in loader]


def same(a: Batches, b: Batches) -> bool:
    return len(a) == len(b) and all(
        torch.equal(p[0], q[0]) and torch.equal(p[1], q[1]) for p, q in zip(a, b, strict=True)
    )


def is_fast(loader: Any) -> bool:
    return acceleration.isinstance_accelerated(loader)


Make = Callable[[ImageFolder], DataLoader[Any]]
LOADERS: dict[str, Make] = {
    "sequential": lambda d: DataLoader(d, batch_size=4),
    "shuffle": lambda d: DataLoader(d, batch_size=4, shuffle=True),
    "drop_last": lambda d: DataLoader(d, batch_size=4, shuffle=True, drop_last=True),
    "workers": lambda d: DataLoader(d, batch_size=4, shuffle=True, num_workers=1),
    "persistent": lambda d: DataLoader(d, batch_size=4, shuffle=True, num_workers=1, persistent_workers=True),
    "generator": lambda d: DataLoader(
        d, batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(3)
    ),
    "replacement": lambda d: DataLoader(
        d, batch_size=4, sampler=RandomSampler(d, replacement=True, num_samples=35)
    ),
    "weighted": lambda d: DataLoader(d, batch_size=4, sampler=WeightedRandomSampler([1.0, 3.0, 0.5] * 9, 20)),
    "subset sampler": lambda d: DataLoader(d, batch_size=4, sampler=SubsetRandomSampler([1, 5, 9, 20, 26])),
    "distributed": lambda d: DataLoader(
        d, batch_size=4, sampler=DistributedSampler(d, num_replicas=2, rank=1)
    ),
    "explicit": lambda d: DataLoader(d, batch_size=5, sampler=SequentialSampler(d)),
    "subset": lambda d: DataLoader(
        Subset(Subset(d, range(3, 25)), [0, 4, 7, 21, 2]), batch_size=2, shuffle=True
    ),
}


@pytest.mark.parametrize("transform", [V1_EVAL, V2_EVAL], ids=["v1", "v2"])
@pytest.mark.parametrize("name", LOADERS)
def test_without_randomness_batches_and_torchs_state_are_the_originals(
    folder: Path, name: str, transform: Any
) -> None:
    def two_epochs(wrap: Callable[[Any], Any]) -> tuple[Batches, Batches, torch.Tensor, int]:
        loader = wrap(LOADERS[name](ImageFolder(str(folder), transform)))
        torch.manual_seed(5)
        first = take(loader)
        between = torch.rand(3)  # what a training step draws from the same state
        second = take(loader)
        return first, second, torch.cat([between, torch.rand(3)]), len(loader)

    expected = two_epochs(lambda loader: loader)
    given = two_epochs(stoker.accelerate)
    assert is_fast(stoker.accelerate(LOADERS[name](ImageFolder(str(folder), transform))))
    assert same(given[0], expected[0])
    assert same(given[1], expected[1])
    assert torch.equal(given[2], expected[2])
    assert given[3] == expected[3] == len(expected[0])


def test_random_transforms_keep_order_labels_and_state_and_change_each_epoch(folder: Path) -> None:
    def epoch(wrap: Callable[[Any], Any]) -> tuple[list[list[int]], torch.Tensor]:
        loader = wrap(
            DataLoader(ImageFolder(str(folder), V2_TRAIN), batch_size=4, shuffle=True, num_workers=1)
        )
        torch.manual_seed(5)
        labels = [y.tolist() for _, y in loader]
        return labels, torch.rand(3)

    expected, given = epoch(lambda loader: loader), epoch(stoker.accelerate)
    assert given[0] == expected[0]
    assert torch.equal(given[1], expected[1])

    fast = stoker.accelerate(DataLoader(ImageFolder(str(folder), V2_TRAIN), batch_size=4))
    torch.manual_seed(1)
    first, second = take(fast), take(fast)
    assert not same(first, second)
    torch.manual_seed(1)
    assert same(take(fast), first)


@pytest.mark.parametrize("transform", [V1_EVAL, V2_EVAL, V2_TRAIN], ids=["v1", "v2", "random"])
def test_verify_compares_with_the_original_pipeline(folder: Path, transform: Any) -> None:
    assert is_fast(
        stoker.accelerate(DataLoader(ImageFolder(str(folder), transform), batch_size=4), verify=12)
    )


def test_verify_leaves_a_loader_that_would_differ(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = DataLoader(ImageFolder(str(folder), V2_EVAL), batch_size=4)
    monkeypatch.setattr("stoker._verify.expected_sample", lambda data, number: torch.zeros(3, 32, 32))
    with pytest.warns(UserWarning, match=r"000.jpg differs by up to"):
        assert stoker.accelerate(loader, verify=1) is loader


class OwnFolder(ImageFolder):
    pass


class OwnSampler(SequentialSampler):
    pass


def unknown(folder: Path, **changes: Any) -> DataLoader[Any]:
    arguments = {"dataset": ImageFolder(str(folder), V2_EVAL), "batch_size": 4, **changes}
    return DataLoader(**arguments)


def v2_chain(*steps: Any) -> Any:
    return v2.Compose([*steps, v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])


UNKNOWN: dict[str, tuple[Callable[[Path], Any], str]] = {
    "not a DataLoader": (lambda f: [1, 2], "the loader builtins.list"),
    "transform": (
        lambda f: unknown(f, dataset=ImageFolder(str(f), v2_chain(v2.ColorJitter()))),
        "the transform torchvision.transforms.v2._color.ColorJitter",
    ),
    "lambda": (lambda f: unknown(f, dataset=ImageFolder(str(f), v2_chain(lambda x: x))), "lambda"),
    "no transform": (lambda f: unknown(f, dataset=ImageFolder(str(f))), "NoneType"),
    "tensor resize": (
        lambda f: unknown(f, dataset=ImageFolder(str(f), v2.Compose([v2.ToImage(), v2.Resize(32)]))),
        "Resize on tensors",
    ),
    "bytes": (
        lambda f: unknown(f, dataset=ImageFolder(str(f), v2.Compose([v2.Resize(32), v2.ToImage()]))),
        "does not end in float tensors",
    ),
    "unscaled": (
        lambda f: unknown(
            f, dataset=ImageFolder(str(f), v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32)]))
        ),
        "ToDtype",
    ),
    "max_size": (
        lambda f: unknown(f, dataset=ImageFolder(str(f), v2_chain(v2.Resize(32, max_size=64)))),
        "max_size=64",
    ),
    "two crops": (
        lambda f: unknown(f, dataset=ImageFolder(str(f), v2_chain(v2.CenterCrop(32), v2.Resize(16)))),
        "Resize cannot follow CenterCrop",
    ),
    "dataset class": (lambda f: unknown(f, dataset=OwnFolder(str(f), V2_EVAL)), "OwnFolder"),
    "image loader": (
        lambda f: unknown(f, dataset=ImageFolder(str(f), V2_EVAL, loader=lambda p: None)),
        "own image loader",
    ),
    "target_transform": (
        lambda f: unknown(f, dataset=ImageFolder(str(f), V2_EVAL, target_transform=lambda t: t)),
        "target_transform",
    ),
    "collate_fn": (lambda f: unknown(f, collate_fn=lambda b: b), "collate_fn"),
    "worker_init_fn": (lambda f: unknown(f, num_workers=1, worker_init_fn=lambda i: None), "worker_init_fn"),
    "sampler": (lambda f: unknown(f, sampler=OwnSampler(range(27))), "OwnSampler"),
    "no batching": (lambda f: unknown(f, batch_size=None), "batching off"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_leaves_the_loader_as_it_was_and_is_named(folder: Path, name: str) -> None:
    make, part = UNKNOWN[name]
    loader = make(folder)
    with pytest.warns(UserWarning, match="left the loader as it was") as caught:
        assert stoker.accelerate(loader) is loader
    assert part in str(caught[0].message)


def test_files_that_only_pillow_reads_leave_the_loader_as_it_was(folder: Path, tmp_path: Path) -> None:
    root = make_folder(tmp_path / "data", classes=1, images=2)
    (root / "class_0/x.tif").write_bytes(b"II*\0")
    with pytest.warns(UserWarning, match=r"files like x\.tif"):
        assert not is_fast(stoker.accelerate(DataLoader(ImageFolder(str(root), V2_EVAL))))


def test_the_result_passes_for_a_dataloader_with_its_attributes(folder: Path) -> None:
    loader = DataLoader(ImageFolder(str(folder), V2_EVAL), batch_size=4, shuffle=True)
    fast = stoker.accelerate(loader)
    assert isinstance(fast, DataLoader)
    assert fast.dataset is loader.dataset
    assert fast.sampler is loader.sampler
    assert (fast.batch_size, fast.drop_last, fast.num_workers) == (4, False, 0)
    with pytest.raises(AttributeError):
        fast.no_such_thing  # noqa: B018


def test_a_peek_inside_a_loop_does_not_disturb_it(folder: Path) -> None:
    fast = stoker.accelerate(DataLoader(ImageFolder(str(folder), V2_EVAL), batch_size=4))
    expected = take(fast)
    seen: Batches = []
    for x, y in fast:
        seen.append((x.clone(), y.clone()))
        assert torch.equal(next(iter(fast))[0], expected[0][0])
    assert same(seen, expected)


def test_a_transform_changed_later_is_followed(folder: Path) -> None:
    dataset = ImageFolder(str(folder), V2_TRAIN)
    fast = stoker.accelerate(DataLoader(dataset, batch_size=4))
    take(fast)
    dataset.transform = V1_EVAL
    assert same(take(fast), take(DataLoader(dataset, batch_size=4)))
    dataset.transform = v1.Compose([v1.Resize((8, 8)), v1.Grayscale(3), v1.ToTensor()])
    with pytest.warns(UserWarning, match="goes back to the original loader"):
        given = take(fast)
    assert same(given, take(DataLoader(dataset, batch_size=4)))


@pytest.mark.parametrize("name", ["shuffle", "workers", "generator", "weighted", "persistent"])
def test_a_stopped_epoch_goes_on_from_its_state(folder: Path, name: str) -> None:
    def make() -> Any:
        return stoker.accelerate(LOADERS[name](ImageFolder(str(folder), V2_TRAIN)))

    fast = make()
    torch.manual_seed(5)
    take(fast)
    before = copy.deepcopy(fast.state_dict())
    assert before["batches"] == 0
    iterator = iter(fast)
    for _ in range(2):
        next(iterator)
    state = copy.deepcopy(fast.state_dict())
    random = torch.get_rng_state()
    expected, after = take(iterator), torch.rand(3)
    expected_next = take(fast)

    resumed = make()
    torch.manual_seed(99)
    resumed.load_state_dict(state)
    torch.set_rng_state(random)
    generator = resumed.original.generator
    given = take(resumed)
    assert same(given, expected)
    assert torch.equal(torch.rand(3), after)
    if generator is None:
        assert same(take(resumed), expected_next)


def test_setting_the_epoch_begins_a_whole_one(folder: Path) -> None:
    fast = stoker.accelerate(LOADERS["distributed"](ImageFolder(str(folder), V2_EVAL)))
    next(iter(fast))
    fast.load_state_dict(fast.state_dict())
    fast.set_epoch(3)
    assert fast.sampler.epoch == 3
    assert len(take(fast)) == len(fast)


def test_explain_prints_the_mapping(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stoker.accelerate(
        DataLoader(ImageFolder(str(folder), V2_TRAIN), batch_size=4, num_workers=1), explain=True
    )
    out = capsys.readouterr().out
    for part in (
        "27 files, 3 classes",
        "RandomResizedCrop(size=(32, 32)",
        "v · float(1 / 255)",
        "num_workers=1 is not",
    ):
        assert part in out


def test_a_patched_dataloader_takes_over_what_it_knows(folder: Path) -> None:
    code = f"""
        import torch, stoker.acceleration
        from torch.utils.data import DataLoader
        from torchvision.datasets import ImageFolder
        from torchvision.transforms import v2
        steps = [v2.Resize(40), v2.CenterCrop(32), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
        def make(steps):
            return DataLoader(ImageFolder({str(folder)!r}, v2.Compose(steps)), batch_size=4, shuffle=True)
        def take(loader):
            torch.manual_seed(1)
            return [x.clone() for x, _ in loader]
        known, other = make(steps), make([v2.Grayscale(3), *steps])
        expected, expected_other = take(known), take(other)
        stoker.acceleration.patch_dataloader(lambda applied, why: print(applied, why.splitlines()[0]))
        for _ in range(2):
            assert all(map(torch.equal, take(known), expected))
            assert all(map(torch.equal, take(other), expected_other))
        print(type(iter(known)).__name__, type(iter(other)).__name__)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("True 27 files")
    assert lines[1].startswith(
        "False it does not know the transform torchvision.transforms.v2._color.Grayscale"
    )
    assert lines[2] == "EpochIterator _SingleProcessDataLoaderIter"
    assert len(lines) == 3
