"""Stoker keeps a borrowed GPU fed, and its work alive.

Names are loaded on first use: ``import stoker`` costs a few milliseconds and imports neither torch nor NumPy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._native import BadInputError as BadInputError
    from ._native import CorruptError as CorruptError
    from ._native import Error as Error
    from ._native import InUseError as InUseError
    from ._native import IoError as IoError
    from ._native import NoSpaceError as NoSpaceError
    from .acceleration import accelerate as accelerate
    from .loader import ImageLoader as ImageLoader
    from .notebook import load_ipython_extension as load_ipython_extension
    from .notebook import unload_ipython_extension as unload_ipython_extension
    from .sampling import Weighted as Weighted
    from .session import BudgetReached as BudgetReached
    from .session import Session as Session
    from .session import seed_everything as seed_everything
    from .store import Keep as Keep
    from .store import Store as Store
    from .transforms import CenterCrop as CenterCrop
    from .transforms import Normalize as Normalize
    from .transforms import RandomHorizontalFlip as RandomHorizontalFlip
    from .transforms import RandomResizedCrop as RandomResizedCrop
    from .transforms import Resize as Resize

__version__ = "0.1.0"

# name → the module that has it
_HOME = {
    "Error": "._native",
    "CorruptError": "._native",
    "NoSpaceError": "._native",
    "InUseError": "._native",
    "BadInputError": "._native",
    "IoError": "._native",
    "Keep": ".store",
    "Store": ".store",
    "BudgetReached": ".session",
    "Session": ".session",
    "seed_everything": ".session",
    "load_ipython_extension": ".notebook",
    "unload_ipython_extension": ".notebook",
    "ImageLoader": ".loader",
    "Weighted": ".sampling",
    "RandomResizedCrop": ".transforms",
    "Resize": ".transforms",
    "CenterCrop": ".transforms",
    "RandomHorizontalFlip": ".transforms",
    "Normalize": ".transforms",
    "accelerate": ".acceleration",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'stoker' has no attribute '{name}'")
    value = getattr(importlib.import_module(home, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
