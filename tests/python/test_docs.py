"""The samples in the docs are run: every fenced block that follows ``<!-- run -->``, page by page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs/guide").glob("*.md"))]
MARK = "<!-- run -->"
BLOCK = re.compile(rf"^{re.escape(MARK)}\n```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLE = ROOT / "examples/plant-disease"


@dataclass(frozen=True)
class Sample:
    """One block; what it prints is not compared, but it must exit with 0."""

    page: Path
    line: int
    language: str
    text: str

    def command(self) -> list[str]:
        """Each language's own interpreter, stopping at the first failure."""
        if self.language == "python":
            return [sys.executable, "-c", self.text]
        return ["bash", "-euo", "pipefail", "-c", self.text]


def samples(page: Path) -> list[Sample]:
    """Lists a page's marked blocks."""
    text = page.read_text()
    found = [Sample(page, text.count("\n", 0, m.start()) + 1, m[1], m[2]) for m in BLOCK.finditer(text)]
    assert len(found) == text.count(f"\n{MARK}\n"), f"{page.name}: a mark is not followed by a fenced block"
    return found


def project(folder: Path) -> None:
    """What the guide's reader has: the example's scripts, and the leaves as data/."""
    for script in EXAMPLE.glob("*.py"):
        shutil.copy(script, folder)
    (folder / "data").symlink_to(EXAMPLE / "leaves")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_samples_run_as_written(page: Path, tmp_path: Path) -> None:
    project(tmp_path)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    for sample in samples(page):
        done = subprocess.run(
            sample.command(),
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=240,
        )
        where = f"{page.name}:{sample.line}"
        assert done.returncode == 0, f"{where} exited with {done.returncode}\n{done.stdout}\n{done.stderr}"


def test_every_page_shown_is_there() -> None:
    link = re.compile(r"\]\((?!https?:|#)([^)#]+)")
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in link.findall(page.read_text())
        if not (page.parent / target).exists()
    ]
    assert not broken, "\n".join(broken)
