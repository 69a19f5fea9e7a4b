"""clang-tidy over the sources, many files in one run.

Most of what clang-tidy does is to read the same standard headers again for each file (4 s a file, 1 s ours).
So the files of one folder are read together, as one source that includes them; where names collide, singly.
What was clean is stamped, and left alone until the file, a header of the project that it includes, or the
list of checks changes.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import subprocess
from collections import defaultdict
from pathlib import Path

TOGETHER = 10  # files read in one run: more saves time, but less than half of it is the headers then
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


class Tidy:
    """One tree, its compile commands and its stamps (build/tidy)."""

    def __init__(self, root: Path, resource_dir: str) -> None:
        """Reads the compile commands of build/release, which must be configured."""
        self.root = root
        self.resource_dir = resource_dir
        self.stamps = root / "build/tidy"
        self.stamps.mkdir(parents=True, exist_ok=True)
        self.version = (root / ".clang-tidy").read_bytes() + resource_dir.encode()
        entries = json.loads((root / "build/release/compile_commands.json").read_text())
        self.headers: dict[Path, frozenset[Path]] = {}
        self.flags = {entry["file"]: flags_of(entry["command"]) for entry in entries}

    def headers_of(self, file: Path) -> frozenset[Path]:
        """Follows the project's own includes."""
        if file not in self.headers:
            found: set[Path] = set()
            for name in INCLUDE.findall(file.read_text(errors="replace")):
                header = next((path for path in self.places(file, name) if path.is_file()), None)
                if header is not None:
                    found |= {header} | self.headers_of(header)
            self.headers[file] = frozenset(found)
        return self.headers[file]

    def places(self, file: Path, name: str) -> list[Path]:
        """Lists where an include of that name may be found."""
        return [
            file.parent / name,
            *(self.root / folder / name for folder in ("include", "src", "cli", "tests")),
        ]

    def stamp(self, file: Path) -> Path:
        """Names the stamp that says "this file, as it is now, was clean"."""
        digest = hashlib.sha256(self.version)
        for part in [file, *sorted(self.headers_of(file))]:
            digest.update(hashlib.sha256(part.read_bytes()).digest())
        return self.stamps / f"{file.name}-{digest.hexdigest()[:24]}"

    def run(self, source: Path, flags: list[str]) -> str:
        """Runs clang-tidy once; returns the complaints."""
        tool = self.root / ".venv/bin/clang-tidy"
        config = f"--config-file={self.root / '.clang-tidy'}"
        command = [tool, "--quiet", config, source, "--", *flags, "-resource-dir", self.resource_dir]
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True)
        return done.stdout + done.stderr if done.returncode else ""

    def check(self, files: list[Path]) -> str:
        """Checks a group of files with the same flags; stamps those that are clean."""
        flags = self.flags[str(files[0])]
        if len(files) == 1:
            found = self.run(files[0], flags)
        else:
            together = self.stamps / f"{self.stamp(files[0]).name}.cpp"
            together.write_text("".join(f'#include "{file}"\n' for file in files))
            found = self.run(together, flags)
            together.unlink()
            if found:  # perhaps names that collide; one by one they do not, and a true fault shows again
                return "".join(self.check([file]) for file in files)
        if not found:
            for file in files:
                self.stamp(file).touch()
        return found

    def groups(self, files: list[Path]) -> list[list[Path]]:
        """Splits into groups that can be read together, the largest first."""
        by_flags: dict[tuple[str, ...], list[Path]] = defaultdict(list)
        for file in files:
            by_flags[(str(file.parent), *self.flags[str(file)])].append(file)
        split = (
            group[i : i + TOGETHER] for group in by_flags.values() for i in range(0, len(group), TOGETHER)
        )
        return sorted(split, key=len, reverse=True)


def flags_of(command: str) -> list[str]:
    """Takes from a compile command what a parser needs: language, defines, include paths."""
    words = iter(shlex.split(command))
    flags = ["-Wno-everything"]
    for word in words:
        if word in {"-isystem", "-I", "-D", "-include"}:
            flags += [word, next(words)]
        elif word.startswith(("-std=", "-D", "-I", "-isystem")):
            flags.append(word)
    return flags


def resource_directory() -> str | None:
    """Finds the headers of Clang 14, which clang-tidy from PyPI does not bring."""
    for compiler in ("clang++-14", "clang++"):
        try:
            directory = subprocess.check_output([compiler, "-print-resource-dir"], text=True).strip()
        except (OSError, subprocess.CalledProcessError):
            continue
        if "/14" in directory:
            return directory
    return None


def complaints(root: Path, names: list[str]) -> str:
    """Checks the named sources; returns what clang-tidy complains of, or nothing."""
    resource_dir = resource_directory()
    if resource_dir is None:
        print("lint: clang-tidy 14 needs Clang 14's headers, which this distribution lacks: not run")
        return ""
    tidy = Tidy(root, resource_dir)
    files = [root / name for name in names]
    unbuilt = [str(file.relative_to(root)) for file in files if str(file) not in tidy.flags]
    changed = [file for file in files if str(file) in tidy.flags and not tidy.stamp(file).exists()]
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        found = list(pool.map(tidy.check, tidy.groups(changed)))
    return "".join([f"{name}: no target builds it\n" for name in unbuilt] + found)
