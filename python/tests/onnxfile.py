"""Writes small ONNX models, field by field, so that tests need no package for it."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple, Union

import numpy as np

# Numbers of element types.
FLOAT, UINT8, INT8, INT64, BOOL, FLOAT16, DOUBLE, BFLOAT16 = 1, 2, 3, 7, 9, 10, 11, 16
_OF_NUMPY = {"float32": FLOAT, "int64": INT64}

#: A name, the number of its element type, and its dimensions: numbers and symbols.
Value = Tuple[str, int, Sequence[Union[int, str]]]
#: An operator, its inputs, its outputs, and attributes: whole numbers or lists of them.
Node = Tuple[str, Sequence[str], Sequence[str], Dict[str, Any]]


def model(
    nodes: Sequence[Node],
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    constants: Dict[str, Any],
    opset: int = 17,
) -> bytes:
    graph = b"".join(_bytes(1, _node(*n)) for n in nodes)
    graph += _bytes(2, b"test")
    graph += b"".join(_bytes(5, _tensor(name, np.asarray(value))) for name, value in constants.items())
    graph += b"".join(_bytes(11, _value(*v)) for v in inputs)
    graph += b"".join(_bytes(12, _value(*v)) for v in outputs)
    return _int(1, 8) + _bytes(7, graph) + _bytes(8, _int(2, opset))


def _varint(n: int) -> bytes:
    out = b""
    n &= (1 << 64) - 1
    while n > 0x7F:
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


def _int(field: int, n: int) -> bytes:
    return _varint(field << 3) + _varint(n)


def _bytes(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _node(op: str, inputs: Sequence[str], outputs: Sequence[str], attributes: Dict[str, Any]) -> bytes:
    data = b"".join(_bytes(1, i.encode()) for i in inputs) + b"".join(_bytes(2, o.encode()) for o in outputs)
    data += _bytes(4, op.encode())
    for name, value in attributes.items():
        several = isinstance(value, (list, tuple))
        body = b"".join(_int(8, n) for n in value) if several else _int(3, value)
        data += _bytes(5, _bytes(1, name.encode()) + body + _int(20, 7 if several else 2))
    return data


def _tensor(name: str, value: Any) -> bytes:
    dims: List[bytes] = [_int(1, n) for n in value.shape]
    return (
        b"".join(dims) + _int(2, _OF_NUMPY[value.dtype.name]) + _bytes(8, name.encode()) + _bytes(9, value.tobytes())
    )


def _value(name: str, kind: int, dims: Sequence[Union[int, str]]) -> bytes:
    shape = b"".join(_bytes(1, _int(1, d) if isinstance(d, int) else _bytes(2, d.encode())) for d in dims)
    return _bytes(1, name.encode()) + _bytes(2, _bytes(1, _int(1, kind) + _bytes(2, shape)))
