"""Exceptions."""

from __future__ import annotations

from typing import Optional


class Error(Exception):
    """A failure, described on one line with its subject and the remedy."""


class InputError(Error, ValueError):
    """An input of a model is missing, unknown, or not of its type and shape."""


class ProgramError(Error):
    """The ``tilth`` program failed.

    ``status`` is its exit status: 1 for a failure, 2 for wrong usage. None means that it could not be started.
    """

    def __init__(self, message: str, status: Optional[int] = None) -> None:
        super().__init__(message)
        self.status = status
