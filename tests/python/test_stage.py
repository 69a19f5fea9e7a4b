"""``stoker stage``: whole and verified, or nothing; hostile archives; full disks."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Cli = Callable[..., subprocess.CompletedProcess[str]]
LEAVES = {f"train/class_{c}/leaf_{i}.bin": os.urandom(900 + 37 * i) for c in "ab" for i in range(20)}


def write_zip(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def write_tar(path: Path, members: dict[str, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and not p.name.startswith(".stoker-stage")
    }


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A tmpfs of 8 MB."""
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", place], capture_output=True
    ).returncode:
        pytest.skip("needs root to mount a small tmpfs")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("zip", lambda p: write_zip(p, LEAVES)),
        ("zip", lambda p: write_zip(p, LEAVES, zipfile.ZIP_STORED)),
        ("tar", lambda p: write_tar(p, LEAVES, "w")),
        ("tar.gz", lambda p: write_tar(p, LEAVES)),
        ("tar.bz2", lambda p: write_tar(p, LEAVES, "w:bz2")),
        ("tar.xz", lambda p: write_tar(p, LEAVES, "w:xz")),
    ],
)
def test_archive_arrives_whole_whatever_its_name(
    cli: Cli, tmp_path: Path, kind: str, make: Callable[[Path], Path]
) -> None:
    archive = make(tmp_path / "archive.bin")
    done = cli("stage", archive, tmp_path / "data", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer.pop("seconds") >= 0
    assert answer == {
        "schema": "stoker.stage.v1",
        "source": str(archive),
        "destination": str(tmp_path / "data"),
        "kind": kind,
        "files": 40,
        "bytes": sum(map(len, LEAVES.values())),
        "skipped": 0,
        "already": False,
    }
    assert files_of(tmp_path / "data") == LEAVES
    assert sorted(p.name for p in (tmp_path / "data").iterdir()) == [".stoker-stage.json", "train"]

    again = cli("stage", archive, tmp_path / "data")
    assert again.returncode == 0
    assert re.fullmatch(r".*/data is already there: 40 files, 50\.1 kB from .*/archive\.bin\n", again.stdout)


def test_folder_is_copied_with_links_inside(cli: Cli, tmp_path: Path) -> None:
    source = tmp_path / "source"
    for name, data in LEAVES.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(data)
    (source / "link").symlink_to("train/class_a")
    (source / "out").symlink_to("/etc")
    os.mkfifo(source / "pipe")
    done = cli("stage", source, tmp_path / "data")
    assert done.returncode == 0, done.stderr
    assert "skipped (a pipe, socket or device): pipe" in done.stderr
    assert "skipped (a link out of the folder, and not to a file): out" in done.stderr
    assert files_of(tmp_path / "data") == LEAVES
    assert (tmp_path / "data/link").readlink() == Path("train/class_a")

    assert "already there" in cli("stage", source, tmp_path / "data").stdout
    (source / "train/class_a/new.bin").write_bytes(b"new")
    assert "already there" not in cli("stage", source, tmp_path / "data").stdout
    assert (tmp_path / "data/train/class_a/new.bin").read_bytes() == b"new"


def test_folder_into_itself_is_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    done = cli("stage", tmp_path / "source", tmp_path / "source/copy")
    assert done.returncode == 1
    assert "lies inside" in done.stderr
    assert not (tmp_path / "source/copy").exists()


def tar_with(tmp_path: Path, **fields: object) -> Path:
    """A tar of one good file and one member with these TarInfo fields."""
    path = tmp_path / "hostile.tar"
    with tarfile.open(path, "w") as archive:
        good = tarfile.TarInfo("good.txt")
        good.size = 4
        archive.addfile(good, io.BytesIO(b"good"))
        bad = tarfile.TarInfo()
        for key, value in fields.items():
            setattr(bad, key, value)
        archive.addfile(bad, io.BytesIO(b"evil"[: bad.size]))
    return path


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"name": "/evil.txt", "size": 4}, "member '/evil.txt' has an absolute path"),
        ({"name": "../evil.txt", "size": 4}, "member '../evil.txt' would land outside the destination"),
        ({"name": "a/../../evil.txt", "size": 4}, "would land outside the destination"),
        (
            {"name": "x", "type": tarfile.SYMTYPE, "linkname": "/etc"},
            "member 'x' links to /etc, outside the destination",
        ),
        (
            {"name": "x", "type": tarfile.SYMTYPE, "linkname": "../.."},
            "links to ../.., outside the destination",
        ),
        (
            {"name": "x", "type": tarfile.LNKTYPE, "linkname": "../../etc/passwd"},
            "would land outside the destination",
        ),
        ({"name": "x", "type": tarfile.LNKTYPE, "linkname": "absent"}, "is a hard link to 'absent'"),
        ({"name": "x", "type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3}, "is a device, pipe or socket"),
        ({"name": "x", "type": tarfile.FIFOTYPE}, "is a device, pipe or socket"),
        ({"name": ".stoker-stage.json", "size": 4}, "has a name that stage keeps for itself"),
    ],
)
def test_hostile_member_is_refused_and_nothing_is_kept(
    cli: Cli, tmp_path: Path, fields: dict[str, object], why: str
) -> None:
    done = cli("stage", tar_with(tmp_path, **fields), tmp_path / "data")
    assert done.returncode == 1
    assert why in done.stderr
    assert "nothing was kept" in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["hostile.tar"]


def test_hostile_zip_is_refused(cli: Cli, tmp_path: Path) -> None:
    for name in ("../evil.txt", "/evil.txt", "a/../../evil.txt"):
        done = cli(
            "stage", write_zip(tmp_path / "a.zip", {"good.txt": b"x", name: b"evil"}), tmp_path / "data"
        )
        assert done.returncode == 1
        assert "refused, and nothing was kept" in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.zip"]


def test_hard_link_inside_is_kept(cli: Cli, tmp_path: Path) -> None:
    archive = tar_with(tmp_path, name="second.txt", type=tarfile.LNKTYPE, linkname="good.txt")
    assert cli("stage", archive, tmp_path / "data").returncode == 0
    assert (tmp_path / "data/second.txt").read_bytes() == b"good"


def test_web_page_under_an_archives_name_is_shown(cli: Cli, tmp_path: Path) -> None:
    """Case S07."""
    page = tmp_path / "leaf.zip"
    page.write_text("<!DOCTYPE html>\n<html><head><title>Google Drive - Quota exceeded</title></head></html>")
    done = cli("stage", page, tmp_path / "data")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        f'error: {page} is no archive but a web page: "Google Drive - Quota exceeded"\n'
        "hint: a server sent a quota, sign-in or error page under the archive's name; open the link in a browser to "
        "read it, then download again\n"
    )
    assert not (tmp_path / "data").exists()


def test_tar_gz_cut_short_keeps_nothing_and_says_how_far_it_got(cli: Cli, tmp_path: Path) -> None:
    """Case S08: the half-written last member must not stay behind to look like a damaged picture."""
    whole = write_tar(tmp_path / "a.tar.gz", LEAVES).read_bytes()
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(whole[: len(whole) * 7 // 10])
    done = cli("stage", cut, tmp_path / "data")
    assert done.returncode == 1
    assert re.search(
        r"is cut short: its gzip stream breaks off at \d+ bytes, in member 'train/class_b/leaf_\d+\.bin'",
        done.stderr,
    )
    assert re.search(r"\(\d+ whole files before it\)", done.stderr)
    assert not (tmp_path / "data").exists()

    kept = cli("stage", cut, tmp_path / "data", "--keep-partial")
    assert kept.returncode == 1
    assert "whole files" in kept.stderr
    assert "were kept" in kept.stderr
    found = files_of(tmp_path / "data")
    assert 20 < len(found) < 40
    assert all(LEAVES[name] == data for name, data in found.items())


def test_flipped_byte_in_a_gzip_stream_is_found(cli: Cli, tmp_path: Path) -> None:
    archive = tmp_path / "a.tar.gz"
    damaged = bytearray(write_tar(archive, LEAVES).read_bytes())
    damaged[-6] ^= 1  # in the CRC itself: the members are whole, the stream is not
    archive.write_bytes(damaged)
    done = cli("stage", archive, tmp_path / "data")
    assert done.returncode == 1
    assert "incorrect data check" in done.stderr or "incorrect length check" in done.stderr
    assert not (tmp_path / "data").exists()


def test_encrypted_and_mac_members(cli: Cli, tmp_path: Path) -> None:
    archive = write_zip(tmp_path / "mac.zip", {"a/x.txt": b"x", "__MACOSX/a/._x.txt": b"fork"})
    done = cli("stage", archive, tmp_path / "data")
    assert done.returncode == 0
    assert "skipped 1 entries that are no data" in done.stdout
    assert files_of(tmp_path / "data") == {"a/x.txt": b"x"}


def test_names_beyond_ascii_arrive(cli: Cli, tmp_path: Path) -> None:
    members = {"Blätter/葉.txt": b"leaf"}
    for number, archive in enumerate(
        [write_zip(tmp_path / "u.zip", members), write_tar(tmp_path / "u.tar.gz", members)]
    ):
        done = cli("stage", archive, tmp_path / str(number), env={**os.environ, "LC_ALL": "C"})
        assert done.returncode == 0, done.stderr
        assert files_of(tmp_path / str(number)) == members


def test_file_in_the_way_is_named_and_nothing_changes(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "data/train").mkdir(parents=True)
    (tmp_path / "data/train/mine.txt").write_text("mine")
    (tmp_path / "data/note.txt").write_text("mine")
    archive = write_zip(tmp_path / "a.zip", {"train/new.txt": b"new", "note.txt": b"theirs"})
    done = cli("stage", archive, tmp_path / "data")
    assert done.returncode == 1
    assert "data/note.txt is there already, and is not from this source; nothing was changed" in done.stderr
    assert files_of(tmp_path / "data") == {"train/mine.txt": b"mine", "note.txt": b"mine"}

    other = write_zip(tmp_path / "b.zip", {"train/new.txt": b"new"})
    assert cli("stage", other, tmp_path / "data").returncode == 0
    assert files_of(tmp_path / "data")["train/new.txt"] == b"new"


def test_missing_source_says_what_to_do(cli: Cli, tmp_path: Path) -> None:
    done = cli("stage", tmp_path / "absent.zip", tmp_path / "data", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["code"] == "not-found"
    assert "on Colab the drive must be mounted first" in done.stderr


def test_too_large_for_the_disk_is_said_before_anything_is_written(
    cli: Cli, tmp_path: Path, small_disk: Path
) -> None:
    """Case S05."""
    archive = write_zip(tmp_path / "big.zip", {"zeros.bin": bytes(20_000_000)})
    done = cli("stage", archive, small_disk / "data")
    assert done.returncode == 1
    assert re.search(r"error: not enough space in .*/data: 20\.0 MB needed, 8\.39 MB free", done.stderr)
    assert not (small_disk / "data").exists()


def test_disk_that_fills_up_is_left_clean(cli: Cli, tmp_path: Path, small_disk: Path) -> None:
    members = {f"{i}.bin": bytes(1_000_000) for i in range(20)}
    archive = write_tar(tmp_path / "bomb.tar.gz", members)
    done = cli("stage", archive, small_disk / "data")
    assert done.returncode == 1
    assert re.search(
        r"No space left on device; \d\.\d+ MB in \d files were unpacked and removed again", done.stderr
    )
    assert not (small_disk / "data").exists()


def test_interrupt_leaves_nothing_half(cli: Cli, tmp_path: Path) -> None:
    archive = write_tar(tmp_path / "a.tar", {f"{i}.bin": bytes(3_000_000) for i in range(120)}, "w")
    child = subprocess.Popen(
        ["stoker", "stage", str(archive), str(tmp_path / "data")], stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 20
    while not (tmp_path / "data/.stoker-stage.part/1.bin").exists() and time.monotonic() < deadline:
        time.sleep(0.002)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 1
    assert "stopped on request; nothing was left behind" in err
    assert not (tmp_path / "data").exists()


def test_killed_run_is_cleaned_up_by_the_next(cli: Cli, tmp_path: Path) -> None:
    archive = write_zip(tmp_path / "a.zip", LEAVES)
    leftover = tmp_path / "data/.stoker-stage.part/train/half.bin"
    leftover.parent.mkdir(parents=True)
    leftover.write_bytes(b"half")
    done = cli("stage", archive, tmp_path / "data")
    assert done.returncode == 0
    assert "removed what an unfinished stage had left" in done.stderr
    assert files_of(tmp_path / "data") == LEAVES
