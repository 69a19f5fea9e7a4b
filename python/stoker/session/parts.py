"""The objects that make up a run, and how their state is taken and given back."""

from __future__ import annotations

import types
from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch

from .._errors import bad_input
from .._model_keys import adapt_keys, bare_names
from .talk import Talk

Named = dict[str, Any]


def named(value: Any) -> Named:
    """One object, a list or a dict of them, or None, as a dict; a single object has the name ``""``."""
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return {str(name): item for name, item in value.items()}
    if isinstance(value, list | tuple):
        return {str(index): item for index, item in enumerate(value)}
    return {"": value}


class Parts:
    """Models, optimizers, schedulers, scaler and EMA of one run, by name.

    Args:
        model, optimizer, scheduler, ema: One object, a list, a dict by name, or None.
        scaler: A ``GradScaler`` or None.
        user: Objects with ``state_dict`` and ``load_state_dict``, by name.
    """

    def __init__(
        self,
        *,
        model: Any,
        optimizer: Any,
        scheduler: Any,
        scaler: Any,
        ema: Any,
        user: Mapping[str, Any] | None,
    ) -> None:
        """Keeps references; nothing is copied."""
        self.models: Named = named(model)
        self.optimizers: Named = named(optimizer)
        self.schedulers: Named = named(scheduler)
        self.scaler = scaler
        self._groups: dict[str, Named] = {
            "model": self.models,
            "optimizer": self.optimizers,
            "scheduler": self.schedulers,
            "scaler": named(scaler),
            "ema": named(ema),
            "user": dict(user or {}),
        }
        self._check()

    def _check(self) -> None:
        for group, members in self._groups.items():
            for name, part in members.items():
                if not hasattr(part, "state_dict") or not hasattr(part, "load_state_dict"):
                    where = f"{group} {name!r}" if name else group
                    raise bad_input(f"the session's {where} has no state_dict and load_state_dict")

    def warn_of_missing(self, talk: Talk) -> None:
        """Says once what a resume would lack."""
        if not self.models:
            talk.warn("no model is in the session, so no weights are saved", once=True)
        if self.models and not self.optimizers:
            talk.warn("no optimizer is in the session, so its momentum starts anew after a resume", once=True)
        scheduled = any("initial_lr" in g for o in self.optimizers.values() for g in o.param_groups)
        if scheduled and not self.schedulers:
            talk.warn(
                "the scheduler is not in the session: pass scheduler=, or the learning rate jumps", once=True
            )

    def capture(self) -> dict[str, Any]:
        """References to every tensor, under ``model``, ``optimizer``, …; absent groups are left out."""
        state = {}
        for group, members in self._groups.items():
            taken = {name: take(part) for name, part in members.items()}
            if taken:
                state[group] = taken[""] if list(taken) == [""] else taken
        return state

    def restore(self, state: Mapping[str, Any], talk: Talk) -> None:
        """Puts a captured state back.

        Raises:
            BadInputError: the checkpoint is of another model or optimizer; nothing has been changed then.
        """
        pairs = [pair for group in self._groups for pair in self._pairs(group, state, talk)]
        ready = [(part, prepare(part, saved, what)) for part, saved, what in pairs]
        for part, saved in ready:
            give(part, saved)

    def _pairs(self, group: str, state: Mapping[str, Any], talk: Talk) -> list[tuple[Any, Any, str]]:
        members, saved = self._groups[group], state.get(group)
        if saved is None:
            if members:
                talk.warn(f"the checkpoint has no {group}; it starts anew", once=True)
            return []
        if not members:
            talk.warn(f"the checkpoint has a {group} that is not in the session; it is left out", once=True)
            return []
        if list(members) == [""]:
            return [(members[""], saved, group)]
        for name in members:
            if name not in saved:
                raise bad_input(f"the checkpoint has no {group} {name!r}; it has {', '.join(saved)}")
        return [(part, saved[name], f"{group} {name!r}") for name, part in members.items()]

    def gradients(self) -> dict[str, dict[str, torch.Tensor]]:
        """The gradients that wait for their optimizer step, by model and parameter."""
        return {
            name: {key: p.grad for key, p in parameters(model) if p.grad is not None}
            for name, model in self.models.items()
        }

    def set_gradients(self, saved: Mapping[str, Mapping[str, torch.Tensor]]) -> None:
        """The inverse of ``gradients``."""
        for name, model in self.models.items():
            of_model = saved.get(name, {})
            for key, parameter in parameters(model):
                if (grad := of_model.get(key)) is not None:
                    parameter.grad = grad.to(parameter.device)

    def fingerprint(self) -> list[float]:
        """The sums of the weights and statistics, which tell whether somebody has touched them.

        Version counters would be cheaper, but ``.data`` and BatchNorm do not move them.
        """
        tensors = [t for m in self.models.values() for t in (*m.parameters(), *m.buffers()) if t.numel()]
        with torch.no_grad():
            return [float(t.sum()) for t in tensors]


def take(part: Any) -> Any:
    """The state of one part, of which everything can be stored."""
    state = part.state_dict()
    if isinstance(part, torch.nn.Module):
        names = bare_names(state)
        return {names[key]: value for key, value in state.items()}
    return without_callables(state)


def parameters(model: Any) -> list[tuple[str, Any]]:
    """A model's parameters by their bare names."""
    by_key = dict(model.named_parameters())
    names = bare_names(by_key)
    return [(names[key], parameter) for key, parameter in by_key.items()]


def prepare(part: Any, saved: Any, what: str) -> Any:
    """The saved state in the form that ``part`` takes, or an error if it is another's."""
    if isinstance(part, torch.nn.Module):
        return adapt_keys(saved, part.state_dict())
    if isinstance(part, torch.optim.Optimizer):
        check_groups(saved, part, what)
    return saved


def give(part: Any, saved: Any) -> None:
    """Loads ``saved`` into ``part``."""
    if isinstance(part, torch.optim.lr_scheduler.LRScheduler):
        saved = {key: as_before(value, getattr(part, key, None)) for key, value in saved.items()}
    part.load_state_dict(saved)


def check_groups(saved: Mapping[str, Any], optimizer: torch.optim.Optimizer, what: str) -> None:
    """Refuses an optimizer state with other parameter groups.

    Raises:
        BadInputError: with both sizes.
    """
    theirs = [len(group["params"]) for group in saved["param_groups"]]
    ours = [len(group["params"]) for group in optimizer.param_groups]
    if theirs != ours:
        raise bad_input(
            f"the checkpoint is of another {what}: its groups have {theirs} parameters, this one's {ours}",
            "build the optimizer as it was, or give the session another directory",
        )


def without_callables(value: Any) -> Any:
    """Leaves out functions, which some schedulers list in their state and rebuild by themselves."""
    if isinstance(value, Mapping):
        kept = {k: without_callables(v) for k, v in value.items() if not is_function(v)}
        return kept if type(value) is dict else dict(kept)
    return value


def is_function(value: Any) -> bool:
    """Whether ``value`` is code rather than state."""
    return isinstance(value, types.FunctionType | types.MethodType | types.BuiltinFunctionType)


def as_before(value: Any, current: Any) -> Any:
    """Gives a stored value the container type that the living object uses (MultiStepLR's Counter)."""
    return Counter(value) if isinstance(current, Counter) and isinstance(value, dict) else value
