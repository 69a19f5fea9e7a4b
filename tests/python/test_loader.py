"""ImageLoader: what comes out, in which order, and what happens when things go wrong."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import numpy as np
import pytest
import stoker
import torch
from leaf_folder import make_folder, picture, same, tensors
from stoker import _native
from stoker._loader_options import native_options
from stoker.transforms import compile_recipe
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
RANDOM = (stoker.RandomResizedCrop(32), stoker.RandomHorizontalFlip())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("leaves") / "train")


# --- what comes out ---


def test_files_labels_and_classes_are_image_folders(folder: Path) -> None:
    loader = stoker.ImageLoader(folder, batch_size=4, size=32)
    reference = ImageFolder(str(folder))
    assert list(loader.paths) == [path for path, _ in reference.samples]
    assert list(loader.labels) == reference.targets
    assert loader.classes == reference.classes
    assert loader.class_to_idx == reference.class_to_idx
    assert loader.paths[-1] == reference.samples[-1][0]
    assert loader.paths[1:3] == [path for path, _ in reference.samples[1:3]]


@pytest.mark.parametrize("sides", [(40, 32), (32, 32), (20, 48)])
def test_resize_and_center_crop_are_torchvisions_bit_for_bit(folder: Path, sides: tuple[int, int]) -> None:
    resize, crop = sides
    v2_pipeline = v2.Compose(
        [
            v2.Resize(resize),
            v2.CenterCrop(crop),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ]
    )
    reference = ImageFolder(str(folder), v2_pipeline)
    transform = [stoker.Resize(resize), stoker.CenterCrop(crop), stoker.Normalize(MEAN, STD)]
    with stoker.ImageLoader(folder, batch_size=5, dtype="float32", transform=transform) as loader:
        images = torch.cat([x for x, _ in tensors(loader)])
    assert torch.equal(images, torch.stack([x for x, _ in reference]))


def test_real_leaves_are_torchvisions_bit_for_bit(shared: Path) -> None:
    data = shared / "data/plantvillage-7class/val"
    v2_pipeline = v2.Compose(
        [v2.Resize(224), v2.CenterCrop(192), v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
    )
    reference = ImageFolder(str(data), v2_pipeline)
    chosen = list(range(0, len(reference), max(1, len(reference) // 60)))
    transform = [stoker.Resize(224), stoker.CenterCrop(192)]
    with stoker.ImageLoader(
        data, batch_size=16, dtype="float32", transform=transform, sampler=chosen
    ) as loader:
        given = tensors(loader)
    assert torch.equal(torch.cat([x for x, _ in given]), torch.stack([reference[i][0] for i in chosen]))
    assert torch.cat([y for _, y in given]).tolist() == [reference.targets[i] for i in chosen]


def test_uint8_is_nhwc_and_equals_the_float_result(folder: Path) -> None:
    small = stoker.ImageLoader(folder, batch_size=5, size=32)
    floats = stoker.ImageLoader(folder, batch_size=5, size=32, dtype="float32")
    for (x, y), (fx, fy) in zip(small, floats, strict=True):
        assert x.dtype == torch.uint8
        assert x.shape == (len(y), 32, 32, 3)
        assert y.dtype == torch.int64
        assert fx.shape == (len(y), 3, 32, 32)
        assert torch.equal(x.permute(0, 3, 1, 2).float().mul_(1.0 / 255.0), fx)
        assert torch.equal(y, fy)


def test_normalize_on_a_device_gives_the_cpus_values(folder: Path) -> None:
    transform = [stoker.Resize((32, 32)), stoker.Normalize(MEAN, STD)]
    on_device = stoker.ImageLoader(folder, batch_size=5, transform=transform, device="cpu")
    on_cpu = stoker.ImageLoader(folder, batch_size=5, transform=transform, dtype="float32")
    for (x, _), (reference, _) in zip(on_device, on_cpu, strict=True):
        assert x.is_contiguous(memory_format=torch.channels_last)
        assert torch.equal(x, reference)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has the device")
def test_a_device_that_is_not_there_is_refused_at_once(folder: Path) -> None:
    with pytest.raises(stoker.BadInputError, match="device='cuda' cannot be used"):
        stoker.ImageLoader(folder, batch_size=5, size=32, device="cuda")


def test_random_crops_have_torchvisions_distribution() -> None:
    """Area, shape and place of 6000 crops: two-sample Kolmogorov–Smirnov, beyond its bound once in 10⁵."""
    width, height, draws = 320, 240, 6000
    crop = v2.RandomResizedCrop(32)
    torch.manual_seed(1)
    blank = torch.zeros(3, height, width)
    theirs = np.array(
        [
            [p["left"], p["top"], p["width"], p["height"]]
            for p in (crop.make_params([blank]) for _ in range(draws))
        ]
    )
    options = native_options(
        compile_recipe([stoker.RandomResizedCrop(32)]), dtype="uint8", arithmetic="pillow13"
    )
    ours = np.array([_native._draw_geometry(options, 5, 0, i, width, height)["crop"] for i in range(draws)])
    bound = np.sqrt(-0.5 * np.log(1e-5 / 2)) * np.sqrt(2 / draws)
    for name, figure in {
        "area": lambda c: c[:, 2] * c[:, 3],
        "ratio": lambda c: c[:, 2] / c[:, 3],
        "left": lambda c: c[:, 0] / (width - c[:, 2] + 1),
        "top": lambda c: c[:, 1] / (height - c[:, 3] + 1),
    }.items():
        a, b = np.sort(figure(theirs)), np.sort(figure(ours))
        at = np.concatenate([a, b])
        distance = np.abs(np.searchsorted(a, at, "right") - np.searchsorted(b, at, "right")).max() / draws
        assert distance < bound, name


def test_half_of_the_pictures_are_mirrored() -> None:
    options = native_options(
        compile_recipe([stoker.RandomHorizontalFlip()]), dtype="uint8", arithmetic="pillow13"
    )
    mirrored = sum(_native._draw_geometry(options, 5, 0, i, 8, 8)["mirror"] for i in range(10000))
    assert abs(mirrored - 5000) < 5 * 50


# --- order, epochs, state ---


def test_the_number_of_threads_changes_nothing(folder: Path) -> None:
    def epoch(threads: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        loader = stoker.ImageLoader(
            folder, batch_size=4, transform=RANDOM, shuffle=True, seed=3, threads=threads
        )
        return tensors(loader)

    assert same(epoch(1), epoch(5))


def test_epochs_follow_each_other_and_can_be_set(folder: Path) -> None:
    loader = stoker.ImageLoader(folder, batch_size=4, transform=RANDOM, shuffle=True)
    first, second = tensors(loader), tensors(loader)
    assert not same(first, second)
    loader.set_epoch(1)
    assert same(tensors(loader), second)
    loader.set_epoch(0)
    assert same(tensors(loader), first)


def test_a_stopped_epoch_goes_on_with_other_threads(folder: Path) -> None:
    def make(threads: int, batch_size: int = 4) -> stoker.ImageLoader:
        return stoker.ImageLoader(
            folder, batch_size=batch_size, transform=RANDOM, shuffle=True, seed=11, threads=threads
        )

    whole = make(1)
    tensors(whole)
    expected = tensors(whole)
    stopped = make(3)
    tensors(stopped)
    iterator = iter(stopped)
    for _ in range(2):
        next(iterator)
    state = stopped.state_dict()
    assert (state["epoch"], state["samples"]) == (1, 8)

    resumed = make(2)
    resumed.load_state_dict(state)
    assert resumed.state_dict() == state
    resumed.set_epoch(1)  # what a loop over epochs does; it must not throw the place away
    assert same(tensors(resumed), expected[2:])
    assert resumed.state_dict()["epoch"] == 2

    other_size = make(2, batch_size=2)
    other_size.load_state_dict(state)
    assert torch.equal(
        torch.cat([x for x, _ in tensors(other_size)]), torch.cat([x for x, _ in expected[2:]])
    )


def test_the_last_batch_counts_as_drawn_before_the_end_is_seen(folder: Path) -> None:
    loader = stoker.ImageLoader(folder, batch_size=8, size=16)
    iterator = iter(loader)
    for _ in range(len(loader)):
        next(iterator)
    assert loader.state_dict()["samples"] == 27
    again = stoker.ImageLoader(folder, batch_size=8, size=16)
    again.load_state_dict(loader.state_dict())
    assert tensors(again) == []
    assert len(tensors(again)) == 4


def test_a_state_of_another_loader_is_refused_by_name(folder: Path) -> None:
    state = stoker.ImageLoader(folder, batch_size=4, size=32, seed=1, shuffle=True).state_dict()
    with pytest.raises(stoker.BadInputError, match=r"seed is 2, was 1; order is 'as-given', was 'shuffle'"):
        stoker.ImageLoader(folder, batch_size=4, size=32, seed=2).load_state_dict(state)


def test_weighted_draws_are_shared_among_ranks_and_resume(folder: Path, tmp_path: Path) -> None:
    """Nine to one, balanced by class, over two ranks: disjoint draws with even shares that go on exactly (L09)."""
    source = [(path, 0 if i < 90 else 1) for i, path in enumerate([str(next(folder.rglob("*.jpg")))] * 100)]

    def make(rank: int, world_size: int = 2, batch_size: int = 50) -> stoker.ImageLoader:
        sampler = stoker.Weighted.by_class(num_samples=2000)
        return stoker.ImageLoader(
            source, batch_size=batch_size, size=8, sampler=sampler, rank=rank, world_size=world_size, seed=4
        )

    ranks = [make(0), make(1)]
    labels = [torch.cat([y for _, y in tensors(loader)]) for loader in ranks]
    assert [len(y) for y in labels] == [1000, 1000]
    for y in labels:
        assert abs(int(y.sum()) - 500) < 5 * np.sqrt(1000 / 4)
    alone = torch.cat([y for _, y in tensors(make(0, world_size=1))])
    assert torch.equal(torch.stack(labels, 1).flatten(), alone)

    stopped = make(1)
    iterator = iter(stopped)
    for _ in range(7):
        next(iterator)
    resumed = make(1)
    resumed.load_state_dict(stopped.state_dict())
    assert torch.equal(torch.cat([y for _, y in tensors(resumed)]), labels[1][350:])


def test_ranks_have_as_many_batches_each_and_cover_everything(folder: Path) -> None:
    loaders = [
        stoker.ImageLoader(folder, batch_size=4, size=8, shuffle=True, rank=r, world_size=4) for r in range(4)
    ]
    assert {len(loader) for loader in loaders} == {2}
    assert {sum(len(y) for _, y in loader) for loader in loaders} == {7}


# --- bad files ---


@pytest.fixture
def spoiled(tmp_path: Path) -> Path:
    """Good pictures and one of each kind of bad one."""
    root = make_folder(tmp_path / "data", classes=1, images=8)
    whole = (root / "class_0/001.jpg").read_bytes()
    (root / "class_0/a_truncated.jpg").write_bytes(whole[: len(whole) // 2])
    (root / "class_0/b_empty.jpg").write_bytes(b"")
    (root / "class_0/c_text.jpg").write_text("<html>not found</html>")
    return root


@pytest.mark.parametrize("name", ["a_truncated", "b_empty", "c_text"])
def test_a_bad_file_is_named_with_a_next_step(spoiled: Path, name: str) -> None:
    loader = stoker.ImageLoader([(str(spoiled / f"class_0/{name}.jpg"), 0)], batch_size=1, size=32)
    with pytest.raises(stoker.Error, match=f"{name}.jpg") as caught:
        next(iter(loader))
    assert "on_error" in str(caught.value)


def test_a_mislabelled_file_is_decoded_for_what_it_is(tmp_path: Path) -> None:
    picture(1, 32, 32).save(tmp_path / "really.png")
    os.rename(tmp_path / "really.png", tmp_path / "really.jpg")
    images, _ = next(iter(stoker.ImageLoader([(tmp_path / "really.jpg", 0)], batch_size=1, size=32)))
    assert np.array_equal(images[0].numpy(), np.asarray(picture(1, 32, 32)))


def test_a_picture_beyond_the_pixel_limit_is_refused_from_its_header(tmp_path: Path) -> None:
    from PIL import Image

    Image.new("1", (20000, 10000)).save(tmp_path / "huge.png")
    with pytest.raises(stoker.Error, match=r"huge.png.*20000"):
        next(iter(stoker.ImageLoader([(tmp_path / "huge.png", 0)], batch_size=1, size=32)))


def test_skipped_files_are_counted_and_listed(spoiled: Path) -> None:
    loader = stoker.ImageLoader(spoiled, batch_size=4, size=32, on_error="skip")
    assert [len(y) for _, y in loader] == [4, 4]
    stats = loader.stats()
    assert stats["bad"] == 3
    assert [Path(f["path"]).name for f in stats["bad_files"]] == [
        "a_truncated.jpg",
        "b_empty.jpg",
        "c_text.jpg",
    ]


def test_substituted_files_fill_the_batch_alike_for_any_threads(spoiled: Path) -> None:
    def epoch(threads: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        return tensors(
            stoker.ImageLoader(
                spoiled, batch_size=4, size=32, on_error="substitute", threads=threads, shuffle=True
            )
        )

    assert [len(y) for _, y in epoch(1)] == [4, 4, 3]
    assert same(epoch(1), epoch(4))


# --- folders and arguments that do not fit ---


def test_hidden_folders_are_no_classes_and_are_named(folder: Path, tmp_path: Path) -> None:
    """A notebook's checkpoint folder would become class 0 and shift every label (L02)."""
    root = make_folder(tmp_path / "data", classes=2, images=2)
    hidden = root / ".ipynb_checkpoints"
    hidden.mkdir()
    picture(1, 8, 8).save(hidden / "x-checkpoint.jpg")
    with pytest.warns(UserWarning, match=r"1 hidden names passed over \(.ipynb_checkpoints\)"):
        loader = stoker.ImageLoader(root, batch_size=2, size=8)
    assert loader.class_to_idx == {"class_0": 0, "class_1": 1}
    assert loader.stats()["hidden_skipped"] == [".ipynb_checkpoints"]


def test_fast_is_said_and_kept_apart_in_states(folder: Path) -> None:
    exact = stoker.ImageLoader(folder, batch_size=4, size=32)
    fast = stoker.ImageLoader(folder, batch_size=4, size=32, fast=True)
    assert ", fast>" in repr(fast)
    assert "fast" not in repr(exact)
    fast.load_state_dict(fast.state_dict())
    with pytest.raises(stoker.BadInputError, match="fast is True, was False"):
        fast.load_state_dict(exact.state_dict())
    with pytest.raises(stoker.BadInputError, match="fast is False, was True"):
        exact.load_state_dict(fast.state_dict())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_size": 0}, "batch_size=0"),
        ({"batch_size": 2.5}, "batch_size=2.5"),
        ({"dtype": "float16"}, "dtype='float16'"),
        ({"threads": 0}, "threads=0"),
        ({"cache": "4GB"}, "cache='4GB' is not in this version"),
        ({"on_error": "ignore"}, "on_error='ignore'"),
        ({"rank": 2, "world_size": 2}, "rank 2 of a world of 2"),
        ({"transform": [lambda x: x]}, "which ImageLoader does not know"),
        ({"transform": [v2.ColorJitter()]}, "ColorJitter, which ImageLoader does not know"),
        ({"transform": [stoker.CenterCrop(8), stoker.Resize(8)]}, "Resize cannot follow CenterCrop"),
        ({"transform": [stoker.Normalize(MEAN, STD), stoker.Resize((8, 8))]}, "Normalize must be the last"),
        ({"transform": [stoker.Resize((8, 8)), stoker.Normalize(MEAN, STD)]}, "no device is given"),
        ({"transform": [stoker.Resize((8, 8))], "size": 16}, "the transform gives 8×8"),
        ({"sampler": [99]}, "names sample 99, but there are 27"),
        ({"sampler": [-1]}, "negative sample number"),
        ({"sampler": stoker.Weighted([1.0])}, "1 weights for 27 samples"),
        ({"sampler": stoker.Weighted.by_class(), "shuffle": True}, "exclude each other"),
    ],
)
def test_wrong_use_is_refused_with_what_was_wrong(
    folder: Path, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(stoker.BadInputError, match=message.replace("(", r"\(")):
        stoker.ImageLoader(folder, **{"batch_size": 4, **arguments})  # type: ignore[arg-type]


def test_a_source_that_does_not_fit_is_refused_with_what_was_wrong(tmp_path: Path) -> None:
    cases: list[tuple[object, str]] = [
        (tmp_path / "absent", "absent"),
        (tmp_path, "holds no class folder"),
        ([], "empty"),
        ([("a.jpg", -1)], "label -1"),
        ([("a.jpg", "cat")], r"item 0 of the source"),
        (42, "source is a int"),
    ]
    for source, message in cases:
        with pytest.raises(stoker.BadInputError, match=message):
            stoker.ImageLoader(source, batch_size=2, size=8)  # type: ignore[arg-type]


def test_a_last_batch_of_one_is_warned_of(folder: Path) -> None:
    with pytest.warns(UserWarning, match="last batch of each epoch has one image"):
        stoker.ImageLoader(folder, batch_size=13, size=8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stoker.ImageLoader(folder, batch_size=13, size=8, drop_last=True)
        stoker.ImageLoader(folder, batch_size=4, size=8)


class InWorker(torch.utils.data.Dataset[int]):
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __len__(self) -> int:
        return 1

    def __getitem__(self, index: int) -> int:
        stoker.ImageLoader(self.folder, batch_size=4, size=8)
        return index


def test_use_inside_a_dataloader_worker_is_refused(folder: Path) -> None:
    with pytest.raises(stoker.BadInputError, match="inside a DataLoader worker"):
        list(torch.utils.data.DataLoader(InWorker(folder), num_workers=1))
