"""The random generators of a process: Python's, NumPy's, torch's and CUDA's."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class RandomState:
    """All generators at one instant, as their owners give them: taken at every step, converted at saves.

    NumPy counts only when it is loaded and CUDA only when it is initialised, so that asking starts neither.
    """

    python: Any
    numpy: Any
    torch: Tensor
    cuda: list[Tensor] | None

    @classmethod
    def now(cls) -> RandomState:
        """The state of every generator that is in use."""
        numpy = sys.modules.get("numpy")
        return cls(
            python=random.getstate(),
            numpy=numpy.random.get_state() if numpy is not None else None,
            torch=torch.get_rng_state(),
            cuda=torch.cuda.get_rng_state_all() if cuda_in_use() else None,
        )

    def to_state(self) -> dict[str, Any]:
        """The same as tensors and plain values."""
        version, words, gauss = self.python
        state: dict[str, Any] = {
            "python": {"version": version, "words": torch.tensor(words), "gauss": gauss},
            "torch": self.torch,
        }
        if self.numpy is not None:
            name, keys, at, has_gauss, cached = self.numpy
            words64 = torch.tensor(keys.tolist())
            state["numpy"] = {
                "name": name,
                "words": words64,
                "at": at,
                "has_gauss": has_gauss,
                "gauss": cached,
            }
        if self.cuda is not None:
            state["cuda"] = self.cuda
        return state


def cuda_in_use() -> bool:
    """Whether this process has touched a GPU; asking does not."""
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def restore(state: dict[str, Any]) -> list[str]:
    """Sets the generators to what ``RandomState.to_state`` returned; names those that it could not set."""
    python = state["python"]
    random.setstate((python["version"], tuple(python["words"].tolist()), python["gauss"]))
    torch.set_rng_state(state["torch"])
    if (saved := state.get("numpy")) is not None:
        import numpy

        keys = numpy.array(saved["words"].tolist(), dtype=numpy.uint32)
        numpy.random.set_state((saved["name"], keys, saved["at"], saved["has_gauss"], saved["gauss"]))
    if (cuda := state.get("cuda")) is None:
        return []
    if not torch.cuda.is_available() or torch.cuda.device_count() != len(cuda):
        return [f"the random state of {len(cuda)} GPU(s)"]
    torch.cuda.set_rng_state_all(cuda)
    return []


def seed_everything(seed: int) -> None:
    """Seeds Python, NumPy and torch (CUDA included), and asks cuDNN for repeatable algorithms.

    Two things remain the caller's: ``PYTHONHASHSEED`` must be set before Python starts, and kernels without a
    repeatable version need ``torch.use_deterministic_algorithms(True)``, which refuses them.
    """
    random.seed(seed)
    torch.manual_seed(seed)
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(seed % 2**32)
