"""ImageLoader: threads, interruption, lifetime."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
import stoker
import torch
from leaf_folder import make_folder, same, tensors
from stoker._loader_options import installed_arithmetic

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
RANDOM = (stoker.RandomResizedCrop(32), stoker.RandomHorizontalFlip())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("leaves") / "train")


def loader_threads() -> list[str]:
    names = [
        (Path("/proc/self/task") / t / "comm").read_text().strip() for t in os.listdir("/proc/self/task")
    ]
    return [name for name in names if name.startswith("stoker-load")]


def test_batches_stay_what_they_were_while_held(folder: Path) -> None:
    loader = stoker.ImageLoader(folder, batch_size=2, transform=RANDOM)
    held = list(loader)
    copies = [x.clone() for x, _ in held]
    list(loader)
    loader.close()
    del loader
    gc.collect()
    assert all(torch.equal(x, copy) for (x, _), copy in zip(held, copies, strict=True))


def test_two_loaders_at_once_do_not_disturb_each_other(folder: Path) -> None:
    def make() -> stoker.ImageLoader:
        return stoker.ImageLoader(folder, batch_size=4, transform=RANDOM, shuffle=True)

    expected = tensors(make())
    pairs = [(a, b) for a, b in zip(make(), make(), strict=True)]
    assert same([a for a, _ in pairs], expected)
    assert same([b for _, b in pairs], expected)


def test_an_iterator_that_was_left_says_so(folder: Path) -> None:
    loader = stoker.ImageLoader(folder, batch_size=4, size=8)
    left = iter(loader)
    next(left)
    next(iter(loader))
    with pytest.raises(stoker.Error, match="another one over the same loader began"):
        next(left)


def test_no_thread_is_left_when_a_loader_is_dropped_in_the_middle(folder: Path) -> None:
    gc.collect()
    before = len(loader_threads())
    loader = stoker.ImageLoader(folder, batch_size=2, size=32, threads=3)
    assert len(loader_threads()) == before  # none before it is asked
    iterator = iter(loader)
    next(iterator)
    deadline = time.monotonic() + 30  # a thread names itself only once it runs
    while len(loader_threads()) < before + 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(loader_threads()) == before + 3
    del loader, iterator
    gc.collect()
    assert len(loader_threads()) == before


def test_a_closed_loader_says_so(folder: Path) -> None:
    with stoker.ImageLoader(folder, batch_size=2, size=32) as loader:
        iterator = iter(loader)
        next(iterator)
    with pytest.raises(stoker.Error, match="closed"):
        next(iterator)
    with pytest.raises(stoker.Error, match="closed"):
        iter(loader)


def test_another_thread_may_iterate(folder: Path) -> None:
    counts: list[int] = []
    loader = stoker.ImageLoader(folder, batch_size=4, size=8)
    thread = threading.Thread(target=lambda: counts.append(len(list(loader))))
    thread.start()
    thread.join(60)
    assert counts == [7]


def test_a_forked_child_is_told_and_ends(folder: Path) -> None:
    code = f"""
        import os, stoker
        loader = stoker.ImageLoader({str(folder)!r}, batch_size=4, size=8)
        iterator = iter(loader)
        next(iterator)
        if os.fork() == 0:
            try:
                next(iterator)
            except stoker.Error as error:
                print("child:", error, flush=True)
            del loader, iterator
            os._exit(0)
        os.wait()
        print("parent:", len(list(iterator)))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60
    )
    assert "before the process forked" in done.stdout
    assert "parent: 6" in done.stdout


def test_ctrl_c_is_answered_while_waiting_for_a_batch(tmp_path: Path) -> None:
    """A reader that never gets its bytes: the wait itself must be left, and the process must end."""
    code = f"""
        import sys, time, stoker
        loader = stoker.ImageLoader({str(make_folder(tmp_path / "data"))!r}, batch_size=4, size=8)
        iterator = iter(loader)
        next(iterator)
        try:
            print("ready", flush=True)
            while True:
                for _ in loader: pass
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGINT)
    begin = time.monotonic()
    assert child.communicate(timeout=30)[0] == "interrupted\n"
    assert child.returncode == 0
    assert time.monotonic() - begin < 10


def test_without_torch_batches_are_numpy(folder: Path) -> None:
    code = f"""
        import sys, stoker
        loader = stoker.ImageLoader({str(folder)!r}, batch_size=4, size=8)
        images, labels = next(iter(loader))
        print(type(images).__module__, images.dtype, images.shape, labels.dtype, images.flags.writeable)
        print("torch" in sys.modules)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines() == ["numpy uint8 (4, 8, 8, 3) int64 True", "False"]


def test_the_summary_names_what_decides_the_pixels(folder: Path) -> None:
    loader = stoker.ImageLoader(folder, batch_size=4, size=8, shuffle=True, threads=2)
    assert repr(loader) == (
        "<stoker.ImageLoader: 27 images, 3 classes, 7 batches of 4, 8×8 uint8, order shuffle, seed 0, 2 threads, "
        f"arithmetic {installed_arithmetic()}>"
    )
    assert loader.stats()["cache"]["value"] is None
