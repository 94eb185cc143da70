"""Compiles models to packages, and lists their tasks."""

from __future__ import annotations

import os
import tempfile
import zipfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Union

import numpy as np

from . import program as tool
from .model import Model, load
from .program import Shapes
from .source import ModelLike, files

PathLike = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Compiled:
    """A written package: ``tuned`` of its ``tasks`` have a tuned schedule.

    ``raw`` is all that the program said.
    """

    path: str
    size_bytes: int
    target: str
    tasks: int
    tuned: int
    seconds: float
    raw: Dict[str, Any] = field(repr=False)

    def load(self) -> Model:
        """Opens the package."""
        return load(self.path)


@dataclass(frozen=True)
class Task:
    """A tuning task: its operators and shapes, execution count, and floating-point operations."""

    index: int
    name: str
    times: int
    flop: float
    workload: str


def compile(
    model: ModelLike,
    out: PathLike,
    *,
    args: Any = None,
    records: Optional[PathLike] = None,
    tracker: Optional[str] = None,
    untuned: bool = False,
    shape: Optional[Shapes] = None,
    target: Optional[str] = None,
    threads: Optional[int] = None,
    numerics: Optional[str] = None,
    storage: Optional[str] = None,
    weights: Optional[str] = None,
    check: Union[None, PathLike, Mapping[str, Any]] = None,
    max_error: Optional[float] = None,
    lock: Optional[PathLike] = None,
    locked: bool = False,
    confirm: bool = False,
    ca: Optional[PathLike] = None,
    cert: Optional[PathLike] = None,
    key: Optional[PathLike] = None,
    token_file: Optional[PathLike] = None,
    program: Optional[PathLike] = None,
) -> Compiled:
    """Compiles a model into a package at ``out``, with the best schedule of each task.

    ``model`` and ``args`` are as in ``tune``. ``check``, inputs by name or an ``.npz`` file of them, measures the
    package's error against strict numerics, and ``max_error`` refuses one that is larger. Other arguments are the
    flags of ``tilth compile``; None is the program's default.

    >>> tilth.compile("resnet18.onnx", "resnet18.tar").load()  # doctest: +SKIP
    """
    with files(model, args) as paths, _inputs(check) as npz:
        words = [
            *tool.flags(output=_output(out), records=tool.path_of(records), tracker=tracker, untuned=untuned),
            *tool.flags(shape=tool.shapes(shape), target=target, threads=threads, numerics=numerics, storage=storage),
            *tool.flags(weights=weights, check=npz, max_error=max_error),
            *tool.flags(lock=tool.path_of(lock), locked=locked, confirm=confirm),
            *tool.security(ca, cert, key, token_file),
        ]
        row = tool.call_json(["compile"], [*words, "--", *paths], program=program)
    return Compiled(os.fspath(out), row["size_bytes"], row["target"], row["tasks"], row["tuned"], row["took_s"], row)


def tasks(
    model: Union[ModelLike, Sequence[ModelLike]],
    *,
    args: Any = None,
    shape: Optional[Shapes] = None,
    program: Optional[PathLike] = None,
) -> List[Task]:
    """Lists the tuning tasks of one or more models."""
    with files(model, args) as paths:
        rows = tool.call_json(["tasks"], [*tool.flags(shape=tool.shapes(shape)), "--", *paths], program=program)
    return [Task(r["index"], r["task"], r["times"], r["flop"], r["workload"]) for r in rows]


def _output(path: PathLike) -> str:
    name = os.fspath(path)
    return name if name != "-" else "./-"  # a file of that name, not standard output


@contextmanager
def _inputs(check: Union[None, PathLike, Mapping[str, Any]]) -> Iterator[Optional[str]]:
    if not isinstance(check, Mapping):
        yield tool.path_of(check)
        return
    with tempfile.TemporaryDirectory(prefix="tilth-check-") as folder:
        path = os.path.join(folder, "inputs.npz")
        with zipfile.ZipFile(path, "w") as archive:  # numpy.savez rejects an input named "file"
            for name, value in check.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    write: Any = np.lib.format.write_array  # untyped
                    write(member, np.asarray(value), allow_pickle=False)
        yield path
