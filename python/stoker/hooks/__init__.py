"""What Stoker sees of a training script that does not know it: hooks on torch that write events.

``install()`` is called at the interpreter's start by the injected ``sitecustomize``, or by the notebook.
Nothing is imported that the script does not import itself: torch is patched once the script has loaded it.
``stop()`` puts everything back.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable

from . import hook_file, on_import, sites

_stops: list[Callable[[], None]] = []


def install() -> None:
    """Hooks this process, if ``STOKER_RING`` and ``STOKER_RUN`` name a recording; once."""
    if _stops or not os.environ.get("STOKER_RING") or not os.environ.get("STOKER_RUN"):
        return
    from . import process

    hook_file.begin()
    _stops.append(process.patch())
    on_import.when_loaded("torch", _torch_loaded)


def _torch_loaded() -> None:
    from . import torch_hooks

    version = getattr(sys.modules["torch"], "__version__", None)
    hook_file.set_python(torch_version=version, torch_imported_ns=hook_file.now())
    if os.environ.get("STOKER_ACCELERATE"):
        _accelerate()  # first, so that the recorder sees the loader that is really used
    _stops.append(torch_hooks.patch())


def _accelerate() -> None:
    try:
        importlib.import_module("stoker.acceleration").patch_dataloader(hook_file.add_accelerate)
    except Exception as error:
        hook_file.add_accelerate(False, f"{type(error).__name__}: {error}")


def stop() -> None:
    """Takes every hook out again and writes no more events."""
    on_import.stop()
    while _stops:
        undo = _stops.pop()
        undo()
    sites.silence()
