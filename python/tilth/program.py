"""Finds and runs the ``tilth`` program, which contains the compiler and the search."""

from __future__ import annotations

import datetime
import json
import logging
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Callable, List, Mapping, Optional, Sequence, Union

from .errors import ProgramError

log = logging.getLogger("tilth")

#: Seconds, or text such as "5m", or a timedelta.
Duration = Union[int, float, str, datetime.timedelta]
#: An extent, a shape, bounds (``range(1, 513)`` is 1 to 512), or the text of any of them or of an expression, by input
#: or symbol.
Shapes = Union[str, Mapping[str, Union[int, str, range, Sequence[int]]]]

# Poll interval of a running program, and time limit of an interrupted one.
_POLL_SECONDS = 0.1
_PARTING_SECONDS = 30


def find(program: Optional[Union[str, "os.PathLike[str]"]] = None) -> str:
    """Returns the program: the given one, ``$TILTH``, ``tilth`` in ``$PATH``, or ``bin/tilth`` beside the package."""
    named = os.environ.get("TILTH") if program is None else os.fspath(program)
    if named:
        path = shutil.which(named)
        if path is None:
            raise ProgramError(f"there is no program {named}: name tilth's by program= or $TILTH")
        return path
    here = Path(__file__).resolve().parent
    for place in ("tilth", here / "bin" / "tilth", here.parents[1] / "bin" / "tilth"):
        path = shutil.which(str(place))
        if path is not None:
            return path
    raise ProgramError("the program tilth is not there: install it, or name it by program= or $TILTH")


def flags(**options: Any) -> List[str]:
    """Converts options to flags: None and False are omitted, True gives a flag without a value."""
    words = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            words.append(flag)
        elif value is not None and value is not False:
            words.append(f"{flag}={value}")
    return words


def security(ca: Any, cert: Any, key: Any, token_file: Any) -> List[str]:
    """Returns the flags for TLS and authentication."""
    return flags(tls_ca=path_of(ca), tls_cert=path_of(cert), tls_key=path_of(key), token_file=path_of(token_file))


def path_of(value: Any) -> Optional[str]:
    return None if value is None else os.fsdecode(value)


def duration(value: Optional[Duration]) -> Optional[str]:
    """Formats a duration for the program."""
    if value is None or isinstance(value, str):
        return value
    seconds = value.total_seconds() if isinstance(value, datetime.timedelta) else value
    return f"{seconds:f}s"


def shapes(value: Optional[Shapes]) -> Optional[str]:
    """Formats shapes for the program.

    >>> shapes({"data": (1, 3, 224, 224), "batch": 1, "sequence": range(1, 513), "height": range(32, 1281, 32)})
    'data=1x3x224x224,batch=1,sequence=1..512,height=32..1280/32'
    """
    if value is None or isinstance(value, str):
        return value
    return ",".join(f"{name}={_shape(extents)}" for name, extents in value.items())


def _shape(value: Union[int, str, range, Sequence[int]]) -> str:
    if isinstance(value, (int, str)):
        return str(value)
    if isinstance(value, range):
        if len(value) == 0 or value.step < 1:
            raise ProgramError(f"{value} is no bounds: want range(LEAST, MOST + 1)")
        step = f"/{value.step}" if value.step > 1 else ""
        return f"{value[0]}..{value[-1]}{step}"
    return "x".join(map(str, value))


def call(
    words: Sequence[str],
    *,
    program: Optional[Union[str, "os.PathLike[str]"]] = None,
    watch: Optional[Callable[[], None]] = None,
) -> str:
    """Runs the program to its end and returns what it printed.

    ``watch`` is called now and then while it runs, and once afterwards. An interrupt (ctrl-C), or what ``watch``
    raises, asks the program to stop, waits for it, and is raised again; a second interrupt kills it. Raises
    ProgramError with the program's own message.
    """
    executable = find(program)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            # A terminal interrupts the whole process group. A separate session lets us send the interrupt once.
            process = subprocess.Popen(
                [executable, *words], stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True
            )
        except OSError as e:
            raise ProgramError(f"{executable} does not start: {e.strerror}") from e
        _await(process, watch)
        said = _text(err).splitlines()
        if process.returncode != 0:
            raise ProgramError(_message(said, process.returncode, words), process.returncode)
        for line in said:
            log.log(logging.WARNING if "level=WARN" in line or "level=ERROR" in line else logging.INFO, "%s", line)
        return _text(out)


def call_json(
    command: Sequence[str],
    words: Sequence[str],
    *,
    program: Optional[Union[str, "os.PathLike[str]"]] = None,
    watch: Optional[Callable[[], None]] = None,
) -> Any:
    """Runs ``call`` with ``--json`` and parses its output."""
    text = call([*command, "--json", *words], program=program, watch=watch)
    try:
        return json.loads(text)
    except ValueError as e:
        raise ProgramError(f"tilth {command[0]} printed no JSON: {e}") from e


def _await(process: "subprocess.Popen[bytes]", watch: Optional[Callable[[], None]]) -> None:
    try:
        while process.poll() is None:
            try:
                process.wait(_POLL_SECONDS if watch else None)
            except subprocess.TimeoutExpired:
                pass
            if watch:
                watch()
        if watch:
            watch()
    except BaseException:
        _stop(process)
        raise


def _stop(process: "subprocess.Popen[bytes]") -> None:
    try:
        process.send_signal(signal.SIGINT)
        process.wait(_PARTING_SECONDS)
    except subprocess.TimeoutExpired:
        log.warning("tilth does not stop: it is killed")
    finally:
        process.kill()
        process.wait()


def _text(f: Any) -> str:
    f.seek(0)
    return str(f.read().decode(errors="replace"))


def _message(said: Sequence[str], status: int, words: Sequence[str]) -> str:
    """Returns the program's last line, the error message."""
    last = next((line for line in reversed(said) if line.strip()), "")
    prefix = "tilth: "
    if last.startswith(prefix):
        return last[len(prefix) :]
    return last or f"tilth {words[0]} ended with status {status}"
