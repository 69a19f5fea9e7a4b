"""Pictures come out as Pillow and torchvision make them, bit for bit, and bad ones are refused where Pillow refuses."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import random
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import PIL
import pytest
from PIL import Image, ImageOps
from pillow_reference import ARITHMETIC, Case, differences, random_cases
from stoker import BadInputError, CorruptError, _native

IMAGES = Path(__file__).parents[1] / "data/images"
REFUSED = {"leaf_truncated_60.jpg", "leaf_no_eoi.jpg"}
SCALED = {"basn0g16.png"}  # 16-bit grey: Pillow clips it to white
SAME = sorted(p for p in IMAGES.iterdir() if p.suffix != ".md" and p.name not in REFUSED | SCALED)
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))

# Files of ../shared/data/odd-images whose answer is not that of the newest Pillow, and what it is.
OWN_ANSWER = {
    "png/basn0g16.png": "16-bit grey is scaled (v >> 8), not clipped to white",
    "png/ftbwn0g16.png": "16-bit grey is scaled",
    "png/i_trns.png": "16-bit grey is scaled",
    "huge-dimensions/png_decompression_dos.png": "decodes: text chunks are never inflated",
    "png/truncated_end_chunk.png": "decodes: every pixel is there, what follows them is not read",
    "png/unknown_compression_method.png": "decodes: the damage is in a text chunk",
    "other-formats/hopper.tif": "TIFF is not decoded here",
    "other-formats/16bit.cropped.tif": "TIFF is not decoded here",
    "other-formats/tiff_16bit_RGB.tiff": "TIFF is not decoded here",
    "other-formats/multipage.tiff": "TIFF is not decoded here",
    "other-formats/tiff_strip_cmyk_jpeg.tif": "TIFF is not decoded here",
    "wrong-extension/tiff_named.jpg": "TIFF is not decoded here",
}


@pytest.mark.parametrize("path", SAME, ids=lambda p: p.name)
def test_crops_and_resizes_are_pillows_bytes(path: Path) -> None:
    assert differences(path, random.Random(path.name), 40) == []


@pytest.mark.parametrize("progressive", [False, True], ids=["baseline", "progressive"])
@pytest.mark.parametrize("sampling", ["4:4:4", "4:2:2", "4:2:0", "4:1:1"])
def test_crop_decode_leaves_no_trace_at_its_edges(sampling: str, progressive: bool) -> None:
    """Only the crop's part of a JPEG is decoded; what it is cut from must not show, wherever it is cut."""
    rng = random.Random(sampling)
    noisy = Image.open(IMAGES / "leaf_baseline.jpg").resize((640, 480))
    for _ in range(10):
        width, height, restart = rng.randint(1, 640), rng.randint(1, 480), rng.choice([0, 3])
        file = io.BytesIO()
        noisy.crop((0, 0, width, height)).save(
            file, "JPEG", subsampling=sampling, progressive=progressive, restart_marker_blocks=restart
        )
        image = Image.open(file).convert("RGB")
        for _ in range(12):
            crop_w, crop_h = rng.randint(1, width), rng.randint(1, height)
            crop = (rng.randint(0, width - crop_w), rng.randint(0, height - crop_h), crop_w, crop_h)
            case = Case(crop, crop[2:], (0, 0, crop_w, crop_h), False, "bilinear")
            assert case.stoker(file.getvalue()) == case.pillow(image), f"{width}x{height}, {case}"


def test_sixteen_bit_grey_keeps_its_high_byte() -> None:
    path = IMAGES / "basn0g16.png"
    high = (np.asarray(Image.open(path)).astype(np.uint16) >> 8).astype(np.uint8)
    height, width, pixels = _native.decode_rgb(path.read_bytes())
    got = np.frombuffer(pixels, np.uint8).reshape(height, width, 3)
    assert (got == high[:, :, None]).all()


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_cut_jpeg_is_refused_whatever_the_crop(name: str) -> None:
    data = (IMAGES / name).read_bytes()
    for crop in [(0, 0, 256, 256), (0, 0, 16, 16), (100, 100, 20, 20)]:
        with pytest.raises(CorruptError, match=f"its {len(data)} bytes end before the picture does"):
            Case(crop, (8, 8), (0, 0, 8, 8), False, "bilinear").stoker(data)


def test_every_cut_of_a_jpeg_has_pillows_verdict() -> None:
    whole = (IMAGES / "leaf_baseline.jpg").read_bytes()
    for size in [*range(0, 1000, 37), *range(1000, len(whole), 701), *range(len(whole) - 8, len(whole) + 1)]:
        assert stoker_refuses(whole[:size]) == pillow_refuses(whole[:size]), f"cut after {size} bytes"


def test_flipped_bits_have_pillows_verdict_and_pixels() -> None:
    rng = random.Random(7)
    for name in ("leaf_baseline.jpg", "leaf_progressive.jpg", "leaf_restart_1row.jpg"):
        whole = (IMAGES / name).read_bytes()
        for _ in range(60):
            data = bytearray(whole)
            data[rng.randrange(2, len(data))] ^= 1 << rng.randrange(8)
            assert stoker_refuses(bytes(data)) == pillow_refuses(bytes(data))


@pytest.mark.parametrize("seed", range(6))
def test_damaged_scans_have_pillows_pixels(seed: int) -> None:
    """What is wrong inside a baseline scan is read as libjpeg reads it: bad codes, early markers, bits that end."""
    rng = random.Random(seed)
    picture = Image.open(IMAGES / "leaf_baseline.jpg").convert(rng.choice(["RGB", "L"]))
    file = io.BytesIO()
    quality, sampling = rng.choice([30, 75, 92, 100]), rng.choice(["4:4:4", "4:2:2", "4:2:0"])
    picture.save(file, "JPEG", quality=quality, subsampling=sampling, optimize=rng.random() < 0.7)
    whole = file.getvalue()
    scan = whole.index(b"\xff\xda") + 14
    compared = 0
    for _ in range(60):
        data = bytearray(whole)
        for _ in range(rng.randint(0, 3)):
            at = rng.randrange(scan, len(data) - 2)
            new = rng.choice([b"\xff", b"\xff\xff", b"\xff\x00", b"\xff\xd3", b"\xff\xd9", rng.randbytes(3)])
            data[at : at + rng.choice([0, len(new)])] = new
        bad = pillow_refuses(bytes(data))
        assert stoker_refuses(bytes(data)) == bad
        if not bad:
            compared += 1
            assert _native.decode_rgb(bytes(data))[2] == open_bytes(bytes(data)).convert("RGB").tobytes()
    assert compared > 10


def pillow_refuses(data: bytes) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            open_bytes(data).convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return True
    return False


def stoker_refuses(data: bytes) -> bool:
    try:
        _native.decode_rgb(data)
    except (CorruptError, BadInputError):
        return True
    return False


def open_bytes(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


@pytest.mark.parametrize("sampling", ["4:4:4", "4:2:2", "4:2:0"])
@pytest.mark.parametrize("shrink", [2, 4, 8])
def test_fast_stays_near_the_exact_pixels_and_in_place(sampling: str, shrink: int) -> None:
    """A part decoded smaller is off by a step or so; one that lay half a pixel aside would be off by far more."""
    rng = random.Random(shrink)
    file = io.BytesIO()
    picture = Image.open(IMAGES / "leaf_baseline.jpg").resize((1003, 749), Image.Resampling.BICUBIC)
    picture.save(file, "JPEG", subsampling=sampling, quality=92)
    for mirror in (False, True):
        size = (rng.randint(40, 60), rng.randint(40, 60))
        crop_w, crop_h = (side * shrink + rng.randint(0, shrink * 20) for side in size)
        crop = (rng.randint(0, 1003 - crop_w), rng.randint(0, 749 - crop_h), crop_w, crop_h)
        exact, fast = (
            np.frombuffer(
                _native.render_image(file.getvalue(), crop, size, (0, 0, *size), mirror, fast=fast), np.uint8
            ).astype(int)
            for fast in (False, True)
        )
        assert (exact != fast).any()
        error = np.abs(exact - fast).mean()
        aside = np.abs(exact - np.roll(exact.reshape(size[1], size[0], 3), 1, axis=1).reshape(-1)).mean()
        assert error < 1.5
        assert error < aside / 3


def test_fast_is_exact_where_no_picture_is_twice_its_result() -> None:
    data = (IMAGES / "leaf_baseline.jpg").read_bytes()
    box = (3, 5, 251, 240)
    for size in ((224, 224), (126, 120), (126, 224)):
        exact, fast = (
            _native.render_image(data, box, size, (0, 0, *size), fast=fast) for fast in (False, True)
        )
        assert exact == fast


def test_header_over_the_pixel_limit_is_refused_with_its_numbers() -> None:
    data = bytearray((IMAGES / "leaf_baseline.jpg").read_bytes())
    frame = data.index(b"\xff\xc0")
    data[frame + 5 : frame + 9] = (20000).to_bytes(2, "big") + (10000).to_bytes(2, "big")
    with pytest.raises(BadInputError, match="10000x20000 = 200000000 pixels, over the limit of 178956970"):
        _native.image_info(bytes(data))


def test_orientation_is_read_and_applied_only_when_asked() -> None:
    path = IMAGES / "hopper_orientation_6.jpg"
    data = path.read_bytes()
    assert _native.image_info(data)["exif_orientation"] == 6
    stored = Image.open(path)
    shown = ImageOps.exif_transpose(stored)
    assert _native.decode_rgb(data)[2] == stored.convert("RGB").tobytes()
    assert _native.decode_rgb(data, exif_apply=True) == (
        shown.height,
        shown.width,
        shown.convert("RGB").tobytes(),
    )
    for case in random_cases(random.Random(1), shown.width, shown.height, 40):
        assert case.stoker(data, exif_apply=True) == case.pillow(shown.convert("RGB"))


@pytest.mark.parametrize("multiply", [False, True], ids=["ToTensor", "v2.ToDtype"])
@pytest.mark.parametrize(
    ("mean", "std"), [IMAGENET, ((0.0,) * 3, (1.0,) * 3), ((0.5,) * 3, (0.5, 0.3, 1 / 3))]
)
def test_float_result_is_torchvisions(
    multiply: bool, mean: tuple[float, float, float], std: tuple[float, float, float]
) -> None:
    torch = pytest.importorskip("torch")
    v2 = pytest.importorskip("torchvision.transforms.v2")
    scale = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]) if multiply else None
    to_float = scale or pytest.importorskip("torchvision.transforms").ToTensor()
    path = IMAGES / "leaf_baseline.jpg"
    image = (
        Image.open(path).convert("RGB").crop((20, 30, 230, 220)).resize((224, 224), Image.Resampling.BILINEAR)
    )
    # Every value in every channel, beside a real picture.
    ramp = np.repeat(np.arange(256, dtype=np.uint8)[None, :, None], 3, axis=2)
    for data, crop, size, picture in [
        (path.read_bytes(), (20, 30, 210, 190), (224, 224), image),
        (png_of(ramp), (0, 0, 256, 1), (256, 1), Image.fromarray(ramp)),
    ]:
        want = v2.Normalize(mean, std)(to_float(picture))
        got = _native.render_image(
            data, crop, size, (0, 0, *size), float32=True, mean=mean, std=std, multiply=multiply
        )
        assert got == want.numpy().tobytes()


def test_padding_of_a_window_is_black_before_normalisation() -> None:
    data = (IMAGES / "leaf_baseline.jpg").read_bytes()
    got = _native.render_image(
        data, (0, 0, 256, 256), (4, 4), (-1, 0, 6, 4), float32=True, mean=IMAGENET[0], std=IMAGENET[1]
    )
    planes = np.frombuffer(got, np.float32).reshape(3, 4, 6)
    black = -np.array(IMAGENET[0], np.float32) / np.array(IMAGENET[1], np.float32)
    assert (planes[:, :, [0, 5]] == black[:, None, None]).all()


def test_crop_outside_the_picture_is_refused() -> None:
    data = (IMAGES / "leaf_baseline.jpg").read_bytes()
    with pytest.raises(
        BadInputError, match=r"the crop 10x10 at \(250, 0\) does not lie in a picture of 256x256"
    ):
        _native.render_image(data, (250, 0, 10, 10), (5, 5), (0, 0, 5, 5))


def png_of(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    Image.fromarray(array).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize("kind", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_png_modes_written_by_pillow_come_back(kind: str, tmp_path: Path) -> None:
    leaf = Image.open(IMAGES / "leaf_baseline.jpg").resize((61, 47))
    if kind == "I;16":
        values = np.asarray(leaf.convert("L")).astype(np.uint16) * 257
        Image.fromarray(values).save(tmp_path / "x.png")
        want = leaf.convert("L").convert("RGB")
    else:
        leaf.convert(kind).save(tmp_path / "x.png")
        want = Image.open(tmp_path / "x.png").convert("RGB")
    assert _native.decode_rgb((tmp_path / "x.png").read_bytes())[2] == want.tobytes()


# --- real inputs beside the checkout ---


def odd_rows(shared: Path) -> list[dict[str, str]]:
    with (shared / "data/odd-images/manifest.csv").open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if not row["file"].endswith(".tar")]


def test_odd_images_have_one_documented_answer_each(shared: Path) -> None:
    wrong = []
    for row in odd_rows(shared):
        path = shared / "data/odd-images" / row["file"]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                want = hashlib.sha256(Image.open(path).convert("RGB").tobytes()).hexdigest()
        except Exception:
            want = "refused"
        try:
            got = hashlib.sha256(_native.decode_rgb(path.read_bytes())[2]).hexdigest()
        except (CorruptError, BadInputError):
            got = "refused"
        if (got != want) != (row["file"] in OWN_ANSWER):
            wrong.append(row["file"])
    assert wrong == []


def test_jpegs_are_refused_where_the_manifest_says_pillow_refuses(shared: Path) -> None:
    # Newer Pillow reads this one: its parser of EXIF resolution became tolerant.
    tolerated = {"exif-orientation/truncated_exif_dpi.jpg"}
    slow = {"huge-dimensions/leaf_claims_12000x12000.jpg"}  # its pixels are compared above
    for row in odd_rows(shared):
        data = (shared / "data/odd-images" / row["file"]).read_bytes()
        if data.startswith(b"\xff\xd8\xff") and row["file"] not in tolerated | slow:
            assert stoker_refuses(data) == row["pillow_default"].startswith("error"), row["file"]


def test_exif_folder_shows_as_pillow_transposes(shared: Path) -> None:
    for path in sorted((shared / "data/odd-images/exif-orientation").iterdir()):
        image = Image.open(path)
        image.load()
        shown = ImageOps.exif_transpose(image).convert("RGB")
        assert _native.decode_rgb(path.read_bytes(), exif_apply=True)[2] == shown.tobytes(), path.name


def sample_of_real_files(shared: Path) -> list[Path]:
    leaves = sorted((shared / "data/plantvillage-7class").glob("*/*/*"))
    photos = sorted(p for p in (shared / "data/photos").glob("*/*") if p.stat().st_size < 400_000)
    return random.Random(2).sample(leaves, 60) + random.Random(3).sample(photos, 8)


def test_leaves_and_photos_are_pillows_bytes(shared: Path) -> None:
    rng = random.Random(4)
    assert [line for path in sample_of_real_files(shared) for line in differences(path, rng, 8)] == []


@pytest.mark.skipif("STOKER_ALL_LEAVES" not in os.environ, reason="all 2,321 leaves: set STOKER_ALL_LEAVES")
def test_every_leaf_and_photo_is_pillows_bytes(shared: Path) -> None:
    rng = random.Random(5)
    files = sorted((shared / "data/plantvillage-7class").glob("*/*/*"))
    files += sorted(p for p in (shared / "data/photos").glob("*/*") if p.suffix.lower() in {".jpg", ".jpeg"})
    assert [line for path in files for line in differences(path, rng, 3)] == []


# --- the other Pillow ---


@pytest.mark.parametrize(
    "folder", [p for p in os.environ.get("STOKER_OTHER_PILLOW", "").split(os.pathsep) if p]
)
def test_other_pillow_has_its_own_arithmetic(folder: str) -> None:
    """``STOKER_OTHER_PILLOW``: folders made by ``pip install --target FOLDER pillow==12.3.0`` and the like."""
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([folder, os.environ["PYTHONPATH"]]))
    script = Path(__file__).with_name("pillow_reference.py")
    done = subprocess.run(
        [sys.executable, script, "11", *SAME], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Pillow {PIL.__version__}:" not in done.stdout, (
        "the folder holds the Pillow that is installed anyway"
    )


def test_the_two_arithmetics_differ_where_their_pass_order_does() -> None:
    data = (IMAGES / "leaf_baseline.jpg").read_bytes()
    image = Image.open(IMAGES / "leaf_baseline.jpg").convert("RGB")
    tall = Case((0, 0, 230, 256), (224, 64), (0, 0, 224, 64), False, "bilinear")
    assert tall.stoker(data, 12) != tall.stoker(data, 13)
    assert tall.stoker(data, ARITHMETIC) == tall.pillow(image)
    wide = Case((0, 0, 256, 230), (64, 224), (0, 0, 64, 224), False, "bilinear")
    assert wide.stoker(data, 12) == wide.stoker(data, 13) == wide.pillow(image)
