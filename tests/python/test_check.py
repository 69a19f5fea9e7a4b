"""``stoker check``: what is in a folder of pictures, and which files are bad."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

Cli = Callable[..., subprocess.CompletedProcess[str]]


def picture(seed: int, mode: str = "RGB", fmt: str = "JPEG", **options: object) -> bytes:
    pixels = np.random.default_rng(seed).integers(0, 255, (40, 60, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(buffer, fmt, **options)
    return buffer.getvalue()


@pytest.fixture
def leaves(tmp_path: Path) -> Path:
    """Two classes of three good pictures in train and one in val."""
    root = tmp_path / "leaves"
    seed = 0
    for split, count in (("train", 3), ("val", 1)):
        for name in ("apple", "berry"):
            (root / split / name).mkdir(parents=True)
            for i in range(count):
                seed += 1
                (root / split / name / f"{i}.jpg").write_bytes(picture(seed))
    return root


def test_good_folder_is_described_whole(cli: Cli, leaves: Path) -> None:
    done = cli("check", leaves)
    size = sum(p.stat().st_size for p in leaves.rglob("*.jpg"))
    assert done.returncode == 0
    assert done.stdout == (
        f"{leaves}: 8 pictures in 2 classes, {size / 1000:.1f} kB\n"
        "  train/apple  3\n"
        "  train/berry  3\n"
        "  val/apple    1\n"
        "  val/berry    1\n"
        "formats: JPEG: 8\n"
        "kinds: colour, 8 bits: 8\n"
        "sides: 40 to 60 pixels\n"
        "every picture can be decoded\n"
    )


def test_bad_files_are_named_with_their_reasons(cli: Cli, leaves: Path) -> None:
    good = picture(1)
    (leaves / "train/apple/cut.jpg").write_bytes(good[: len(good) // 2])
    (leaves / "train/apple/empty.jpg").write_bytes(b"")
    (leaves / "train/berry/text.jpg").write_text("<html>not found</html>")
    Image.new("1", (20000, 10000)).save(leaves / "val/apple/huge.png")
    done = cli("check", leaves, "--json")
    assert done.returncode == 1
    answer = json.loads(done.stdout)
    assert answer["schema"] == "stoker.check.v1"
    bad = {finding["path"]: finding["what"] for finding in answer["bad"]}
    assert sorted(bad) == [
        "train/apple/cut.jpg",
        "train/apple/empty.jpg",
        "train/berry/text.jpg",
        "val/apple/huge.png",
    ]
    assert "cut short" in bad["train/apple/cut.jpg"]
    assert "empty (0 bytes)" in bad["train/apple/empty.jpg"]
    assert "not a picture" in bad["train/berry/text.jpg"]
    assert "20000x10000 = 200000000 pixels" in bad["val/apple/huge.png"]
    text = cli("check", leaves)
    assert "bad files: 4\n" in text.stdout
    assert "every picture can be decoded" not in text.stdout


def test_hidden_folders_are_skipped_and_said(cli: Cli, leaves: Path) -> None:
    """Case L02: with a picture in it ImageFolder would make it class 0 and shift every label."""
    hidden = leaves / "train/.ipynb_checkpoints"
    hidden.mkdir()
    (hidden / "0-checkpoint.jpg").write_bytes(picture(50))
    done = cli("check", leaves)
    assert done.returncode == 0
    assert "hidden folders, skipped: train/.ipynb_checkpoints\n" in done.stdout
    assert "8 pictures in 2 classes" in done.stdout


def test_link_that_leads_back_is_cut_and_its_pictures_count_once(cli: Cli, leaves: Path) -> None:
    (leaves / "train/apple/again").symlink_to("..", target_is_directory=True)
    answer = json.loads(cli("check", leaves, "--json").stdout)
    assert answer["files"] == 8
    assert answer["duplicates"] == []
    assert answer["looping"] == ["train/apple/again"]
    assert "links to a folder above them, cut: train/apple/again\n" in cli("check", leaves).stdout


def test_folder_that_cannot_be_read_is_an_error_and_not_a_smaller_data_set(cli: Cli, leaves: Path) -> None:
    """Paths beyond PATH_MAX cannot be opened even by root, whom a mode of 0 would not stop."""
    folder = os.open(leaves / "val/berry", os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=folder)
        inner = os.open("d" * 250, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = inner
    os.close(folder)
    done = cli("check", leaves)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: cannot ")
    assert f"the folder {leaves}/val/berry/ddd" in done.stderr


def test_duplicates_across_splits_are_counted(cli: Cli, leaves: Path) -> None:
    shutil.copy(leaves / "train/apple/0.jpg", leaves / "val/apple/again.jpg")
    done = cli("check", leaves)
    assert done.returncode == 0
    assert "the same picture more than once: 1 times, 1 of them in more than one split\n" in done.stdout
    assert "  train/apple/0.jpg = val/apple/again.jpg\n" in done.stdout


def test_kinds_rotation_and_wrong_names_are_told(cli: Cli, leaves: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    (leaves / "train/apple/turned.jpg").write_bytes(picture(60, exif=exif))
    (leaves / "train/apple/grey.png").write_bytes(picture(61, "L", "PNG"))
    (leaves / "train/apple/really_png.jpg").write_bytes(picture(62, "RGB", "PNG"))
    (leaves / "train/apple/notes.txt").write_text("x")
    answer = json.loads(cli("check", leaves, "--json").stdout)
    assert answer["good"]
    assert answer["rotated"] == 1
    assert answer["formats"] == {"JPEG": 9, "PNG": 2}
    assert answer["kinds"]["grey, 8 bits"] == 1
    assert answer["other_files"] == 1
    assert answer["odd"] == [{"path": "train/apple/really_png.jpg", "what": "is a PNG by its bytes"}]


def test_empty_class_missing_folder_and_no_pictures(cli: Cli, leaves: Path, tmp_path: Path) -> None:
    (leaves / "train/void").mkdir()
    done = cli("check", leaves)
    assert done.returncode == 1
    assert "class folders without a picture: train/void\n" in done.stdout

    missing = cli("check", tmp_path / "absent")
    assert missing.returncode == 1
    assert missing.stderr == f"error: there is no folder {tmp_path}/absent\nhint: check the path\n"

    (tmp_path / "plain").mkdir()
    (tmp_path / "plain/readme.txt").write_text("x")
    none = cli("check", tmp_path / "plain")
    assert none.returncode == 1
    assert "no pictures in" in none.stderr


def test_plain_folder_of_pictures(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.jpg").write_bytes(picture(70))
    done = cli("check", tmp_path)
    assert done.returncode == 0
    assert "  (in no class folder)  1\n" in done.stdout


def test_real_leaves_are_all_good(cli: Cli, shared: Path) -> None:
    answer = json.loads(cli("check", shared / "data/plantvillage-7class/val", "--json").stdout)
    assert answer["good"]
    assert len(answer["classes"]) == 7
