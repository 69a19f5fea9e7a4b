"""Hooks on torch, installed once the script has imported it; docs/formats/events.md says what they report.

Each costs about a microsecond a step, not a module: torch's global forward hooks cost 0.43 ms a step on
EfficientNet-B3.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from . import loader_facts, on_import, sites
from .module_hooks import ModuleHooks
from .patching import Undo, all_of, compiling_test, replace

_DATA_START = sites.Site("data.start")
_DATA_WAIT = sites.Site("data.wait")
_DATA_EPOCH = sites.Site("data.epoch")
_DATA_END = sites.Site("data.end")
_BACKWARD = sites.Site("backward")
_OPTIMIZER = sites.Site("optimizer")
_CHECKPOINT = sites.Site("checkpoint")
_CHECKPOINT_LOAD = sites.Site("checkpoint.load")
_COMPILE = sites.Site("compile")


def patch() -> Undo:
    """Installs all of them; the result takes them out in reverse order."""
    modules = ModuleHooks()
    undo = [
        modules.patch(),
        _patch_loader(),
        _patch_backward(modules),
        _patch_optimizer(modules),
        _patch_files(),
        _patch_compile(),
    ]
    eval_frame = "torch._dynamo.eval_frame"
    on_import.when_loaded(eval_frame, lambda: modules.hook_class(sys.modules[eval_frame].OptimizedModule))

    return all_of(*undo)


def batch_samples(batch: Any) -> float:
    """Samples in a batch: the first dimension of the first array in it, or 0."""
    for _ in range(4):
        shape = getattr(batch, "shape", None)
        if shape is not None:
            return float(shape[0]) if len(shape) else 0.0
        if isinstance(batch, (list, tuple)) and batch:
            batch = batch[0]
        elif isinstance(batch, dict) and batch:
            batch = next(iter(batch.values()))
        else:
            break
    return 0.0


_starting: list[object] = []  # the loader whose iterator is being made: one may be made of another


def patch_iter(loader: type) -> Undo:
    """Hooks the start of an iteration over loaders of this class and its subclasses."""
    make = loader.__iter__  # type: ignore[attr-defined]

    @functools.wraps(make)
    def hooked_iter(self: Any) -> Iterator[Any]:
        if _starting:
            return make(self)  # type: ignore[no-any-return]
        _starting.append(self)
        _DATA_EPOCH.instant(_length(self))
        loader_facts.note(self)
        _DATA_START.begin()
        try:
            return make(self)  # type: ignore[no-any-return]
        finally:
            _DATA_START.end()
            _starting.clear()

    return replace(loader, "__iter__", hooked_iter)


def patch_next(iterator: type) -> Undo:
    """Hooks the wait for a batch in the iterators of this class and its subclasses."""
    take = iterator.__next__  # type: ignore[attr-defined]
    try:
        from stoker import _native
    except ImportError:  # the hooks go without the extension
        return replace(iterator, "__next__", _hooked_next(take))
    return replace(iterator, "__next__", _native._NextCall(take, _DATA_WAIT, _DATA_END))


def _hooked_next(take: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What ``_native._NextCall`` does, in Python."""

    @functools.wraps(take)
    def hooked_next(self: Any) -> Any:
        _DATA_WAIT.begin()
        try:
            batch = take(self)
        except StopIteration:
            _DATA_WAIT.end(0.0)
            _DATA_END.instant(0.0)
            raise
        except BaseException:
            _DATA_WAIT.end(0.0)
            raise
        _DATA_WAIT.end(batch_samples(batch))
        return batch

    return hooked_next


def _length(loader: Any) -> float:
    try:
        return float(len(loader))
    except Exception:
        return -1.0


def _patch_loader() -> Undo:
    from torch.utils.data import dataloader

    undo = [patch_iter(dataloader.DataLoader), patch_next(dataloader._BaseDataLoaderIter)]

    def ours(module: str, patch_class: Callable[[type], Undo], name: str) -> None:
        on_import.when_loaded(module, lambda: undo.append(patch_class(getattr(sys.modules[module], name))))

    ours("stoker._batches", patch_next, "EpochIterator")
    ours("stoker.loader", patch_iter, "ImageLoader")
    ours("stoker.acceleration", patch_iter, "AcceleratedLoader")
    return lambda: all_of(*undo)()


def _patch_backward(modules: ModuleHooks) -> Undo:
    """``Tensor.backward`` calls ``torch.autograd.backward`` by name, so two functions cover all."""
    import torch

    is_compiling = compiling_test()
    depth = 0  # activation checkpointing runs a backward inside a backward
    get_ident, main = threading.get_ident, modules.main

    def hooked(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            if is_compiling() or depth or get_ident() != main:
                return function(*args, **kwargs)
            depth = 1
            _BACKWARD.begin()
            try:
                return function(*args, **kwargs)
            finally:
                _BACKWARD.end()
                depth = 0

        return run

    autograd = torch.autograd
    return all_of(
        replace(autograd, "backward", hooked(autograd.backward)),
        replace(autograd, "grad", hooked(autograd.grad)),
    )


def _is_under(outer: FrameType, frame: FrameType | None) -> bool:
    while frame is not None and frame is not outer:
        frame = frame.f_back
    return frame is outer


def _patch_optimizer(modules: ModuleHooks) -> Undo:
    """torch's own global hooks, which see every optimizer; a step inside a step does not count."""
    from torch.optim import optimizer

    if not hasattr(optimizer, "register_optimizer_step_pre_hook"):  # torch < 2.0
        sys.stderr.write("stoker: this torch has no optimizer hooks (2.0 has): steps are not recorded\n")
        return lambda: None
    running: list[FrameType] = []  # torch's frame of the outermost step
    depth = 0  # steps inside it: a subclass that calls its parent's, an optimizer of optimizers

    def before(_which: Any, _args: Any, _kwargs: Any) -> None:
        nonlocal depth
        frame = sys._getframe(1)
        if running and _is_under(running[0], frame):
            depth += 1
            return
        if running:  # that step raised, and torch called no hook at its end
            _OPTIMIZER.end()
        running[:] = [frame]
        depth = 0
        modules.training_step()
        _OPTIMIZER.begin()

    def after(_which: Any, _args: Any, _kwargs: Any) -> None:
        nonlocal depth
        if depth:
            depth -= 1
        elif running:
            running.clear()
            _OPTIMIZER.end()

    first = optimizer.register_optimizer_step_pre_hook(before)
    last = optimizer.register_optimizer_step_post_hook(after)
    return all_of(first.remove, last.remove)


def _written_bytes(target: Any) -> float:
    try:
        if isinstance(target, (str, os.PathLike)):
            return float(os.path.getsize(target))
        return float(target.tell())
    except Exception:
        return 0.0


def _patch_files() -> Undo:
    import torch

    save, load = torch.save, torch.load

    @functools.wraps(save)
    def hooked_save(obj: object, f: Any, *args: Any, **kwargs: Any) -> Any:
        _CHECKPOINT.begin()
        try:
            return save(obj, f, *args, **kwargs)
        finally:
            _CHECKPOINT.end(_written_bytes(f))

    @functools.wraps(load)
    def hooked_load(*args: Any, **kwargs: Any) -> Any:
        _CHECKPOINT_LOAD.begin()
        try:
            return load(*args, **kwargs)
        finally:
            _CHECKPOINT_LOAD.end()

    return all_of(replace(torch, "save", hooked_save), replace(torch, "load", hooked_load))


def _patch_compile() -> Undo:
    """The compiler's own start and end callbacks, once the script has made torch load it."""
    undo: list[Undo] = []

    def loaded() -> None:
        handler = getattr(sys.modules["torch._dynamo.callback"], "callback_handler", None)
        if handler is None:
            return

        def start(*_: object) -> None:
            _COMPILE.begin()

        def end(*_: object) -> None:
            _COMPILE.end()

        handler.register_start_callback(start)
        handler.register_end_callback(end)
        undo.append(lambda: handler.remove_start_callback(start))
        undo.append(lambda: handler.remove_end_callback(end))

    on_import.when_loaded("torch._dynamo.callback", loaded)
    return lambda: all_of(*undo)()
