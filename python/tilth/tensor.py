"""Inputs and outputs of a package: types, shapes, and the extents that runs choose."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Sequence, Tuple, Union

import numpy as np
from numpy.typing import NDArray

from . import fields
from .errors import Error, InputError

try:
    from ml_dtypes import bfloat16 as _bfloat16
except ImportError:
    _bfloat16 = np.uint16

#: numpy's type of each element type. bfloat16 is that of ml_dtypes, or, without it, uint16: the bits.
DTYPES: Dict[str, "np.dtype[Any]"] = {
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(_bfloat16),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "u8": np.dtype(np.uint8),
    "u16": np.dtype(np.uint16),
    "u32": np.dtype(np.uint32),
    "u64": np.dtype(np.uint64),
    "bool": np.dtype(np.bool_),
}

# Ranks and extents come from outside; numpy itself takes 32 axes at most.
_MAX_RANK = 32
_MAX_BYTES = 1 << 60


@dataclass(frozen=True)
class Extent:
    """A number of elements that each run chooses, such as the length of a sequence, within bounds (inclusive)."""

    name: str
    least: int
    most: int
    #: What divides the number.
    step: int = 1

    def has(self, n: int) -> bool:
        return self.least <= n <= self.most and n % self.step == 0

    @property
    def bounds(self) -> str:
        return f"{self.least}..{self.most}" + (f", in steps of {self.step}" if self.step > 1 else "")


@dataclass(frozen=True)
class Term:
    """A part of an axis: ``times`` elements for each ``step`` of the extent, and ``plus`` more."""

    axis: int
    extent: str
    times: int
    plus: int
    step: int = 1

    def elements(self, n: int) -> int:
        return self.times * (n // self.step) + self.plus

    def __str__(self) -> str:
        text, (times, rest) = self.extent, divmod(self.times, self.step)
        if rest:
            text, times = f"{text}/{self.step}", self.times
        text = text if times == 1 else f"{times}*{text}"
        return f"{text}{self.plus:+d}" if self.plus else text


@dataclass(frozen=True)
class Tensor:
    """An input or an output: row-major.

    ``shape`` has the largest extent of each axis that varies. ``dims`` says what varies: the name of an extent, or
    ``0..6`` where the extent depends on the data.
    """

    name: str
    type: str
    shape: Tuple[int, ...]
    open_axes: Tuple[int, ...] = ()
    terms: Tuple[Term, ...] = ()
    continues: str = ""

    @property
    def dtype(self) -> "np.dtype[Any]":
        """numpy's type of the elements."""
        return DTYPES[self.type]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def dims(self) -> Tuple[Union[int, str], ...]:
        dims: List[Union[int, str]] = list(self.shape)
        for axis in self.open_axes:
            dims[axis] = f"0..{self.shape[axis]}"
        for axis in {t.axis for t in self.terms}:
            dims[axis] = "+".join(str(t) for t in self.terms if t.axis == axis)
        return tuple(dims)

    def shape_with(self, extents: Mapping[str, int]) -> Tuple[int, ...]:
        """The shape with extents, by name."""
        shape = list(self.shape)
        for axis in {t.axis for t in self.terms}:
            shape[axis] = sum(t.elements(extents[t.extent]) for t in self.terms if t.axis == axis)
        return tuple(shape)

    def check(self, array: NDArray[Any], extents: Mapping[str, int]) -> None:
        """Raises InputError unless the array is what the input wants."""
        same = array.dtype == self.dtype or self.type == "bf16" and array.dtype == np.uint16
        if not same or array.shape != self.shape_with(extents):
            got = f"{array.dtype}{_words(array.shape)}"
            raise InputError(f'input "{self.name}" is {got}, not {self}')

    def __str__(self) -> str:
        return f"{'bfloat16' if self.type == 'bf16' else self.dtype}{_words(self.dims)}"


def _words(shape: Sequence[Union[int, str]]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


def solve(
    tensors: Sequence[Tensor],
    shapes: Mapping[str, Sequence[int]],
    extents: Sequence[Extent],
    known: Mapping[str, int],
    otherwise: Mapping[str, int],
) -> Dict[str, int]:
    """The extents that the shapes of inputs speak of, beside those that are known.

    An extent that no shape speaks of is what ``otherwise`` says. Raises InputError, naming the input that has another
    shape than it may have, or than the inputs before it say.
    """
    found = dict(known)
    bounds = {e.name: e for e in extents}
    axes = [
        (t, axis, [term for term in t.terms if term.axis == axis])
        for t in tensors
        if len(shapes.get(t.name, ())) == len(t.shape)
        for axis in range(len(t.shape))
    ]
    for _ in range(len(extents) + 1):  # each round finds one more, and the last one compares
        for t, axis, terms in axes:
            if terms:
                _solve_axis(t, axis, terms, shapes[t.name][axis], bounds, found)
    for e in extents:
        if e.name not in found and e.name not in otherwise:
            raise InputError(f"no input determines {e.name}")
        found.setdefault(e.name, otherwise.get(e.name, e.most))
    return found


def _solve_axis(
    t: Tensor, axis: int, terms: Sequence[Term], elements: int, bounds: Mapping[str, Extent], found: Dict[str, int]
) -> None:
    times: Dict[str, int] = {}
    for term in terms:
        times[term.extent] = times.get(term.extent, 0) + term.times
    left = elements - sum(term.plus for term in terms)
    left -= sum(n * (found.get(name, 0) // bounds[name].step) for name, n in times.items())
    unknown = [name for name in times if name not in found]
    where = f'input "{t.name}" has {elements} elements on axis {axis}'
    if not unknown and left:
        raise InputError(f"{where}, but {elements - left} according to other inputs")
    if len(unknown) == 1:
        e = bounds[unknown[0]]
        n, rest = divmod(left, times[e.name])
        if rest or not e.has(n * e.step):
            raise InputError(f"{where}, which none of {e.name} in {e.bounds}{',' * (e.step > 1)} has")
        found[e.name] = n * e.step


def parse_extent(row: Any) -> Extent:
    """An extent of a manifest."""
    e = Extent(
        fields.text(row, "name"),
        fields.integer(row, "least"),
        fields.integer(row, "most"),
        fields.integer(row, "step", 1),
    )
    if not 0 <= e.least <= e.most or e.step < 1 or e.least % e.step or e.most % e.step:
        raise Error(f"extent {e.name!r} has no bounds")
    return e


def parse_tensor(row: Any, extents: Sequence[Extent]) -> Tensor:
    """An input or an output of a manifest, checked."""
    name, kind = fields.text(row, "name"), fields.text(row, "dtype")
    if kind not in DTYPES:
        raise Error(f"tensor {name!r} has unknown type {kind!r}")
    shape = tuple(fields.items(row, "shape"))
    if len(shape) > _MAX_RANK or not all(fields.is_integer(n) and 0 <= n <= _MAX_BYTES for n in shape):
        raise Error(f"tensor {name!r} has no valid shape")
    steps = {e.name: e.step for e in extents}
    terms = tuple(
        Term(
            fields.integer(v, "axis"),
            fields.text(v, "extent"),
            fields.integer(v, "times"),
            fields.integer(v, "plus", 0),
            steps.get(fields.text(v, "extent"), 1),
        )
        for v in fields.items(row, "varying", ())
    )
    t = Tensor(name, kind, shape, tuple(fields.items(row, "open_axes", ())), terms, fields.text(row, "continues", ""))
    axes = [*t.open_axes, *(v.axis for v in terms)]
    if t.nbytes > _MAX_BYTES or not all(fields.is_integer(a) and 0 <= a < len(shape) for a in axes):
        raise Error(f"tensor {name!r} has no valid shape")
    _check_terms(t, {e.name: e for e in extents})
    return t


def _check_terms(t: Tensor, bounds: Mapping[str, Extent]) -> None:
    for v in t.terms:
        if v.extent not in bounds or v.times < 1:
            raise Error(f"tensor {t.name!r}: axis {v.axis} has extent {v.extent!r}, which has no bounds")
    least = t.shape_with({e.name: e.least for e in bounds.values()})
    most = t.shape_with({e.name: e.most for e in bounds.values()})
    if any(n < 0 for n in least) or any(n > limit for n, limit in zip(most, t.shape)):
        raise Error(f"tensor {t.name!r} varies beyond its shape")
