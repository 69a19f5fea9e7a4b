"""The Store against the world: kills, a full disk, a second process, and what `stoker ckpt` says of it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import stoker
from stoker.store import Keep, Store

np = pytest.importorskip("numpy")

Cli = Callable[..., CompletedProcess[str]]

# Saves one step after the other and says which ones are durable, until it is killed.
SAVER = """
import sys, numpy as np
from stoker.store import Keep, Store
store = Store(sys.argv[1], keep=Keep(last=2))
step = (store.latest or 0) + 1
frozen = np.full(200_000, 7.0)
while True:
    store.save(step, moving=np.full(100_000, step, np.int64), frozen=frozen, step=step)
    if step % 2:
        store.wait()
        print(step, flush=True)
    step += 1
"""


def start_saver(directory: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", SAVER, str(directory)], stdout=subprocess.PIPE, text=True)


def kill_and_check(directory: Path, rng: random.Random) -> None:
    child = start_saver(directory)
    assert child.stdout is not None
    confirmed = int(child.stdout.readline())
    time.sleep(rng.uniform(0, 0.15))  # the kill lands wherever the child happens to be
    child.kill()
    lines = child.stdout.read().split()
    child.wait()
    confirmed = max([confirmed, *map(int, lines)])
    with Store(directory, keep=Keep(last=2)) as store:
        assert store.verify() == []
        loaded = store.load()
        assert loaded.skipped == []
        assert loaded.step >= confirmed
        assert loaded["step"] == loaded.step
        assert (loaded["moving"] == loaded.step).all()
        assert (loaded["frozen"] == 7).all()
    assert not [name for name in os.listdir(directory) if name.startswith(".tmp-")]


def test_kill_9_leaves_only_whole_checkpoints_and_what_was_confirmed(tmp_path: Path) -> None:
    rng = random.Random(1)
    for _ in range(3):
        kill_and_check(tmp_path, rng)


@pytest.mark.slow
def test_kill_9_twenty_five_times(tmp_path: Path) -> None:
    rng = random.Random(2)
    for _ in range(25):
        kill_and_check(tmp_path, rng)


def test_second_process_is_refused_by_name_and_may_read(tmp_path: Path) -> None:
    child = start_saver(tmp_path)
    try:
        assert child.stdout is not None
        child.stdout.readline()
        with pytest.raises(
            stoker.InUseError, match=f"is being written by process {child.pid} on .* since 20"
        ):
            Store(tmp_path)
        for _ in range(20):  # beside a writer that removes old checkpoints
            reader = Store(tmp_path, read_only=True)
            loaded = reader.load()
            assert (loaded["moving"] == loaded.step).all()
            assert reader.verify() == []
        with pytest.raises(stoker.BadInputError, match="open for reading only"):
            reader.save(10**9, x=1)
    finally:
        child.kill()
        child.wait()
    Store(tmp_path).close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs of 4 MiB."""
    point = tmp_path / "disk"
    point.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(point)], capture_output=True, text=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a tmpfs: {mounted.stderr.strip()}")
    yield point
    subprocess.run(["umount", str(point)], check=True)


def test_full_disk_is_told_with_numbers_and_loses_nothing(small_disk: Path) -> None:
    with Store(small_disk / "s", keep=Keep(last=0)) as store:
        store.save(1, x=np.zeros(250_000))
        store.wait()
        before = sorted(small_disk.rglob("*"))
        with pytest.raises(
            stoker.NoSpaceError, match=r"a checkpoint of 3\.\d+ MB does not fit: .* has 2\.\d+ MB free"
        ):
            store.save(2, x=np.ones(400_000))
        assert sorted(small_disk.rglob("*")) == before
        (small_disk / "hog").write_bytes(b"x" * 2_000_000)
        with pytest.raises(stoker.NoSpaceError):
            store.save(2, x=np.ones(100_000))
        (small_disk / "hog").unlink()
        store.save(2, x=np.ones(100_000))
        store.wait()
        assert store.verify() == []


def test_a_disk_that_fills_up_behind_the_save_is_told_by_the_next_call(small_disk: Path) -> None:
    with Store(small_disk / "s", keep=Keep(last=0)) as store:
        store.save(1, x=np.zeros(10))
        store.wait()
        limit = subprocess.run(["mount", "-o", "remount,nr_inodes=7", str(small_disk)], capture_output=True)
        if limit.returncode != 0:
            pytest.skip("cannot limit the inodes of a tmpfs")
        store.save(2, x=np.full(10, 2))
        with pytest.raises(stoker.NoSpaceError):
            store.wait()
        assert store.verify() == []
        assert not list((small_disk / "s").glob(".tmp-*"))


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(stoker.IoError, match="file/runs"):
        Store(tmp_path / "file" / "runs")


def damage(directory: Path) -> None:
    part = directory / "step-20/part-20.safetensors"
    raw = bytearray(part.read_bytes())
    raw[4096 + 3] ^= 1
    part.write_bytes(raw)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    with Store(tmp_path / "leaf", keep=Keep(last=0, best="acc")) as store:
        store.save(9, metrics={"acc": 0.75}, model={"w": np.zeros((2, 3), np.float32)}, epoch=1)
        store.save(20, metrics={"acc": float("nan")}, model={"w": np.ones((2, 3), np.float32)}, epoch=2)
    return tmp_path / "leaf"


def test_ckpt_list_says_what_is_there(cli: Cli, saved: Path) -> None:
    done = cli("ckpt", "list", saved)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["step", "saved", "(UTC)", "size", "tensors", "metrics"]
    assert lines[1].startswith("9 ")
    assert "best" in lines[1]
    assert "acc 0.75" in lines[1]
    assert "latest" in lines[2]
    answer = json.loads(cli("ckpt", "list", saved, "--json").stdout)
    assert answer["schema"] == "stoker.ckpt_list.v1"
    assert (answer["latest"], answer["best"]) == (20, 9)
    assert [c["step"] for c in answer["checkpoints"]] == [9, 20]
    assert answer["checkpoints"][1]["metrics"]["acc"] == {"value": None, "why": "nan"}


def test_ckpt_verify_names_tensor_file_and_offset(cli: Cli, saved: Path) -> None:
    whole = cli("ckpt", "verify", saved)
    assert (whole.returncode, whole.stdout) == (0, "2 checkpoints are whole, 48 B checked\n")
    damage(saved)
    bad = cli("ckpt", "verify", saved)
    assert bad.returncode == 1
    assert "error: step 20: tensor model.w fails its hash" in bad.stderr
    assert f"{saved}/step-20/part-20.safetensors, offset 4096, 24 bytes: stored " in bad.stderr
    assert "hint: step 9 is whole" in bad.stderr
    assert cli("ckpt", "verify", saved, "9").returncode == 0
    answer = json.loads(cli("ckpt", "verify", saved, "latest", "--json").stdout)
    assert (answer["whole"], [d["step"] for d in answer["damaged"]]) == (False, [20])


def test_ckpt_show_lists_the_tensors(cli: Cli, saved: Path) -> None:
    done = cli("ckpt", "show", saved, "best")
    assert done.returncode == 0
    assert done.stdout.startswith("step 9, saved 20")
    assert "state: model, epoch" in done.stdout
    assert done.stdout.splitlines()[-1].split() == [
        "model.w",
        "F32",
        "[2,",
        "3]",
        "24",
        "B",
        "part-9.safetensors",
    ]
    answer = json.loads(cli("ckpt", "show", saved, "--json").stdout)
    assert answer["checkpoint"]["step"] == 20
    assert answer["state"]["epoch"] == 2


def test_ckpt_diff_names_what_changed(cli: Cli, tmp_path: Path) -> None:
    with Store(tmp_path, keep=Keep(last=0)) as store:
        same = np.arange(6, dtype=np.float32)
        store.save(1, same=same, moved=np.zeros(3), gone=np.zeros(2), grown=np.zeros((2, 2)))
        store.save(2, same=same, moved=np.ones(3), new=np.zeros(1), grown=np.zeros((2, 3)))
    done = cli("ckpt", "diff", tmp_path, "1", "latest")
    assert done.returncode == 1
    assert [line.split(maxsplit=1)[0] for line in done.stdout.splitlines()[:-1]] == [
        "moved",
        "new",
        "grown",
        "gone",
    ]
    assert "F64 [2, 2] → F64 [2, 3]" in done.stdout
    assert done.stdout.splitlines()[-1] == "1 of 5 tensors are the same"
    answer = json.loads(cli("ckpt", "diff", tmp_path, "1", "2", "--json").stdout)
    assert {item["name"]: item["change"] for item in answer["differing"]} == {
        "moved": "values differ",
        "new": "added",
        "grown": "dtype or shape differs",
        "gone": "removed",
    }
    assert cli("ckpt", "diff", tmp_path, "1", "1").returncode == 0


def test_ckpt_copy_checks_what_it_copies_and_replaces_nothing(cli: Cli, saved: Path, tmp_path: Path) -> None:
    done = cli("ckpt", "copy", saved, tmp_path / "there", "best")
    assert (done.returncode, done.stdout[:7]) == (0, "step 9,")
    with Store(tmp_path / "there", read_only=True) as there:
        loaded = there.load()
        assert (loaded.step, loaded.metrics, loaded["epoch"]) == (9, {"acc": 0.75}, 1)
        assert (loaded["model"]["w"] == 0).all()
    again = cli("ckpt", "copy", saved, tmp_path / "there", "9")
    assert again.returncode == 1
    assert "exists already, and is whole" in again.stderr
    damage(saved)
    bad = cli("ckpt", "copy", saved, tmp_path / "there", "20")
    assert bad.returncode == 1
    assert "fails its hash" in bad.stderr
    assert sorted(p.name for p in (tmp_path / "there").iterdir()) == ["lock", "step-9"]


def test_ckpt_refuses_with_a_next_step(cli: Cli, saved: Path, tmp_path: Path) -> None:
    missing = cli("ckpt", "list", tmp_path / "absent")
    assert missing.returncode == 1
    assert "absent" in missing.stderr
    assert "hint: give the directory" in missing.stderr
    other = cli("ckpt", "show", saved, "10")
    assert other.returncode == 1
    assert "has no checkpoint of step 10\nhint: its newest is step 20" in other.stderr
    assert cli("ckpt", "show", saved, "ten").returncode == 1
    assert cli("ckpt", "lst", saved).returncode == 2


def test_a_forked_child_may_drop_the_store_after_threads_of_its_own(tmp_path: Path) -> None:
    code = """
import gc, os, sys, threading, stoker
store = stoker.Store(sys.argv[1])
store.save(1, value=1)
store.wait()
child = os.fork()
if child == 0:
    thread = threading.Thread(target=len, args=("",))  # takes over the writer's stack, which the fork left behind
    thread.start()
    thread.join()
    del store
    gc.collect()
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0)
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
