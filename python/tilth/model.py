"""Opens compiled packages and runs them."""

from __future__ import annotations

import os
import statistics
import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple, Type, Union, cast

import numpy as np
from numpy.typing import NDArray

from . import native, package, signing
from .errors import Error, InputError
from .tensor import Extent, Tensor, solve

PathLike = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class CallTime:
    """The time of one kernel call: ``seconds``, or None if the run did not need it."""

    name: str
    task: str
    seconds: Optional[float]


@dataclass(frozen=True)
class Timing:
    """Samples of the seconds per run."""

    samples: Tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.samples)

    @property
    def min(self) -> float:
        return min(self.samples)

    @property
    def max(self) -> float:
        return max(self.samples)

    def __str__(self) -> str:
        spread = f"{self.min * 1e3:.4g} to {self.max * 1e3:.4g}"
        return f"{self.median * 1e3:.4g} ms (median of {len(self.samples)}, {spread})"


def load(path: PathLike, *, verify: bool = True, key: Optional[PathLike] = None) -> Model:
    """Opens a compiled package on this machine.

    The weights are used where they lie in the file, which must not change while the model is open. ``verify=False``
    leaves out reading them once to compare their digest.

    A package is a program: load only those whose origin you trust. With ``key``, a public key of minisign as text
    (RW...) or the file of one, the package must be signed with it, in ``PACKAGE.minisig`` (``tilth sign``). It is then
    copied to memory, and what is loaded is the copy that was verified.

    Raises Error, which names the package and the
    remedy, when it is damaged, of an unknown version, or for another machine.

    >>> with tilth.load("mlp.tar") as model:  # doctest: +SKIP
    ...     model.run(data=np.zeros((1, 784), np.float32))["out"].shape
    (1, 10)
    """
    name = os.fsdecode(path)
    try:
        if key is None:
            return _load(name, name, verify)
        with signing.verified(name, signing.parse_key(key)) as copy:
            return _load(name, f"/proc/self/fd/{copy.fileno()}", verify)
    except OSError as e:
        raise Error(f"loading package {name}: {e.strerror or e}") from e
    except Error as e:
        raise Error(f"loading package {name}: {e}") from e


def _load(name: str, path: str, verify: bool) -> Model:
    with open(path, "rb") as f:
        members = package.members(f)
        manifest = package.manifest(package.read(f, members, package.MANIFEST))
        package.check_here(manifest)
        data = package.read(f, members, package.OBJECT)
        package.check_digest(manifest, package.OBJECT, data)
        if package.WEIGHTS not in members:
            raise Error(f"it has no {package.WEIGHTS}")
        weights = members[package.WEIGHTS]
        if verify:
            package.check_weights(manifest, f, weights)
    code = native.Code(data)
    try:
        code.check(manifest)
    except Error:
        code.unload()
        raise
    return Model(name, manifest, native.Handle(code, path, weights.offset))


class Model:
    """An open package, returned by ``load``.

    Methods may be called from several threads; one runs at a time, and the interpreter's lock is free meanwhile. Open
    the package several times to run it several times at once.
    """

    def __init__(self, path: str, manifest: package.Manifest, handle: native.Handle) -> None:
        self._path, self._manifest = path, manifest
        self._handle: Optional[native.Handle] = handle
        self._lock = threading.RLock()
        self._values: Dict[str, int] = {}
        self._ran = False  # since the inputs were last set
        code, pointer = handle.code, handle.pointer
        self._inputs = [handle.memory(t, code.input(pointer, k), True) for k, t in enumerate(manifest.inputs)]
        self._outputs = [handle.memory(t, code.output(pointer, k), False) for k, t in enumerate(manifest.outputs)]
        self._choose({e.name: e.most for e in manifest.extents})

    @property
    def name(self) -> str:
        """The model's name."""
        return self._manifest.model

    @property
    def inputs(self) -> Tuple[Tensor, ...]:
        """Returns the name, type and shape of each input, in the model's order."""
        return self._manifest.inputs

    @property
    def outputs(self) -> Tuple[Tensor, ...]:
        """Returns the name, type and shape of each output, in the model's order."""
        return self._manifest.outputs

    @property
    def extents(self) -> Tuple[Extent, ...]:
        """Returns the open extents, such as a sequence length; most packages have none."""
        return self._manifest.extents

    @property
    def manifest(self) -> Dict[str, Any]:
        """Returns the manifest: tasks, traces, errors, sizes. It must not be modified."""
        return self._manifest.raw

    @property
    def closed(self) -> bool:
        return self._handle is None

    def run(self, inputs: Any = None, /, *more: Any, **named: Any) -> Dict[str, NDArray[Any]]:
        """Runs the model once and returns copies of the outputs by name.

        Inputs are a mapping by name, or arrays in the model's order, or keywords. Each is an array, or what
        ``numpy.asarray`` makes one of without copying a type into another: it must have the input's type and shape.
        Extents follow from the shapes. Raises InputError, which names the input, what it is and what it should be.
        """
        given = self._by_name(self.inputs, inputs, more, named)
        with self._lock:
            self._set(given, self.inputs, {})
            self._execute()
            return self._results()

    def prefill(self, inputs: Any = None, /, *more: Any, **named: Any) -> Dict[str, NDArray[Any]]:
        """Runs a decoder on the first positions, and keeps their keys and values.

        Inputs are those of ``run`` but for the keys and values of earlier positions, of which there are none.
        """
        fresh, (past, _) = self._decoder()
        given = self._by_name(fresh, inputs, more, named)
        with self._lock:
            self._set(given, fresh, {past: 0})
            self._execute()
            return self._results()

    def decode(self, inputs: Any = None, /, *more: Any, **named: Any) -> Dict[str, NDArray[Any]]:
        """Runs a decoder on the positions after those of the last run, usually one.

        Inputs are those of ``prefill``. Raises Error when there is no room for more positions.
        """
        fresh, (past, step) = self._decoder()
        given = self._by_name(fresh, inputs, more, named)
        with self._lock:
            if not self._ran:
                raise Error(f"model {self.name}: there is nothing to go on from: call prefill first")
            kept = {name: n for name, n in self._values.items() if name not in (past, step)}
            self._set(given, fresh, {**kept, past: self._check_room()})
            self._execute()
            return self._results()

    @property
    def positions(self) -> int:
        """Returns the number of positions that a decoder keeps, including those of the last run."""
        _, (past, step) = self._decoder()
        with self._lock:
            return self._values[past] + self._values[step] if self._ran else 0

    def input(self, name: str) -> NDArray[Any]:
        """Returns the model's memory of an input, to be written before ``execute`` without a copy.

        Its shape is that with the extents of the last run or of ``set_extents``. It stays valid, also after
        ``close``.
        """
        return self._view(self.inputs, self._inputs, "input", name)

    def output(self, name: str) -> NDArray[Any]:
        """Returns the model's read-only memory of an output, which the next run overwrites."""
        return self._view(self.outputs, self._outputs, "output", name)

    def set_extents(self, **extents: int) -> None:
        """Sets extents by name for the following ``execute`` calls; others keep their values."""
        with self._lock:
            for name in extents:
                if name not in self._values:
                    known = ", ".join(self._values) or "none"
                    raise InputError(f"model {self.name} has no extent {name!r}; it has {known}")
            self._choose({**self._values, **extents})

    def execute(self) -> None:
        """Runs the model once on the memory of ``input`` and writes that of ``output``."""
        with self._lock:
            self._execute()

    def profile(self) -> List[CallTime]:
        """Runs the model once on the inputs set last, and returns the time of each kernel call."""
        with self._lock:
            handle = self._open()
            calls = self._manifest.calls
            seconds = native.seconds_of(handle.code.profile, handle.pointer, len(calls))
            handle.check_last()
            self._ran = True
            return [CallTime(c.name, c.task, s if s >= 0 else None) for c, s in zip(calls, seconds)]

    def benchmark(self, repeat: int = 10, number: int = 1) -> Timing:
        """Times ``repeat`` samples of ``number`` runs each, after a warm-up run, on the inputs set last."""
        if repeat < 1 or number < 1:
            raise Error(f"repeat {repeat}, number {number}: want at least 1")
        with self._lock:
            self._execute()
            samples = []
            for _ in range(repeat):
                began = time.perf_counter()
                for _ in range(number):
                    self._execute()
                samples.append((time.perf_counter() - began) / number)
            return Timing(tuple(samples))

    def close(self) -> None:
        """Closes the model after waiting for a run in progress.

        Threads end and memory is freed at once, or, where arrays of ``input`` and ``output`` are still in use, with
        the last of these.
        """
        with self._lock:
            self._handle = None
            self._inputs, self._outputs = [], []

    def __enter__(self) -> Model:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        def words(tensors: Sequence[Tensor]) -> str:
            return ", ".join(f"{t.name}: {t}" for t in tensors)

        state = " (closed)" if self.closed else ""
        return f"<tilth.Model {self.name}({words(self.inputs)}) -> {words(self.outputs)}{state}>"

    # The following methods require the lock.

    def _open(self) -> native.Handle:
        if self._handle is None:
            raise Error(f"model {self.name} is closed: load {self._path} again")
        self._handle.check_process()
        return self._handle

    def _execute(self) -> None:
        handle = self._open()
        self._ran = True
        handle.code.run(handle.pointer)
        handle.check_last()

    def _choose(self, values: Mapping[str, int]) -> None:
        handle = self._open()
        for e in self.extents:
            if not e.has(values[e.name]):
                raise InputError(f"model {self.name}: {e.name} cannot be {values[e.name]}, it is {e.bounds}")
        for k, e in enumerate(self.extents):
            if handle.code.set_extent is None or handle.code.set_extent(handle.pointer, k, values[e.name]) != 0:
                raise Error(f"model {self.name}: {e.name} cannot be {values[e.name]}")
        self._values = dict(values)

    def _set(self, given: Mapping[str, NDArray[Any]], wanted: Sequence[Tensor], known: Mapping[str, int]) -> None:
        """Copies all inputs into the model, or none if one is invalid."""
        self._open()
        try:
            extents = solve(wanted, _shapes(given), self.extents, known, self._values if known else {})
            for t in wanted:
                t.check(given[t.name], extents)
        except InputError as e:
            raise InputError(f"model {self.name}: {e}") from e
        self._ran = False
        self._choose(extents)
        for k, t in enumerate(self.inputs):
            if t.name in given:
                array = given[t.name]
                np.copyto(_corner(self._inputs[k], array.shape), array.view(np.uint16) if t.type == "bf16" else array)

    def _results(self) -> Dict[str, NDArray[Any]]:
        return {t.name: self._result(k).astype(t.dtype, copy=True) for k, t in enumerate(self.outputs)}

    def _result(self, k: int) -> NDArray[Any]:
        t, handle = self.outputs[k], self._open()
        shape = list(t.shape_with(self._values))
        if t.open_axes and handle.code.output_shape is not None:
            run = native.shape_of(handle.code.output_shape, handle.pointer, k, len(shape))
            for axis in t.open_axes:
                shape[axis] = max(0, min(run[axis], shape[axis]))
        return _typed(t, _corner(self._outputs[k], shape))

    def _view(self, tensors: Sequence[Tensor], memory: List[NDArray[Any]], what: str, name: str) -> NDArray[Any]:
        with self._lock:
            self._open()
            for k, t in enumerate(tensors):
                if t.name == name:
                    if what == "output":
                        return self._result(k)
                    return _typed(t, _corner(memory[k], t.shape_with(self._values)))
            raise InputError(f"model {self.name} has no {what} {name!r}; it has {', '.join(t.name for t in tensors)}")

    def _decoder(self) -> Tuple[Sequence[Tensor], Tuple[str, str]]:
        """Returns the inputs without a corresponding output, and the names of the position extents."""
        past, step = self._manifest.past, self._manifest.step
        if past is None or step is None:
            raise Error(f"model {self.name} is no decoder: use run")
        kept = {t.continues for t in self.outputs}
        return [t for t in self.inputs if t.name not in kept], (past, step)

    def _check_room(self) -> int:
        """Returns the number of positions before those of the next run."""
        past = next(e for e in self.extents if e.name == self._manifest.past)
        n = self.positions
        if n > past.most:
            room = f"was compiled for at most {past.most} before a run"
            raise Error(f"model {self.name}: it has {n} positions, and {room}")
        return n

    def _by_name(
        self, wanted: Sequence[Tensor], inputs: Any, more: Sequence[Any], named: Mapping[str, Any]
    ) -> Dict[str, NDArray[Any]]:
        values: Dict[str, Any] = {}
        if isinstance(inputs, Mapping):
            if more:
                raise InputError(f"model {self.name}: inputs are a mapping or arrays, not both")
            values.update(inputs)
        elif inputs is not None:
            arrays = (inputs, *more)
            if len(arrays) > len(wanted):
                raise InputError(f"model {self.name}: {len(arrays)} inputs were given; it has {_list(wanted)}")
            values.update(zip((t.name for t in wanted), arrays))
        for name in named:
            if name in values:
                raise InputError(f"model {self.name}: input {name!r} is given twice")
        values.update(named)
        names = {t.name for t in wanted}
        for name in values:
            if name not in names:
                raise InputError(f"model {self.name} has no input {name!r} to be given; these are {_list(wanted)}")
        for t in wanted:
            if t.name not in values:
                raise InputError(f'model {self.name}: input "{t.name}" ({t}) is missing')
        return {name: self._array(name, value) for name, value in values.items()}

    def _array(self, name: str, value: Any) -> NDArray[Any]:
        try:
            return np.asarray(value)
        except Exception as e:
            raise InputError(f'model {self.name}: input "{name}" is no array: {e}') from e


def _list(tensors: Sequence[Tensor]) -> str:
    return ", ".join(f'"{t.name}" ({t})' for t in tensors) or "none"


def _shapes(arrays: Mapping[str, NDArray[Any]]) -> Dict[str, Sequence[int]]:
    return {name: a.shape for name, a in arrays.items()}


def _typed(t: Tensor, memory: NDArray[Any]) -> NDArray[Any]:
    return memory.view(t.dtype) if t.type == "bf16" else memory


def _corner(memory: NDArray[Any], shape: Sequence[int]) -> NDArray[Any]:
    """Returns the first elements of each axis. The strides are those of the largest shape."""
    index: Any = (*(slice(n) for n in shape), ...)  # the ellipsis makes it a view for every rank
    return cast("NDArray[Any]", memory[index])
