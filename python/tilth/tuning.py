"""Tunes models: searches for the fastest schedule of each task, here or on a farm."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import program as tool
from .errors import Error
from .program import Duration, Shapes
from .records import Records
from .source import ModelLike, files

PathLike = Union[str, "os.PathLike[str]"]
# Logs of TVM with their formats, autotvm or ansor.
Seeds = Mapping[PathLike, str]


@dataclass(frozen=True)
class Trial:
    """One measurement of one candidate. Latencies and times are in seconds.

    ``latency`` is None where ``error``, a class such as ``wrong_result``, is not empty; ``best`` is the task's best
    until then.
    """

    task: str
    number: int
    latency: Optional[float]
    error: str
    elapsed: float
    best: Optional[float]


@dataclass(frozen=True)
class TunedTask:
    """What tuning came to for one task. Latencies are in seconds, of one execution; None where there is none.

    ``weight`` says how often the models execute it, and ``limit`` is the least that the machine could take.
    """

    name: str
    weight: float
    flop: float
    trials: int
    errors: Dict[str, int]
    untuned: Optional[float]
    best: Optional[float]
    limit: Optional[float]


@dataclass(frozen=True)
class Tuned:
    """What tuning came to. Latencies are in seconds, sums over all tasks, each as often as it occurs.

    They are None while a task has none. ``curve`` has a point for each change of the latency: seconds since the job
    began, and the sum. ``raw`` is all that the program said.
    """

    job: str
    state: str
    reason: str
    target: str
    trials: int
    elapsed: float
    untuned: Optional[float]
    best: Optional[float]
    limit: Optional[float]
    tasks: Tuple[TunedTask, ...]
    curve: Tuple[Tuple[float, float], ...] = field(repr=False)
    raw: Dict[str, Any] = field(repr=False)

    @property
    def speedup(self) -> Optional[float]:
        """How many times faster the tuned schedules are than the default ones."""
        return self.untuned / self.best if self.untuned and self.best else None


def tune(
    model: Union[ModelLike, Sequence[ModelLike]],
    *,
    args: Any = None,
    time: Optional[Duration] = None,
    trials: Optional[int] = None,
    early_stop: Optional[int] = None,
    shape: Optional[Shapes] = None,
    target: Optional[str] = None,
    threads: Optional[int] = None,
    numerics: Optional[str] = None,
    storage: Optional[str] = None,
    weights: Optional[str] = None,
    records: Optional[PathLike] = None,
    tasks: Optional[str] = None,
    tuner: Optional[str] = None,
    seed: Optional[int] = None,
    transfer: bool = True,
    seeds: Optional[Seeds] = None,
    tracker: Optional[str] = None,
    device: Optional[str] = None,
    wait: Union[None, bool, Duration] = None,
    name: Optional[str] = None,
    priority: Optional[int] = None,
    private: bool = False,
    ca: Optional[PathLike] = None,
    cert: Optional[PathLike] = None,
    key: Optional[PathLike] = None,
    token_file: Optional[PathLike] = None,
    progress: Optional[Callable[[Trial], None]] = None,
    program: Optional[PathLike] = None,
) -> Tuned:
    """Tunes a model, or several as one job, and remembers the best schedule of each task.

    ``model`` is a path of an ONNX file, its bytes, an onnx.ModelProto, or a torch.nn.Module with example inputs
    ``args``. ``time`` and ``trials`` are the budget; whichever ends first. ``progress`` is called after each trial, in
    this thread. Other arguments are the flags of ``tilth tune``; None is the program's default, by which
    ``$TILTH_TRACKER`` names a farm. ``wait=True`` waits for ever for what the farm lacks.

    ``seeds`` are tuning logs of TVM with their formats, ``{"tune.log": "autotvm"}`` or ``"ansor"``. Their schedules
    are tried first, and stay beside the records for later searches (``Records.import_log``).

    An interrupt (ctrl-C), or what ``progress`` raises, ends the job, keeps its measurements, and is raised again;
    tuning again goes on from there. Raises ProgramError with the program's message.

    >>> tuned = tilth.tune("resnet18.onnx", time="5m")  # doctest: +SKIP
    >>> tuned.best, tuned.speedup  # doctest: +SKIP
    (0.0131, 2.4)
    """
    import_seeds(seeds, records, program)
    words = [
        *tool.flags(time=tool.duration(time), trials=trials, early_stop=early_stop, shape=tool.shapes(shape)),
        *tool.flags(target=target, threads=threads, numerics=numerics, storage=storage, weights=weights),
        *tool.flags(records=tool.path_of(records), tasks=tasks, tuner=tuner, seed=seed, no_transfer=not transfer),
        *tool.flags(tracker=tracker, device=device, wait=_wait(wait), name=name, priority=priority, private=private),
        *tool.security(ca, cert, key, token_file),
    ]
    with files(model, args) as paths, tempfile.TemporaryDirectory(prefix="tilth-tune-") as folder:
        follower = _Follower(os.path.join(folder, "trials.jsonl"), progress)
        result = tool.call_json(
            ["tune"], [*words, "--quiet", f"--log={follower.path}", "--", *paths], program=program, watch=follower.read
        )
    return _tuned(result, follower.trials)


def import_seeds(seeds: Optional[Seeds], records: Optional[PathLike], program: Optional[PathLike]) -> None:
    """Imports logs before a search begins with them."""
    for log, format in (seeds or {}).items():
        Records(records, program=program).import_log(log, format)


def _wait(value: Union[None, bool, Duration]) -> Optional[str]:
    if isinstance(value, bool):
        return "forever" if value else None
    return tool.duration(value)


class _Follower:
    """Reads the log of trials while it is written."""

    def __init__(self, path: str, progress: Optional[Callable[[Trial], None]]) -> None:
        self.path, self.progress = path, progress
        self.trials: List[Trial] = []
        self._at = 0

    def read(self) -> None:
        try:
            with open(self.path, "rb") as f:
                if os.fstat(f.fileno()).st_size < self._at:  # the history was replaced, by a backup say
                    self._at, self.trials = 0, []
                f.seek(self._at)
                lines = f.read().split(b"\n")
        except FileNotFoundError:
            return
        for line in lines[:-1]:  # the last one is not whole yet
            self._at += len(line) + 1
            trial = _trial(json.loads(line))
            self.trials.append(trial)
            if self.progress:
                self.progress(trial)


def _trial(row: Dict[str, Any]) -> Trial:
    return Trial(row["task"], row["trial"], row["latency_s"], row["error"], row["elapsed_s"], row["best_s"])


def _tuned(row: Dict[str, Any], trials: Sequence[Trial]) -> Tuned:
    try:
        tasks = tuple(
            TunedTask(
                t["task"], t["weight"], t["flop"], t["trials"], t["errors"], t["untuned_s"], t["best_s"], t["limit_s"]
            )
            for t in row["tasks"]
        )
        return Tuned(
            job=row["job"],
            state=row["state"],
            reason=row["reason"],
            target=row["target"],
            trials=row["trials"],
            elapsed=row["elapsed_s"],
            untuned=row["untuned_s"],
            best=row["best_s"],
            limit=row["limit_s"],
            tasks=tasks,
            curve=tuple(_curve(tasks, trials)),
            raw=row,
        )
    except (KeyError, TypeError) as e:
        raise Error(f"tilth tune printed a summary without {e}: use one version of tilth and of this module") from e


def _curve(tasks: Sequence[TunedTask], trials: Sequence[Trial]) -> List[Tuple[float, float]]:
    """The sum of the tasks' best latencies after each change, from when each task has one."""
    # Tasks without a trial here have what was known before.
    tried = {t.task for t in trials}
    best = {t.name: t.best for t in tasks if t.best is not None and t.name not in tried}
    points: List[Tuple[float, float]] = []
    for trial in trials:
        if trial.best is None:
            continue
        best[trial.task] = trial.best
        if all(t.name in best for t in tasks):
            total = sum(t.weight * best[t.name] for t in tasks)
            if not points or points[-1][1] != total:
                points.append((trial.elapsed, total))
    return points
