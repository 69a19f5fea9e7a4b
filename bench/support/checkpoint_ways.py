"""The ways to save a checkpoint that bench/checkpoint.py compares, and the state that they save."""

from __future__ import annotations

import asyncio
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
from stoker.store import Keep, Store

State = dict[str, Any]
Load = Callable[[], Any]
TORCH_SAVE = "torch.save"
OURS = "stoker.Store"
FROZEN = "stoker.Store (90 % frozen)"
KEYS = ("blocked", "wall", "cpu")
SIDE = 512


def _none() -> None:
    """Nothing is on its way."""


@dataclass
class Way:
    """One way to save: ``save`` blocks as long as it does, ``finish`` waits for the rest."""

    save: Callable[[int], object]
    finish: Callable[[], object] = _none
    load: Load | None = None
    durable: str = "no"
    verified: str = "no"
    frozen: bool = False
    taken: dict[str, list[float]] = field(default_factory=lambda: {key: [] for key in KEYS})


def make_state(size_bytes: int) -> State:
    """A model and its Adam moments, 3 tensors a layer and a step, ``size_bytes`` in all."""
    torch.manual_seed(0)
    count = max(1, size_bytes // (3 * SIDE * SIDE * 4))
    model = {f"layers.{i}.weight": torch.randn(SIDE, SIDE) for i in range(count)}
    moments = {
        i: {
            "step": torch.tensor(1.0),
            "exp_avg": torch.randn(SIDE, SIDE),
            "exp_avg_sq": torch.rand(SIDE, SIDE),
        }
        for i in range(count)
    }
    return {"model": model, "optimizer": {"state": moments, "lr": 1e-3}, "epoch": 3}


def flat(state: Any, at: str = "") -> dict[str, torch.Tensor]:
    """The tensors by their path."""
    if isinstance(state, torch.Tensor):
        return {at: state}
    found: dict[str, torch.Tensor] = {}
    for key, item in state.items() if isinstance(state, dict) else ():
        found |= flat(item, f"{at}.{key}")
    return found


def tensors(state: Any) -> list[torch.Tensor]:
    """The tensors in the state's order."""
    return list(flat(state).values())


def total_bytes(state: State) -> int:
    """Bytes of all tensors."""
    return sum(t.numel() * t.element_size() for t in tensors(state))


def sync(path: Path) -> None:
    """Fsync of a file or a directory."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


class Ways:
    """Every way to save that is installed."""

    def __init__(self, root: Path, state: State) -> None:
        self.root, self.state = root, state
        self.found: dict[str, Way] = {}
        for add in (self._stoker, self._torch, self._safetensors, self._dcp, self._torchsnapshot):
            try:
                add()
            except ImportError as problem:
                print(f"{add.__name__[1:]} is left out: {problem}", file=sys.stderr)

    def _stoker(self) -> None:
        for name, frozen in ((OURS, False), (FROZEN, True)):
            store = Store(self.root / name.split()[-1].strip("()").lower(), keep=Keep(last=1))
            self.found[name] = Way(
                lambda step, store=store: store.save(step, **self.state),
                store.wait,
                lambda store=store: dict(store.load()),
                durable="yes",
                verified="every tensor",
                frozen=frozen,
            )

    def _torch(self) -> None:
        plain, new, durable = (self.root / name for name in ("plain.pt", "new.pt", "durable.pt"))

        def save_durably(_step: int) -> None:
            torch.save(self.state, new)
            sync(new)
            os.replace(new, durable)
            sync(self.root)

        self.found[TORCH_SAVE] = Way(
            lambda _step: torch.save(self.state, plain), load=lambda: torch.load(plain, weights_only=True)
        )
        self.found["torch.save + fsync + rename"] = Way(
            save_durably, load=lambda: torch.load(durable, weights_only=True), durable="yes"
        )

    def _safetensors(self) -> None:
        from safetensors.torch import load_file, save_file

        path = self.root / "plain.safetensors"

        def load() -> State:
            loaded = load_file(path)
            return {name: loaded[name] for name in flat(self.state)}  # the file has an order of its own

        self.found["safetensors.save_file"] = Way(lambda _step: save_file(flat(self.state), path), load=load)

    def _dcp(self) -> None:
        import torch.distributed.checkpoint as dcp

        path, background = self.root / "dcp", self.root / "dcp-async"
        pending: list[Any] = []

        def save_async(_step: int) -> None:
            for earlier in pending:
                earlier.result()
            pending[:] = [dcp.async_save(self.state, checkpoint_id=str(background))]

        def finish() -> None:
            for last in pending:
                last.result()
            pending.clear()

        self.found["DCP.save"] = Way(
            lambda _step: dcp.save(self.state, checkpoint_id=str(path), no_dist=True), durable="files only"
        )
        self.found["DCP.async_save"] = Way(save_async, finish, durable="files only")

    def _torchsnapshot(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from torchsnapshot import Snapshot, StateDict

        asyncio.set_event_loop(asyncio.new_event_loop())
        path, background = self.root / "snapshot", self.root / "snapshot-async"
        app = {"state": StateDict(**self.state)}
        pending: list[Any] = []

        def take(_step: int) -> None:
            Snapshot.take(str(path), app)

        def save_async(_step: int) -> None:
            finish()
            pending.append(Snapshot.async_take(str(background), app))

        def finish() -> None:
            for last in pending:
                last.wait()
            pending.clear()

        self.found["torchsnapshot.take"] = Way(take)
        self.found["torchsnapshot.async_take"] = Way(save_async, finish)


def check(ways: dict[str, Way], state: State) -> None:
    """Saves with each way that can load, and compares bit by bit."""
    for name, way in ways.items():
        if way.load is None:
            continue
        way.save(0)
        way.finish()
        if not all(torch.equal(a, b) for a, b in zip(tensors(way.load()), tensors(state), strict=True)):
            raise SystemExit(f"error: what {name} loads is not what was saved")
