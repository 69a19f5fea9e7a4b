"""What Stoker sees of a training script that does not know it: hooks on torch that write events into the ring.

``install()`` is called at the interpreter's start by the injected ``sitecustomize``, or by the notebook. Nothing is
imported that the script does not import itself: torch is patched once the script has loaded it. ``stop()`` puts everything
back.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from . import on_import, report, sites

_stops: list[Callable[[], None]] = []


def install() -> None:
    """Hooks this process, if ``STOKER_RING`` and ``STOKER_RUN`` name a recording. A second call does nothing."""
    if _stops or not os.environ.get("STOKER_RING") or not os.environ.get("STOKER_RUN"):
        return
    from . import process

    report.begin()
    _stops.append(process.patch())
    on_import.when_loaded("torch", _torch_loaded)
    os.register_at_fork(after_in_child=sites.silence)


def _torch_loaded() -> None:
    from . import torch_hooks

    report.set_python(
        torch_version=getattr(sys.modules["torch"], "__version__", None), torch_imported_ns=report.now()
    )
    _stops.append(torch_hooks.patch())
    if os.environ.get("STOKER_ACCELERATE"):
        _accelerate()


def _accelerate() -> None:
    try:
        from stoker.accelerate import patch_dataloader

        patch_dataloader(report.set_accelerate)
    except Exception as error:
        report.set_accelerate(False, f"{type(error).__name__}: {error}")


def stop() -> None:
    """Takes every hook out again and writes no more events."""
    on_import.stop()
    while _stops:
        undo = _stops.pop()
        undo()
    sites.silence()
