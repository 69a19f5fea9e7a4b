"""A state of nested dicts and lists, taken apart into tensors and typed JSON; ``_rebuild`` puts it together.

The JSON is plain where Python and JSON agree. Everything else is an object with a ``"$"`` member that
names its type; ``docs/formats/store.md`` lists them. Nothing is pickled.
"""

from __future__ import annotations

import base64
import collections
import json
import math
import struct
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import torch

_MAX_DEPTH = 100
_EXACT_INT = 2**53  # beyond it other JSON readers round

# name, dtype as safetensors has it, shape, address, bytes: what the C++ store takes
Entry = tuple[str, str, tuple[int, ...], int, int]

TORCH_DTYPES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "bfloat16": "BF16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint64": "U64",
    "uint32": "U32",
    "uint16": "U16",
    "uint8": "U8",
    "bool": "BOOL",
    "complex64": "C64",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
    "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
    "float8_e8m0fnu": "F8_E8M0",
}
NUMPY_DTYPES = {
    "f8": "F64",
    "f4": "F32",
    "f2": "F16",
    "i8": "I64",
    "i4": "I32",
    "i2": "I16",
    "i1": "I8",
    "u8": "U64",
    "u4": "U32",
    "u2": "U16",
    "u1": "U8",
    "b1": "BOOL",
    "c8": "C64",
}
# safetensors has no such dtype: stored as pairs of real numbers along a last axis of 2
_TORCH_PAIRS = {"complex128": "F64", "complex32": "F16"}
FACTORIES: dict[str, Callable[[], Any]] = {
    "int": int,
    "float": float,
    "list": list,
    "dict": dict,
    "set": set,
    "str": str,
}


class StateError(Exception):
    """A part of the state that cannot be stored; the message says which and why."""


class _Piece(NamedTuple):
    """A tensor's place in memory, for finding those that share it."""

    device: str
    start: int
    end: int
    node: dict[str, Any]
    tensor: Any


def _key_text(key: object) -> str:
    return str(key).encode("utf-8", "backslashreplace").decode()


class Flattened:
    """Takes a state apart.

    ``entries`` are the tensors for C++, which read memory that this object keeps alive; ``text`` is the
    typed JSON.
    """

    def __init__(self, state: dict[str, Any]) -> None:
        self.entries: list[Entry] = []
        self._owners: list[Any] = []
        self._names: set[str] = set()
        self._pieces: list[_Piece] = []
        self._tied: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._torch: Any = sys.modules.get("torch")
        self._numpy: Any = sys.modules.get("numpy")
        tree = {key: self._encode(value, _key_text(key), 0) for key, value in state.items()}
        self._share_overlapping()
        for piece in self._pieces:
            self._store_torch(piece.node, piece.tensor)
        self.text = json.dumps(tree, ensure_ascii=True, separators=(",", ":"), allow_nan=False)

    # --- values ---

    def _encode(self, value: Any, path: str, depth: int) -> Any:
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is str:
            return self._string(value)
        if kind is int:
            return value if -_EXACT_INT <= value <= _EXACT_INT else {"$": "int", "v": hex(value)}
        if kind is float:
            return value if math.isfinite(value) else {"$": "float", "v": _float_text(value)}
        if self._torch is not None and isinstance(value, self._torch.Tensor):
            return self._torch_node(value, path)
        if self._numpy is not None and isinstance(value, (self._numpy.ndarray, self._numpy.generic)):
            return self._numpy_node(value, path)
        if depth >= _MAX_DEPTH:
            raise StateError(f"'{path}' is nested deeper than {_MAX_DEPTH} levels, or refers to itself")
        return self._container(value, path, depth + 1)

    def _container(self, value: Any, path: str, depth: int) -> Any:
        kind = type(value)
        if kind is dict:
            return self._dict(value, path, depth)
        if kind is list:
            return self._items(value, path, depth)
        if kind is tuple:
            return {"$": "tuple", "v": self._items(value, path, depth)}
        if kind is collections.OrderedDict:
            node = {"$": "OrderedDict", "v": self._pairs(value, path, depth)}
            if hasattr(value, "_metadata"):  # module versions, which torch's load_state_dict looks at
                node["metadata"] = self._encode(value._metadata, path + "._metadata", depth)
            return node
        if kind is collections.Counter:
            return {"$": "Counter", "v": self._pairs(value, path, depth)}
        if kind is collections.defaultdict:
            return self._defaultdict(value, path, depth)
        if kind is collections.deque:
            return {"$": "deque", "v": self._items(value, path, depth), "maxlen": value.maxlen}
        if kind in (set, frozenset):
            return {"$": kind.__name__, "v": self._items(value, path, depth)}
        if kind in (bytes, bytearray):
            return {"$": kind.__name__, "v": base64.b64encode(value).decode()}
        if kind is complex:
            return {"$": "complex", "v": struct.pack("<dd", value.real, value.imag).hex()}
        return self._torch_value(value, path, depth)

    def _torch_value(self, value: Any, path: str, depth: int) -> Any:
        if self._torch is not None:
            if isinstance(value, self._torch.Size):
                return {"$": "torch.Size", "v": self._items(value, path, depth)}
            if isinstance(value, self._torch.dtype):
                return {"$": "torch.dtype", "v": str(value).removeprefix("torch.")}
            if isinstance(value, self._torch.device):
                return {"$": "torch.device", "v": str(value)}
        kind = type(value)
        raise StateError(f"'{path}' is a {kind.__module__}.{kind.__qualname__}, which is not stored")

    def _string(self, value: str) -> Any:
        if value.isascii() or not any("\ud800" <= c <= "\udfff" for c in value):
            return value
        return {"$": "str", "v": base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()}

    def _items(self, values: Iterable[Any], path: str, depth: int) -> list[Any]:
        return [self._encode(item, f"{path}.{i}", depth) for i, item in enumerate(values)]

    def _pairs(self, value: dict[Any, Any], path: str, depth: int) -> list[Any]:
        return [
            [self._encode(key, path, depth), self._encode(item, f"{path}.{_key_text(key)}", depth)]
            for key, item in value.items()
        ]

    def _dict(self, value: dict[Any, Any], path: str, depth: int) -> Any:
        if all(type(key) is str and self._string(key) is key for key in value) and "$" not in value:
            return {key: self._encode(item, f"{path}.{key}", depth) for key, item in value.items()}
        return {"$": "dict", "v": self._pairs(value, path, depth)}

    def _defaultdict(self, value: Any, path: str, depth: int) -> Any:
        factory = value.default_factory
        name = None if factory is None else getattr(factory, "__name__", "?")
        if name is not None and FACTORIES.get(name) is not factory:
            raise StateError(f"'{path}' is a defaultdict whose factory is a function, which is not stored")
        return {"$": "defaultdict", "factory": name, "v": self._pairs(value, path, depth)}

    # --- tensors ---

    def _name(self, path: str) -> str:
        name = path or "unnamed"
        while name in self._names or name == "__metadata__":
            name += "~"
        self._names.add(name)
        return name

    def _add(
        self, name: str, dtype: str, shape: tuple[int, ...], address: int, size: int, owner: Any
    ) -> None:
        self.entries.append((name, dtype, shape, address, size))
        self._owners.append(owner)

    def _torch_node(self, value: torch.Tensor, path: str) -> dict[str, Any]:
        _refuse_odd_tensor(value, self._torch, path)
        if value.is_conj() or value.is_neg():  # a view whose memory holds other values
            value = value.resolve_conj().resolve_neg()
        shape, strides = tuple(value.shape), value.stride()
        device = str(value.device)
        start = value.data_ptr()
        key = (device, start, value.dtype, shape, strides) if start else (id(value),)
        known = self._tied.get(key)
        if known is not None:
            return known
        node: dict[str, Any] = {"$": "tensor", "v": self._name(path)}
        self._tied[key] = node
        if value.requires_grad:
            node["grad"] = True
        if isinstance(value, self._torch.nn.Parameter):
            node["parameter"] = True
        if device != "cpu":
            node["device"] = device
        tensor = value.detach()
        span = _span_bytes(shape, strides, tensor.element_size())
        self._pieces.append(_Piece(device, start, start + span, node, tensor))
        return node

    def _share_overlapping(self) -> None:
        """Finds tensors that lie in each other's memory and makes them views of one stored tensor."""
        order = sorted(
            (p for p in self._pieces if p.end > p.start), key=lambda p: (p.device, p.start, -p.end)
        )
        groups: list[list[_Piece]] = []
        device, end = "", 0
        for piece in order:
            if groups and piece.device == device and piece.start < end:
                groups[-1].append(piece)
                end = max(end, piece.end)
            else:
                groups.append([piece])
                device, end = piece.device, piece.end
        views: set[int] = set()
        for group in groups:
            if len(group) > 1:
                views.update(self._share(group))
        self._pieces = [piece for piece in self._pieces if id(piece.node) not in views]

    def _share(self, group: list[_Piece]) -> list[int]:
        start, end = group[0].start, max(piece.end for piece in group)
        whole = next(
            (p for p in group if p.start == start and p.end == end and p.tensor.is_contiguous()), None
        )
        if whole is not None:
            base_name = str(whole.node["v"])
        else:
            # No one of them covers the others: their common bytes are stored under the first's name.
            base_name = self._name(str(group[0].node["v"]))
            first = group[0].tensor
            raw = self._torch.empty(0, dtype=self._torch.uint8, device=first.device).set_(
                first.untyped_storage(), first.storage_offset() * first.element_size(), (end - start,), (1,)
            )
            self._store_torch({"v": base_name}, raw)
        made = []
        for piece in group:
            if piece is whole:
                continue
            self._names.discard(str(piece.node["v"]))
            piece.node["v"] = base_name
            piece.node["view"] = {
                "dtype": str(piece.tensor.dtype).removeprefix("torch."),
                "offset_bytes": piece.start - start,
                "shape": list(piece.tensor.shape),
                "stride": list(piece.tensor.stride()),
            }
            made.append(id(piece.node))
        return made

    def _store_torch(self, node: dict[str, Any], tensor: torch.Tensor) -> None:
        dtype_name = str(tensor.dtype).removeprefix("torch.")
        if not tensor.is_contiguous():
            if is_dense(tuple(tensor.shape), tensor.stride()):
                node["stride"] = list(tensor.stride())
            tensor = tensor.contiguous()
        dtype = TORCH_DTYPES.get(dtype_name)
        if dtype is None:
            dtype = _TORCH_PAIRS[dtype_name]
            node["dtype"] = dtype_name
            tensor = self._torch.view_as_real(tensor)
        if tensor.device.type != "cpu":
            tensor = tensor.cpu()
        size = tensor.numel() * tensor.element_size()
        self._add(str(node["v"]), dtype, tuple(tensor.shape), tensor.data_ptr(), size, tensor)

    def _numpy_node(self, value: Any, path: str) -> dict[str, Any]:
        np = self._numpy
        text = value.dtype.str
        if value.dtype.hasobject or value.dtype.names is not None or (text[1] == "V"):
            raise StateError(f"'{path}' is a NumPy value of dtype {value.dtype}, which is not stored")
        if isinstance(value, np.generic):
            return {"$": "scalar", "dtype": text, "v": value.tobytes().hex()}
        if type(value) not in (np.ndarray, np.memmap):
            raise StateError(f"'{path}' is a {type(value).__name__}, of which only plain arrays are stored")
        key = ("numpy", value.__array_interface__["data"][0], value.shape, value.strides, text)
        if value.size and key in self._tied:
            return self._tied[key]
        node: dict[str, Any] = {"$": "array", "v": self._name(path)}
        self._tied[key] = node
        self._store_numpy(node, value)
        return node

    def _store_numpy(self, node: dict[str, Any], value: np.ndarray[Any, Any]) -> None:
        np = self._numpy
        text = value.dtype.str
        if value.flags.f_contiguous and not value.flags.c_contiguous:
            node["order"] = "F"
        array = np.ascontiguousarray(value).reshape(value.shape)
        dtype, shape = NUMPY_DTYPES.get(text[1:]), value.shape
        if dtype is None or text[0] == ">":
            node["dtype"] = text
            dtype, shape = "U8", (*value.shape, value.dtype.itemsize)
        self._add(
            str(node["v"]), dtype, tuple(shape), array.__array_interface__["data"][0], array.nbytes, array
        )


def _refuse_odd_tensor(value: Any, torch: Any, path: str) -> None:
    if type(value).__name__ in ("DTensor", "FakeTensor", "FunctionalTensor"):
        raise StateError(f"'{path}' is a {type(value).__name__}; give the full tensor that it stands for")
    if value.is_quantized:
        raise StateError(
            f"'{path}' is a quantised tensor, which is not stored; save `.int_repr()` and its scale"
        )
    if value.layout != torch.strided:
        raise StateError(f"'{path}' is a sparse tensor ({value.layout}), which is not stored; save its parts")
    if value.is_nested:
        raise StateError(f"'{path}' is a nested tensor, which is not stored; save its parts")
    if value.device.type == "meta":
        raise StateError(f"'{path}' is on the meta device: it has a shape and no values")
    dtype = str(value.dtype).removeprefix("torch.")
    if dtype not in TORCH_DTYPES and dtype not in _TORCH_PAIRS:
        raise StateError(f"'{path}' has dtype {dtype}, which is not stored; save a tensor of whole bytes")


def _span_bytes(shape: tuple[int, ...], strides: tuple[int, ...], element: int) -> int:
    if 0 in shape:
        return 0
    return (1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))) * element


def is_dense(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """True when the elements fill their memory without gaps or overlaps, in whatever order of axes."""
    expected = 1
    for stride, extent in sorted((s, n) for n, s in zip(shape, strides, strict=True) if n != 1):
        if stride != expected:
            return False
        expected *= extent
    return True


def _float_text(value: float) -> str:
    bits = struct.pack(">d", value).hex()
    return {"7ff0000000000000": "inf", "fff0000000000000": "-inf", "7ff8000000000000": "nan"}.get(bits, bits)
