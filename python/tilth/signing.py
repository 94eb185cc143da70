"""Verifies signatures of minisign: Ed25519 (RFC 8032) over the BLAKE2b digest of a file."""

from __future__ import annotations

import base64
import binascii
import fcntl
import hashlib
import os
import stat
from typing import BinaryIO, NamedTuple, Optional, Tuple, Union

from .errors import Error

#: Suffix of signature files.
SUFFIX = ".minisig"

# Keys and signatures have a few hundred bytes.
_MAX_BYTES = 16 << 10
_BLOCK = 1 << 20
_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE

_P = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P

# A point in extended coordinates: x = X/Z, y = Y/Z, x*y = T/Z.
_Point = Tuple[int, int, int, int]
_NEUTRAL: _Point = (0, 1, 1, 0)


class Key(NamedTuple):
    """A public key: its id and its 32 bytes."""

    number: bytes
    point: bytes


class Signature(NamedTuple):
    """A parsed, unverified signature."""

    of_file: bytes
    comment: bytes
    #: The signature of of_file and the comment.
    of_said: bytes


def parse_key(key: Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]) -> Key:
    """A key as text (RW...), or a key file. Pass a Path for a file whose name begins with RW."""
    text = os.fsdecode(key)
    if isinstance(key, os.PathLike) or not text.lstrip().startswith(("RW", "untrusted comment:")):
        try:
            with open(text, "rb") as f:
                text = f.read(_MAX_BYTES).decode("utf-8", "replace")
        except OSError as e:
            raise Error(f"reading the public key {key!s}: {e.strerror or e}") from e
    lines = [line for line in text.splitlines() if line and not line.startswith("untrusted comment:")]
    data = _decoded(lines[0], 42) if lines else None
    if data is None or data[:2] != b"Ed":
        raise Error("no public key of minisign: want one that begins with RW, or its file")
    return Key(data[2:10], data[10:])


def open_regular(path: str) -> BinaryIO:
    """Opens a regular file without blocking on a pipe."""
    f = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))
    if not stat.S_ISREG(os.fstat(f.fileno()).st_mode):
        f.close()
        raise Error(f"{path} is no file: a signature is of one file")
    return f


def read_signature(path: str, key: Key) -> Signature:
    """Reads a signature file. Raises Error unless it names the key."""
    try:
        with open_regular(path) as s:
            lines = s.read(_MAX_BYTES).decode("utf-8", "replace").splitlines()
    except FileNotFoundError as e:
        raise Error(f"it is not signed: there is no {path}") from e
    comment = "trusted comment: "
    if len(lines) < 4 or not lines[2].startswith(comment):
        raise Error(f"{path} is no signature of minisign")
    first, second = _decoded(lines[1], 74), _decoded(lines[3], 64)
    if first is None or second is None or first[:2] != b"ED":
        raise Error(f"{path} is no signature of minisign, or one of its old kind")
    if first[2:10] != key.number:
        raise Error("it is signed with another key")
    return Signature(first[10:], lines[2][len(comment) :].encode(), second)


def verify(f: BinaryIO, signature: Signature, key: Key) -> None:
    """Reads a file to its end. Raises Error unless the key has signed it."""
    digest = hashlib.blake2b()
    for block in iter(lambda: f.read(_BLOCK), b""):
        digest.update(block)
    said = signature.of_file + signature.comment
    if not _holds(key.point, digest.digest(), signature.of_file) or not _holds(key.point, said, signature.of_said):
        raise Error("the file or its signature was changed after signing")


def verified(path: str, key: Key) -> BinaryIO:
    """Returns an immutable copy in memory of a signed file, positioned at its start.

    It takes memory only once the file is known to be signed, and then verifies the copy, since the file may have been
    changed meanwhile.
    """
    signature = read_signature(path + SUFFIX, key)
    with open_regular(path) as f:
        verify(f, signature, key)
        size = f.tell()
        f.seek(0)
        copy = sealed(f, size)
    try:
        verify(copy, signature, key)
        copy.seek(0)
    except BaseException:
        copy.close()
        raise
    return copy


def sealed(f: BinaryIO, most: int) -> BinaryIO:
    """Returns an immutable copy in memory of at most that many bytes, positioned at its start."""
    copy = os.fdopen(os.memfd_create("tilth-verified", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING), "w+b")
    try:
        while most > 0:
            block = f.read(min(most, _BLOCK))
            if not block:
                break
            copy.write(block)
            most -= len(block)
        copy.seek(0)
        fcntl.fcntl(copy, fcntl.F_ADD_SEALS, _SEALS)
    except BaseException:
        copy.close()
        raise
    return copy


def _decoded(text: str, size: int) -> Optional[bytes]:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if len(data) == size else None


def _holds(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether S*B = R + H(R, A, M)*A."""
    a, r = _point(public), _point(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= _ORDER:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % _ORDER
    left, right = _times(s, _BASE), _sum(r, _times(h, a))
    same_x = (left[0] * right[2] - right[0] * left[2]) % _P == 0
    return same_x and (left[1] * right[2] - right[1] * left[2]) % _P == 0


def _point(encoded: bytes) -> Optional[_Point]:
    """The point whose y and sign of x are encoded; None if there is none."""
    number = int.from_bytes(encoded, "little")
    y, odd = number & (2**255 - 1), number >> 255
    if y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P != 0:
        x = x * pow(2, (_P - 1) // 4, _P) % _P
    if (x * x - square) % _P != 0 or (x == 0 and odd):
        return None
    if x & 1 != odd:
        x = _P - x
    return x, y, 1, x * y % _P


def _sum(p: _Point, q: _Point) -> _Point:
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % _P, (p[1] + p[0]) * (q[1] + q[0]) % _P
    c, d = 2 * _D * p[3] * q[3] % _P, 2 * p[2] * q[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _times(n: int, p: _Point) -> _Point:
    total = _NEUTRAL
    while n:
        if n & 1:
            total = _sum(total, p)
        p = _sum(p, p)
        n >>= 1
    return total


def _base() -> _Point:
    point = _point((4 * pow(5, -1, _P) % _P).to_bytes(32, "little"))
    assert point is not None
    return point


_BASE = _base()
