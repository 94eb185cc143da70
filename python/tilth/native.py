"""The C interface of a package's code, via ctypes, documented by ``tilth.h`` in each package."""

from __future__ import annotations

import _ctypes
import ctypes
import os
import shutil
import tempfile
import weakref
from contextlib import contextmanager
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_void_p
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

from .errors import Error
from .package import OBJECT, Manifest
from .tensor import Tensor

_MODEL = c_void_p


class _Tensor(ctypes.Structure):
    """struct tilth_tensor."""

    _fields_ = [
        ("name", c_char_p),
        ("type", c_int32),
        ("rank", c_int32),
        ("shape", POINTER(c_int64)),
        ("bytes", c_int64),
    ]


_Signature = Tuple[Any, Sequence[Any]]

# Functions of every package, and those missing in older versions.
_WANTED: Dict[str, _Signature] = {
    "tilth_open": (_MODEL, [c_char_p, c_int64]),
    "tilth_close": (None, [_MODEL]),
    "tilth_last_error": (c_char_p, []),
    "tilth_input_count": (c_int32, []),
    "tilth_output_count": (c_int32, []),
    "tilth_call_count": (c_int32, []),
    "tilth_input_tensor": (POINTER(_Tensor), [c_int32]),
    "tilth_output_tensor": (POINTER(_Tensor), [c_int32]),
    "tilth_input": (c_void_p, [_MODEL, c_int32]),
    "tilth_output": (c_void_p, [_MODEL, c_int32]),
    "tilth_run": (None, [_MODEL]),
    "tilth_profile": (None, [_MODEL, POINTER(c_double)]),
}
_OPTIONAL: Dict[str, _Signature] = {
    "tilth_output_shape": (c_int, [_MODEL, c_int32, POINTER(c_int64)]),
    "tilth_extent_count": (c_int32, []),
    "tilth_extent_name": (c_char_p, [c_int32]),
    "tilth_set_extent": (c_int, [_MODEL, c_int32, c_int64]),
}

_APART = f"{OBJECT} and its manifest do not belong together; compile the model again"


class Code:
    """A package's loaded code. Each load is independent of others of the same package."""

    def __init__(self, data: bytes) -> None:
        with _path(data) as path:
            try:
                # RTLD_LOCAL: packages export the same names.
                self._library = ctypes.CDLL(path, mode=ctypes.RTLD_LOCAL)
            except OSError as e:
                raise Error(f"loading {OBJECT}: {e}") from e
        for name, (result, arguments) in {**_WANTED, **_OPTIONAL}.items():
            function = getattr(self._library, name, None)
            if function is None and name in _WANTED:
                self.unload()
                raise Error(f"{OBJECT} does not export {name}; compile the model again")
            if function is not None:
                function.restype, function.argtypes = result, arguments
            setattr(self, name[len("tilth_") :], function)

    # Set by name above; None if missing in an older package.
    open: Callable[..., Optional[int]]
    close: Callable[..., None]
    last_error: Callable[[], Optional[bytes]]
    input_count: Callable[[], int]
    output_count: Callable[[], int]
    call_count: Callable[[], int]
    input_tensor: Callable[[int], Any]
    output_tensor: Callable[[int], Any]
    input: Callable[..., Optional[int]]
    output: Callable[..., Optional[int]]
    run: Callable[..., None]
    profile: Callable[..., None]
    output_shape: Optional[Callable[..., int]]
    extent_count: Optional[Callable[[], int]]
    extent_name: Optional[Callable[[int], Optional[bytes]]]
    set_extent: Optional[Callable[..., int]]

    def check(self, m: Manifest) -> None:
        """Raises Error unless the code matches the manifest."""
        counts = (self.input_count(), self.output_count(), self.call_count())
        if counts != (len(m.inputs), len(m.outputs), len(m.calls)):
            raise Error(_APART)
        for tensors, describe in ((m.inputs, self.input_tensor), (m.outputs, self.output_tensor)):
            for k, t in enumerate(tensors):
                _check_tensor(t, describe(k))
        if any(t.open_axes for t in m.outputs) and self.output_shape is None:
            raise Error(f"{OBJECT} does not export tilth_output_shape; compile the model again")
        if m.extents:
            if self.set_extent is None or self.extent_count is None or self.extent_name is None:
                raise Error(_APART)
            names = [(self.extent_name(k) or b"").decode(errors="replace") for k in range(self.extent_count())]
            if names != [e.name for e in m.extents]:
                raise Error(_APART)

    def unload(self) -> None:
        """Unmaps the code, which must not be called afterwards."""
        _ctypes.dlclose(self._library._handle)  # type: ignore[attr-defined]


def _check_tensor(t: Tensor, described: Any) -> None:
    if not described or described.contents.bytes != t.nbytes:
        raise Error(f"{OBJECT} and its manifest differ on the size of {t.name!r}; compile the model again")


@contextmanager
def _path(data: bytes) -> Iterator[str]:
    """Gives code a unique path, because the dynamic linker reuses a library with an equal path.

    The code lies in memory where the kernel has such files, because nothing may be executed from some temporary
    folders.
    """
    folder = tempfile.mkdtemp(prefix="tilth-run-")
    fd = -1
    try:
        path = os.path.join(folder, OBJECT)
        try:
            fd = os.memfd_create(f"tilth-{OBJECT}", os.MFD_CLOEXEC)
        except (AttributeError, OSError):
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o700)
        else:
            os.symlink(f"/proc/self/fd/{fd}", path)
        with open(fd, "wb", closefd=False) as f:
            f.write(data)
        yield path
    except OSError as e:
        raise Error(f"unpacking {OBJECT}: {e}") from e
    finally:
        if fd >= 0:
            os.close(fd)
        shutil.rmtree(folder, ignore_errors=True)


class Handle:
    """An open model, which owns its threads and memory until it is garbage-collected.

    Arrays that lie in the model's memory refer to it, so that none outlives what it shows.
    """

    def __init__(self, code: Code, weights: str, offset: int) -> None:
        pointer = code.open(os.fsencode(weights), offset)
        if not pointer:
            message = (code.last_error() or b"").decode(errors="replace")
            code.unload()
            raise Error(f"starting the model: {message or 'out of memory'}")
        self.code, self.pointer, self.pid = code, pointer, os.getpid()
        # At exit the kernel releases everything, and threads may still run the model.
        weakref.finalize(self, _free, code, pointer, self.pid).atexit = False

    def check_process(self) -> None:
        """Raises Error in a fork of the process that opened the model, because it lacks the threads."""
        if os.getpid() != self.pid:
            raise Error("the model was loaded before this process was forked: load the package in each process")

    def check_last(self) -> None:
        """Raises Error if the last call failed: an index out of range, or a failure of a device."""
        message = self.code.last_error()
        if message:
            raise Error(f"running the model: {message.decode(errors='replace')}")

    def memory(self, tensor: Tensor, pointer: Optional[int], writable: bool) -> NDArray[Any]:
        """Returns an array over the model's memory with the tensor's largest shape; bfloat16 maps to uint16."""
        if not pointer and tensor.nbytes:
            raise Error(_APART)
        raw = np.dtype(np.uint16) if tensor.type == "bf16" else tensor.dtype
        return np.asarray(_Memory(self, pointer or 0, tensor.shape, raw.str, writable))


class _Memory:
    """An array interface for numpy that keeps the model's memory alive."""

    def __init__(self, handle: Handle, pointer: int, shape: Tuple[int, ...], typestr: str, writable: bool) -> None:
        self.handle = handle
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "typestr": typestr,
            "data": (pointer, not writable),
        }


def _free(code: Code, pointer: int, pid: int) -> None:
    if os.getpid() == pid:
        code.close(pointer)
        code.unload()


def shape_of(function: Callable[..., int], pointer: int, index: int, rank: int) -> List[int]:
    """Returns the result of tilth_output_shape."""
    shape = (c_int64 * max(1, rank))()
    if function(pointer, index, shape) != 0:
        raise Error(_APART)
    return list(shape[:rank])


def seconds_of(function: Callable[..., None], pointer: int, calls: int) -> List[float]:
    """Returns the result of tilth_profile."""
    seconds = (c_double * max(1, calls))()
    function(pointer, seconds)
    return list(seconds[:calls])
