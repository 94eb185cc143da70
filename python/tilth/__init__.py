"""Tilth from Python: tunes models, compiles them to packages, and runs packages.

>>> import tilth
>>> tilth.tune("resnet18.onnx", time="5m")  # doctest: +SKIP
>>> tilth.compile("resnet18.onnx", "resnet18.tar")  # doctest: +SKIP
>>> tilth.load("resnet18.tar").run(image)["scores"]  # doctest: +SKIP

``load`` needs numpy alone. ``tune``, ``compile``, ``tasks`` and ``Records`` run the program ``tilth``. ``Client``
calls a farm's tracker, and needs grpcio.
"""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING, Any

from .compiling import Compiled, Task, compile, tasks
from .errors import Error, InputError, ProgramError
from .model import CallTime, Model, Timing, load
from .records import Record, Records
from .source import export
from .tensor import Extent, Tensor
from .tuning import Trial, Tuned, TunedTask, tune

if TYPE_CHECKING:
    from .client import Client

__all__ = [
    "CallTime",
    "Client",
    "Compiled",
    "Error",
    "Extent",
    "InputError",
    "Model",
    "ProgramError",
    "Record",
    "Records",
    "Task",
    "Tensor",
    "Timing",
    "Trial",
    "Tuned",
    "TunedTask",
    "compile",
    "export",
    "load",
    "tasks",
    "tune",
]

try:
    __version__ = metadata.version("tilth")
except metadata.PackageNotFoundError:  # not installed: imported from the source tree
    __version__ = "0+unknown"


def __getattr__(name: str) -> Any:
    if name == "Client":  # only who calls a farm needs what it imports
        from .client import Client

        return Client
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
