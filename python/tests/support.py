"""Shared by tests: the program, a private home for records and caches, and packages compiled once."""

from __future__ import annotations

import atexit
import functools
import io
import os
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Callable, Dict

import numpy as np

import tilth
from tilth import program

from . import onnxfile as onnx

FOLDER = Path(tempfile.mkdtemp(prefix="tilth-python-test-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)

# Records are private to the tests; compiled kernels are cached for later runs.
os.environ["XDG_DATA_HOME"] = str(FOLDER / "data")
for name in ("TILTH_TRACKER", "TILTH_TLS_CA", "TILTH_TLS_CERT", "TILTH_TLS_KEY", "TILTH_TOKEN_FILE"):
    os.environ.pop(name, None)


@functools.lru_cache(maxsize=None)
def mlp() -> str:
    """The built-in model that is the smallest: 784 numbers to 10."""
    path = str(FOLDER / "mlp.onnx")
    program.call(["model", "mlp", "-o", path])
    return path


@functools.lru_cache(maxsize=None)
def mlp_package() -> str:
    return tilth.compile(mlp(), FOLDER / "mlp.tar", untuned=True, threads=1).path


@functools.lru_cache(maxsize=None)
def types_package() -> str:
    """An operator on each of several types, a scalar, and an output whose length depends on the data."""
    model = onnx.model(
        [
            ("Add", ["half", "half"], ["half2"], {}),
            ("Add", ["brain", "brain"], ["brain2"], {}),
            ("Not", ["flag"], ["unflag"], {}),
            ("Mul", ["byte", "byte"], ["square"], {}),
            ("ReduceSum", ["x"], ["total"], {"keepdims": 0}),
            ("NonZero", ["x"], ["where"], {}),
        ],
        [
            ("half", onnx.FLOAT16, [2, 3]),
            ("brain", onnx.BFLOAT16, [4]),
            ("flag", onnx.BOOL, [3]),
            ("byte", onnx.UINT8, [5]),
            ("x", onnx.FLOAT, [2, 2]),
        ],
        [
            ("half2", onnx.FLOAT16, [2, 3]),
            ("brain2", onnx.BFLOAT16, [4]),
            ("unflag", onnx.BOOL, [3]),
            ("square", onnx.UINT8, [5]),
            ("total", onnx.FLOAT, []),
            ("where", onnx.INT64, [2, "found"]),
        ],
        {},
    )
    return tilth.compile(model, FOLDER / "types.tar", untuned=True, threads=1).path


@functools.lru_cache(maxsize=None)
def open_package() -> str:
    """y = relu(x) and z = x @ w, of rows whose number each run chooses."""
    model = onnx.model(
        [("Relu", ["x"], ["y"], {}), ("MatMul", ["x", "w"], ["z"], {})],
        [("x", onnx.FLOAT, ["rows", 4])],
        [("y", onnx.FLOAT, ["rows", 4]), ("z", onnx.FLOAT, ["rows", 3])],
        {"w": np.arange(12, dtype=np.float32).reshape(4, 3)},
    )
    return tilth.compile(model, FOLDER / "open.tar", untuned=True, threads=1, shape={"rows": range(1, 9)}).path


@functools.lru_cache(maxsize=None)
def steps_package() -> str:
    """y is every fourth row of x, and z every second one of y; the number of rows is a multiple of four."""
    model = onnx.model(
        [
            ("Slice", ["x", "zero", "end", "zero", "four"], ["y"], {}),
            ("Slice", ["y", "zero", "end", "zero", "two"], ["z"], {}),
        ],
        [("x", onnx.FLOAT, ["rows", 2])],
        [("y", onnx.FLOAT, ["quarter", 2]), ("z", onnx.FLOAT, ["eighth", 2])],
        {"zero": np.array([0]), "end": np.array([1 << 40]), "two": np.array([2]), "four": np.array([4])},
    )
    return tilth.compile(model, FOLDER / "steps.tar", untuned=True, threads=1, shape={"rows": range(4, 33, 4)}).path


@functools.lru_cache(maxsize=None)
def decoder_package() -> str:
    """Keeps what it was given, and sums it up: at most 5 positions before those of a run."""
    model = onnx.model(
        [
            ("Concat", ["past", "x"], ["present"], {"axis": 1}),
            ("ReduceSum", ["present", "axes"], ["sum"], {"keepdims": 0}),
        ],
        [("x", onnx.FLOAT, [1, "step", 4]), ("past", onnx.FLOAT, [1, "earlier", 4])],
        [("present", onnx.FLOAT, [1, "all", 4]), ("sum", onnx.FLOAT, [1, 4])],
        {"axes": np.array([1])},
    )
    shape = {"step": range(1, 4), "earlier": range(0, 6)}
    return tilth.compile(model, FOLDER / "decoder.tar", untuned=True, threads=1, shape=shape).path


def repack(package: str, change: Callable[[Dict[str, bytes]], None]) -> str:
    """A package whose members were changed, by name."""
    with tarfile.open(package) as archive:
        members = {m.name: archive.extractfile(m).read() for m in archive}  # type: ignore[union-attr]
    change(members)
    fd, path = tempfile.mkstemp(dir=FOLDER, suffix=".tar")
    os.close(fd)
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path
