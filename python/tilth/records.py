"""Records of measurements in a file, at a tracker, or in an export on a web server."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Union

from . import program as tool

PathLike = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Record:
    """A measurement of a schedule: ``latency`` in seconds, or None if the error class ``error`` is not empty."""

    workload: str
    target: str
    candidate: str
    latency: Optional[float]
    error: str
    device: str
    at: str
    raw: Any = field(repr=False)


class Records:
    """Records at ``source``: a file, or an export (``https://...``); None means the user's own file.

    ``tracker`` names a farm's instead. Reading is done by the program. Raises ProgramError with its message.
    """

    def __init__(
        self,
        source: Optional[PathLike] = None,
        *,
        tracker: Optional[str] = None,
        ca: Optional[PathLike] = None,
        cert: Optional[PathLike] = None,
        key: Optional[PathLike] = None,
        token_file: Optional[PathLike] = None,
        program: Optional[PathLike] = None,
    ) -> None:
        self._where = [
            *tool.flags(records=tool.path_of(source), tracker=tracker),
            *tool.security(ca, cert, key, token_file),
        ]
        self._program = program

    def best(self, *, target: Optional[str] = None, workload: Optional[str] = None) -> List[Record]:
        """Returns the fastest verified record of each workload and target."""
        return self._read("best", target, workload)

    def list(self, *, target: Optional[str] = None, workload: Optional[str] = None) -> List[Record]:
        """Returns every record, including failures."""
        return self._read("list", target, workload)

    def export(self, out: PathLike, *, target: Optional[str] = None, workload: Optional[str] = None) -> None:
        """Writes records as JSON lines."""
        words = tool.flags(output=os.path.join(os.curdir, os.fspath(out)), target=target, workload=workload)
        tool.call(["records", "export", *self._where, *words], program=self._program)

    def import_log(self, log: PathLike, format: str) -> str:
        """Imports schedules of a TVM tuning log as seeds, stored beside the records, which searches try first.

        ``format`` is ``autotvm`` or ``ansor``. Records in a file only; a farm's jobs take the seeds of the user's own.
        Returns what the program says: which operators have seeds, and why other lines are none.
        """
        words = [*self._where, *tool.flags(format=format), "--", os.fsdecode(log)]
        return tool.call(["records", "import", *words], program=self._program)

    def _read(self, verb: str, target: Optional[str], workload: Optional[str]) -> List[Record]:
        words = [*self._where, *tool.flags(target=target, workload=workload)]
        return [_record(row) for row in tool.call_json(["records", verb], words, program=self._program)]


def _record(row: Dict[str, Any]) -> Record:
    return Record(
        row["workload"],
        row["target"],
        row["candidate"],
        row["latency_s"],
        row.get("error", ""),
        row["device"],
        row["at"],
        row,
    )
