"""Which samples an epoch has: all of them by default, drawn by weight, or a list of one's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from . import _native
from ._errors import bad_input

if TYPE_CHECKING:
    from ._native import _Order


class Weighted:
    """Samples drawn with replacement, in proportion to a weight each.

    Works across ranks and resumes exactly: each position of the epoch has its own draw, and ranks take turns.

    Args:
        weights: One number ≥ 0 a sample, of any scale.
        num_samples: Draws in an epoch over all ranks; default: as many as there are samples.
    """

    def __init__(self, weights: Iterable[float], num_samples: int | None = None) -> None:
        self._weights: list[float] | None = [float(w) for w in weights]
        self.num_samples = num_samples

    @classmethod
    def by_class(cls, num_samples: int | None = None) -> Weighted:
        """Every class as often as any other: a sample weighs 1 / (samples of its class)."""
        made = cls((), num_samples)
        made._weights = None
        return made

    def weights_for(self, labels: Sequence[int]) -> list[float]:
        """One weight a label."""
        if self._weights is not None:
            return self._weights
        counts = Counter(labels)
        return [1.0 / counts[label] for label in labels]


def make_order(
    sampler: Weighted | Sequence[int] | None, shuffle: bool, seed: int, labels: Sequence[int]
) -> tuple[_Order, str]:
    """The order of ``ImageLoader``'s ``sampler`` and ``shuffle``, and its kind by name.

    Raises:
        BadInputError: a sampler of another kind, or one that does not fit the samples.
    """
    population = len(labels)
    kind = "shuffle" if shuffle else "as-given"
    if sampler is None:
        return _native._Order.create(kind, seed, population, None, None, 0), kind
    if isinstance(sampler, Weighted):
        if shuffle:
            raise bad_input(
                "shuffle=True and a Weighted sampler exclude each other", "weighted draws are random already"
            )
        weights = sampler.weights_for(labels)
        draws = sampler.num_samples or 0
        return _native._Order.create("weighted", seed, population, None, weights, draws), "weighted"
    if not isinstance(sampler, Sequence) or not all(isinstance(i, int) for i in sampler):
        raise bad_input(
            f"sampler is a {type(sampler).__name__}",
            "give stoker.Weighted, or a list of sample numbers; a torch DataLoader with its sampler goes "
            "through stoker.accelerate()",
        )
    if any(i < 0 for i in sampler):
        raise bad_input("the sampler's list has a negative sample number", "samples are numbered from 0")
    return _native._Order.create(kind, seed, population, list(sampler), None, 0), f"{kind} list"
