"""IPython magics: the recorder of ``stoker run`` for a notebook, whose kernel is there already.

``%load_ext stoker`` adds ``%%stoker`` (record one cell, then show what made it slow), and for more than one cell
``%stoker_start``, ``%stoker_report`` and ``%stoker_stop``. The recorder is a child process that watches the kernel; the
report is shown inline, because on Colab and Kaggle the machine's 127.0.0.1 is not the browser's.
"""

from __future__ import annotations

import html
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import hooks
from .hooks import hook_file, sites

_FRAME_PX = 760


@dataclass
class _Recording:
    """The recorder at work and where it writes."""

    process: subprocess.Popen[str]
    run: str


_recording: _Recording | None = None
_last_run: str | None = None


def command_path() -> str:
    """The ``stoker`` command: inside the package, beside this interpreter, or in PATH.

    Raises:
        FileNotFoundError: it is in none of these places.
    """
    beside = [Path(__file__).parent / "bin" / "stoker", Path(sys.executable).parent / "stoker"]
    found = next((str(path) for path in beside if os.access(path, os.X_OK)), None) or shutil.which("stoker")
    if found is None:
        raise FileNotFoundError("the stoker command is not installed beside this package, nor in PATH")
    return found


def start(name: str = "notebook") -> str:
    """Records this process until ``stop()``; returns the run's folder. While one is under way, that one goes on."""
    global _recording, _last_run
    if _recording is not None and _recording.process.poll() is None:
        return _recording.run
    stop()
    words = [command_path(), "run", "--attach", str(os.getpid()), "--name", name]
    # A session of its own: the kernel is interrupted by a signal to its whole process group.
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    ready = _read_object(process)
    os.environ["STOKER_RING"], os.environ["STOKER_RUN"] = ready["ring"], ready["run"]
    sites.reset()
    hooks.install()
    _recording = _Recording(process, ready["run"])
    _last_run = ready["run"]
    return _recording.run


def stop() -> str | None:
    """Ends the recording and takes the hooks out; returns the last run's folder."""
    global _recording
    if _recording is None:
        return _last_run
    hooks.stop()
    for name in ("STOKER_RING", "STOKER_RUN"):
        os.environ.pop(name, None)
    _recording.process.terminate()
    _recording.process.communicate()
    _recording = None
    return _last_run


def show(run: str | None = None) -> None:
    """Shows a run's verdict as text and its page in a frame; the newest run of this kernel if none is named."""
    from IPython.display import HTML, display

    where = run or _last_run
    words = [command_path(), "report"] + ([where] if where else [])
    print(_output(words))
    if where is None:
        return
    target = Path(where) / "report.html"
    try:
        _output([*words, "--html", "-o", str(target)])
    except RuntimeError as no_page:
        print(no_page)  # a build without the page still has the text
        return
    page = html.escape(target.read_text(encoding="utf-8"))
    style = f"width:100%;height:{_FRAME_PX}px;border:0"
    display(HTML(f'<div><iframe title="Stoker report" srcdoc="{page}" style="{style}"></iframe></div>'))  # type: ignore[no-untyped-call]


def _output(words: list[str]) -> str:
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return done.stdout.rstrip()


def _read_object(process: subprocess.Popen[str]) -> dict[str, str]:
    """The one JSON object that the recorder prints when it is ready."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.rstrip() == "}":
            return dict(json.loads("".join(lines)))
    _, said = process.communicate()
    raise RuntimeError(said.strip() or "the recorder ended before it was ready")


def _record_cell(shell: Any, line: str, cell: str) -> None:
    start(line.strip() or "notebook")
    try:
        result = shell.run_cell(cell)
        error = result.error_in_exec or result.error_before_exec
        if error is not None:
            hook_file.set_exception(type(error).__name__, str(error), "")
    finally:
        stop()
    show()


def load_ipython_extension(shell: Any) -> None:
    """What ``%load_ext stoker`` calls."""

    def stoker(line: str, cell: str) -> None:
        """Record this cell, then show what made it slow. A word after the name is the run's name."""
        _record_cell(shell, line, cell)

    def stoker_start(line: str) -> None:
        """Record from here on, over cells, until %stoker_stop."""
        print(f"recording into {start(line.strip() or 'notebook')}")

    def stoker_stop(_line: str) -> None:
        """End the recording; %stoker_report shows it."""
        print(f"recorded in {stop()}")

    def stoker_report(line: str) -> None:
        """Show the run of this kernel, or the run named, as text and as a page."""
        show(line.strip() or None)

    shell.register_magic_function(stoker, "cell")
    for magic in (stoker_start, stoker_stop, stoker_report):
        shell.register_magic_function(magic, "line")


def unload_ipython_extension(_shell: Any) -> None:
    """What ``%unload_ext stoker`` calls."""
    stop()
