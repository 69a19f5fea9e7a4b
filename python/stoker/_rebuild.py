"""A state put together again from tensors and the typed JSON that ``_state`` made of it.

Reading runs no code that the file names: every type is one of a fixed table.
"""

from __future__ import annotations

import base64
import collections
import json
import struct
from collections.abc import Callable, Iterable
from typing import Any

from ._state import FACTORIES, NUMPY_DTYPES, TORCH_DTYPES, is_dense

# name, dtype as safetensors has it, shape, a writable buffer that owns its memory: what the C++ store gives
Loaded = tuple[str, str, tuple[int, ...], Any]


class Rebuilder:
    """Puts a state together from typed JSON and the tensors that it names.

    Tensors that were tied share their memory again. They are on the CPU, whatever device they came from.
    """

    def __init__(self, text: str, tensors: Iterable[Loaded]) -> None:
        self._text = text
        self._tensors = {name: (dtype, shape, buffer) for name, dtype, shape, buffer in tensors}
        self._bases: dict[str, Any] = {}
        self._made: dict[str, Any] = {}

    def state(self) -> dict[str, Any]:
        """The state; KeyError, ValueError or TypeError when the JSON is not one that Flattened made."""
        tree = json.loads(self._text)
        if not isinstance(tree, dict):
            raise ValueError("the state is no object")
        return {key: self._decode(value) for key, value in tree.items()}

    def _decode(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "$" not in value:
            return {key: self._decode(item) for key, item in value.items()}
        kind = value["$"]
        if kind in ("tensor", "array"):
            return self._tensor(kind, value)
        return self._typed(kind, value)

    def _pairs(self, value: dict[str, Any]) -> list[tuple[Any, Any]]:
        return [(self._decode(key), self._decode(item)) for key, item in value["v"]]

    def _typed(self, kind: str, node: dict[str, Any]) -> Any:
        raw = node["v"]
        if kind in _SIMPLE:
            return _SIMPLE[kind](raw)
        if kind in _SEQUENCES:
            return _SEQUENCES[kind](self._decode(raw))
        if kind == "deque":
            return collections.deque(self._decode(raw), node["maxlen"])
        if kind == "dict":
            return dict(self._pairs(node))
        if kind == "OrderedDict":
            ordered: Any = collections.OrderedDict(self._pairs(node))
            if "metadata" in node:
                ordered._metadata = self._decode(node["metadata"])
            return ordered
        if kind == "Counter":
            counter: collections.Counter[Any] = collections.Counter()
            counter.update(dict(self._pairs(node)))
            return counter
        if kind == "defaultdict":
            factory = None if node["factory"] is None else FACTORIES[node["factory"]]
            return collections.defaultdict(factory, self._pairs(node))
        if kind == "scalar":
            return _numpy_scalar(node["dtype"], bytes.fromhex(raw))
        return _torch_plain(kind, self._decode(raw))

    def _tensor(self, kind: str, node: dict[str, Any]) -> Any:
        made_key = json.dumps(node, sort_keys=True)
        if made_key not in self._made:
            self._made[made_key] = self._torch(node) if kind == "tensor" else self._array(node)
        return self._made[made_key]

    def _array(self, node: dict[str, Any]) -> Any:
        import numpy as np

        dtype, shape, buffer = self._tensors[node["v"]]
        text = node.get("dtype") or next(key for key, name in NUMPY_DTYPES.items() if name == dtype)
        if "dtype" in node:
            shape = shape[:-1]
        if 0 in shape or not len(buffer):
            array = np.zeros(shape, dtype=text)
        else:
            array = np.frombuffer(buffer, dtype=text).reshape(shape)
        return np.asfortranarray(array) if node.get("order") == "F" else array

    def _torch_base(self, name: str) -> Any:
        import torch

        if name not in self._bases:
            dtype_name, shape, buffer = self._tensors[name]
            dtype = getattr(torch, next(key for key, value in TORCH_DTYPES.items() if value == dtype_name))
            if 0 in shape:
                self._bases[name] = torch.empty(shape, dtype=dtype)
            else:
                self._bases[name] = torch.frombuffer(buffer, dtype=torch.uint8).view(dtype).reshape(shape)
        return self._bases[name]

    def _torch(self, node: dict[str, Any]) -> Any:
        import torch

        tensor = self._torch_base(node["v"])
        if "view" in node:
            view = node["view"]
            flat = tensor.reshape(-1).view(torch.uint8)[view["offset_bytes"] :]
            dtype = getattr(torch, view["dtype"])
            usable = flat.numel() // dtype.itemsize * dtype.itemsize
            typed = flat[:usable].view(dtype)
            tensor = typed.as_strided(view["shape"], view["stride"], typed.storage_offset())
        elif "dtype" in node:
            tensor = torch.view_as_complex(tensor)
        if "stride" in node:
            if not is_dense(tuple(tensor.shape), tuple(node["stride"])):
                raise ValueError("a stride that asks for more memory than the tensor has")
            strided = torch.empty_strided(tuple(tensor.shape), node["stride"], dtype=tensor.dtype)
            tensor = strided.copy_(tensor)
        if node.get("parameter"):
            return torch.nn.Parameter(tensor, requires_grad=bool(node.get("grad")))
        return tensor.requires_grad_() if node.get("grad") else tensor


def _float_value(text: str) -> float:
    return (
        float(text) if text in ("inf", "-inf", "nan") else float(struct.unpack(">d", bytes.fromhex(text))[0])
    )


def _numpy_scalar(dtype: str, raw: bytes) -> Any:
    import numpy as np

    return np.frombuffer(raw, dtype=dtype)[0] if raw else np.dtype(dtype).type()


def _torch_plain(kind: str, value: Any) -> Any:
    import torch

    if kind == "torch.Size":
        return torch.Size(value)
    if kind == "torch.device":
        return torch.device(value)
    if kind == "torch.dtype":
        dtype = getattr(torch, value)
        if isinstance(dtype, torch.dtype):
            return dtype
    raise ValueError(f"a value of type '{kind}', which this Stoker does not know")


_SIMPLE: dict[str, Callable[[Any], Any]] = {
    "int": lambda text: int(text, 16),
    "float": _float_value,
    "str": lambda text: base64.b64decode(text).decode("utf-8", "surrogatepass"),
    "bytes": base64.b64decode,
    "bytearray": lambda text: bytearray(base64.b64decode(text)),
    "complex": lambda text: complex(*struct.unpack("<dd", bytes.fromhex(text))),
}
_SEQUENCES: dict[str, Callable[[Any], Any]] = {"tuple": tuple, "set": set, "frozenset": frozenset}
