"""Makes the picture folders that bench/loader.py reads: photos of one size, cut from the photographs in shared/data.

``leaves`` is the plant data as it is. ``500x375`` and ``1024x768`` are Lanczos crops of the photographs, JPEG quality
90 to 92, 4:2:0. They lie outside the repository, in ``$STOKER_CACHE`` (default ``~/.cache/stoker``)``/bench``; a set
that is whole is used again. Each folder gets a tar beside it for the loaders that read nothing else.
"""

from __future__ import annotations

import io
import os
import random
import shutil
import tarfile
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
SIZES = {"500x375": (500, 375, 400), "1024x768": (1024, 768, 200)}  # width, height, files
NAMES = ["leaves", *SIZES]
VERSION = "1"
CLASSES = 4
# Two pictures in eight orientations: a bench would decode the same one again and again.
LEFT_OUT = "exif-orientation"


def shared_data() -> Path:
    """The folder with the real inputs, beside the checkout."""
    return ROOT.parent / "shared/data"


def cache_folder() -> Path:
    base = os.environ.get("STOKER_CACHE")
    return (Path(base) if base else Path.home() / ".cache/stoker") / "bench"


def leaves() -> Path:
    whole = shared_data() / "plantvillage-7class/train"
    return whole if whole.is_dir() else ROOT / "examples/plant-disease/leaves/train"


def photographs(width: int, height: int) -> list[Image.Image]:
    """The sources that are large enough, as RGB."""
    found = []
    for path in sorted((shared_data() / "photos").rglob("*")):
        if path.suffix.lower() not in (".jpg", ".jpeg") or LEFT_OUT in path.parts:
            continue
        with Image.open(path) as image:
            if image.width >= width and image.height >= height:
                found.append(image.convert("RGB"))
    if not found:
        raise SystemExit(f"error: no photograph of {width}x{height} or more under {shared_data() / 'photos'}")
    return found


def random_box(image: Image.Image, width: int, height: int, chance: random.Random) -> tuple[float, ...]:
    """A part of the picture in the wanted shape, from the wanted size up to the largest that fits."""
    largest = min(image.width / width, image.height / height)
    scale = chance.uniform(1.0, largest)
    left = chance.uniform(0, image.width - scale * width)
    top = chance.uniform(0, image.height - scale * height)
    return left, top, left + scale * width, top + scale * height


def make_photos(folder: Path, width: int, height: int, count: int) -> None:
    chance = random.Random(f"{width}x{height}")
    sources = photographs(width, height)
    for number in range(count):
        source = sources[number % len(sources)]
        box = random_box(source, width, height, chance)
        part = source.resize((width, height), Image.Resampling.LANCZOS, box=box)
        place = folder / f"class-{number % CLASSES}"
        place.mkdir(parents=True, exist_ok=True)
        part.save(place / f"{number:04}.jpg", quality=chance.choice((90, 91, 92)), subsampling="4:2:0")


def make_tar(folder: Path, tar: Path) -> None:
    """WebDataset's convention: a sample is the members of one name, here the picture and its class number."""
    classes = sorted(path.name for path in folder.iterdir() if path.is_dir())
    whole = tar.with_suffix(".part")
    with tarfile.open(whole, "w") as archive:
        pictures = [p for p in sorted(folder.rglob("*")) if p.suffix.lower() in (".jpg", ".jpeg")]
        for number, path in enumerate(pictures):
            label = str(classes.index(path.relative_to(folder).parts[0])).encode()
            for suffix, content in (("jpg", path.read_bytes()), ("cls", label)):
                member = tarfile.TarInfo(f"{number:06}.{suffix}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    whole.rename(tar)


def photo_set(name: str) -> Path:
    """The class folder of a set, made when it is not there yet; its tar is the folder's name with ``.tar``."""
    base = cache_folder()
    folder = base / f"{name}-v{VERSION}"
    if not folder.is_dir():
        base.mkdir(parents=True, exist_ok=True)
        if name == "leaves":
            folder.symlink_to(leaves(), target_is_directory=True)
        else:
            part = base / f"{name}.part"
            shutil.rmtree(part, ignore_errors=True)
            make_photos(part, *SIZES[name])
            part.rename(folder)
    if not folder.with_suffix(".tar").is_file():
        make_tar(folder, folder.with_suffix(".tar"))
    return folder


if __name__ == "__main__":
    for one in NAMES:
        print(photo_set(one))
