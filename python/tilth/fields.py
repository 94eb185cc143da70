"""Reads fields of untrusted JSON objects."""

from __future__ import annotations

from typing import Any, Optional, Sequence

from .errors import Error


def is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def text(row: Any, key: str, default: Optional[str] = None) -> str:
    value = _field(row, key, default)
    if not isinstance(value, str):
        raise Error(f"{key!r} is no text")
    return value


def integer(row: Any, key: str, default: Optional[int] = None) -> int:
    value = _field(row, key, default)
    if not is_integer(value):
        raise Error(f"{key!r} is no whole number")
    return int(value)


def items(row: Any, key: str, default: Optional[Sequence[Any]] = None) -> Sequence[Any]:
    value = _field(row, key, default)
    if not isinstance(value, (list, tuple)):
        raise Error(f"{key!r} is no list")
    return value


def _field(row: Any, key: str, default: Any) -> Any:
    if not isinstance(row, dict):
        raise Error(f"{key!r} is wanted of something else than an object")
    value = row.get(key)
    if value is None and default is None:
        raise Error(f"{key!r} is missing")
    return default if value is None else value
