"""Models in whatever form they come, as ONNX files that the program reads."""

from __future__ import annotations

import inspect
import os
import re
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

from .errors import Error

#: A path of an ONNX file, its bytes, an onnx.ModelProto, or a torch.nn.Module, which needs example inputs.
ModelLike = Any


def export(module: Any, args: Any, path: Union[str, "os.PathLike[str]"], **options: Any) -> None:
    """Writes a torch.nn.Module as ONNX, by ``torch.onnx.export``, in evaluation mode.

    ``args`` are example inputs: a tensor or a tuple. Inputs get the names of the parameters of ``forward``, outputs
    ``output``, or ``output_0``, ``output_1``, ...; ``options`` are those of ``torch.onnx.export`` and go before.
    """
    import torch

    args = args if isinstance(args, tuple) else (args,)
    training = module.training
    module.eval()
    try:
        names = _names(module, args)
        if "dynamo" in inspect.signature(torch.onnx.export).parameters:
            names["dynamo"] = False  # it needs a package of its own
        torch.onnx.export(module, args, os.fspath(path), **{**names, **options})
    except Exception as e:
        reason = next(iter(str(e).splitlines()), "")
        raise Error(f"exporting {type(module).__name__}: {reason or type(e).__name__}") from e
    finally:
        module.train(training)


def _names(module: Any, args: Tuple[Any, ...]) -> Dict[str, Any]:
    """Names of inputs and outputs, where each is one tensor; none where they are anything else."""
    import torch

    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [p.name for p in inspect.signature(module.forward).parameters.values() if p.kind in positional]
    if len(parameters) < len(args) or not all(isinstance(a, torch.Tensor) for a in args):
        return {}
    with torch.no_grad():
        outputs = module(*args)
    if isinstance(outputs, torch.Tensor):
        named = ["output"]
    elif isinstance(outputs, (tuple, list)) and all(isinstance(o, torch.Tensor) for o in outputs):
        named = [f"output_{k}" for k in range(len(outputs))]
    else:
        return {}
    return {"input_names": parameters[: len(args)], "output_names": named}


@contextmanager
def files(model: Union[ModelLike, Sequence[ModelLike]], args: Any = None) -> Iterator[List[str]]:
    """Paths of models, which last as long as the context."""
    models = model if isinstance(model, (list, tuple)) else [model]
    if not models:
        raise Error("no model was given")
    if args is not None and len(models) != 1:
        raise Error("args are example inputs of one model: export several by tilth.export")
    with ExitStack() as stack:
        yield [stack.enter_context(_file(m, args)) for m in models]


@contextmanager
def _file(model: ModelLike, args: Any) -> Iterator[str]:
    if isinstance(model, (str, os.PathLike)):
        path = os.fspath(model)
        yield path if path != "-" else "./-"  # a file of that name, not standard input
        return
    with tempfile.TemporaryDirectory(prefix="tilth-model-") as folder:
        path = os.path.join(folder, _name(model) + ".onnx")
        if _is_module(model):
            if args is None:
                raise Error(f"{type(model).__name__} is exported with example inputs: give them as args=")
            export(model, args, path)
        else:
            with open(path, "wb") as f:
                f.write(_bytes(model))
        yield path


def _bytes(model: ModelLike) -> bytes:
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    if hasattr(model, "SerializeToString"):
        return bytes(model.SerializeToString())
    kind = type(model).__name__
    raise Error(f"a {kind} is no model: want a path, bytes, an onnx.ModelProto or a torch.nn.Module")


def _name(model: ModelLike) -> str:
    """What the file is named, and so the job and the package."""
    if _is_module(model):
        name: Optional[str] = type(model).__name__.lower()
    else:
        name = getattr(getattr(model, "graph", None), "name", None)
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name or "").strip(".-")[:64] or "model"


def _is_module(model: ModelLike) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)
