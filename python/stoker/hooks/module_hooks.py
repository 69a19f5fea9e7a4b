"""Forward and evaluation: calls of the outermost module only, at no cost for the modules inside it.

A model is known by what every script does with it before it trains: ``model.parameters()`` for the
optimizer, ``.to()``, ``.train()``. From then on the ``__call__`` of its *class* is hooked. Instances stay
untouched (a hook on one would be pickled and copied with it), and classes that only occur inside a model keep
torch's own ``__call__``.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any

from . import model_facts, sites
from .patching import compiling_test, replace

_FORWARD = sites.Site("forward")
_EVAL_FORWARD = sites.Site("eval.forward")
_EVAL = sites.Site("eval")

# What scripts call on a whole model and torch does not call on its parts (``train`` recurses: see below).
_TELLTALES = ("parameters", "named_parameters", "to", "cuda", "state_dict", "load_state_dict")


def _none() -> None:
    """What a weak reference to nothing would give."""


class ModuleHooks:
    """The hooks on ``torch.nn.Module`` and their state. The main thread is recorded; others pass through."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self._hooked: set[type] = set()
        self._depth = 0
        self._train_depth = 0
        self._trained: weakref.WeakSet[Any] = weakref.WeakSet()  # have had a forward in training
        self._evaluated: Callable[[], Any] | None = None  # weakly, the model of the open `eval` span
        self.main = threading.main_thread().ident  # its spans make the phase tree

    def on_main_thread(self) -> bool:
        """True on the thread whose spans make the phase tree."""
        return threading.get_ident() == self.main

    def patch(self) -> Callable[[], None]:
        """Hooks ``torch.nn.Module``; the result undoes it and every class found since."""
        import torch

        self._torch = torch
        self._is_compiling = compiling_test()
        model_facts.forget()
        base = torch.nn.Module
        self._ignored: tuple[type, ...] = (torch.jit.ScriptModule,)
        for name in _TELLTALES:
            if hasattr(base, name):
                self._replace(base, name, self._telltale(getattr(base, name)))
        self._replace(base, "train", self._hooked_train(base.train))
        return self._unpatch

    def training_step(self) -> None:
        """An optimizer is about to step: no evaluation is going on, whatever mode a model was left in."""
        if self._evaluated is not None:
            self._end_eval()

    def _replace(self, owner: type, name: str, wrapper: Any) -> None:
        self._undo.append(replace(owner, name, wrapper))

    def _unpatch(self) -> None:
        if self._evaluated is not None:
            self._end_eval()
        while self._undo:
            self._undo.pop()()
        self._hooked.clear()

    def _telltale(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def seen(module: Any, *args: Any, **kwargs: Any) -> Any:
            kind = type(module)
            if kind not in self._hooked:
                self.hook_class(kind)
            return method(module, *args, **kwargs)

        return seen

    def hook_class(self, kind: type) -> None:
        """Records calls of this class of modules, where they are outermost. Once a class."""
        if kind in self._hooked or issubclass(kind, self._ignored) or self._is_compiling():
            return
        self._hooked.add(kind)
        own = vars(kind).get("__call__")
        is_compiling = self._is_compiling
        is_grad_enabled = self._torch.is_grad_enabled
        get_ident, main = threading.get_ident, self.main
        last: Callable[[], Any] = _none  # weakly, the module of this class that trained last

        def call(module: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal last
            # Where it is inherited it is looked up anew: torch.fx and others replace it for a while.
            run = own.__get__(module) if own is not None else super(kind, module).__call__  # type: ignore[misc]
            if is_compiling() or self._depth or get_ident() != main:
                return run(*args, **kwargs)
            training = module.training and is_grad_enabled()
            if training and last() is not module:
                last = weakref.ref(module)
                if module not in self._trained:
                    self._trained.add(module)
                    model_facts.note(module, args)
            site = _FORWARD if training else _EVAL_FORWARD
            self._depth = 1
            site.begin()
            try:
                return run(*args, **kwargs)
            finally:
                site.end()
                self._depth = 0

        self._replace(kind, "__call__", call)

    def _hooked_train(self, train: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(train)
        def run(module: Any, mode: bool = True) -> Any:
            if self._train_depth or not self.on_main_thread() or self._is_compiling():
                return train(module, mode)
            if type(module) not in self._hooked:
                self.hook_class(type(module))
            self._train_depth = 1  # train() calls itself on every child
            try:
                return train(module, mode)
            finally:
                self._train_depth = 0
                self._mode_changed(module, mode)

        return run

    def _mode_changed(self, module: Any, training: bool) -> None:
        """``eval`` lasts from ``model.eval()`` to ``model.train()``, for a model that this process trains."""
        if training:
            if self._evaluated is not None and self._evaluated() is module:
                self._end_eval()
        elif self._evaluated is None and module in self._trained:
            self._evaluated = weakref.ref(module)
            _EVAL.begin()

    def _end_eval(self) -> None:
        self._evaluated = None
        _EVAL.end()
