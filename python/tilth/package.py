"""Reads a compiled package: its members, its manifest, and whether they belong together and run here."""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import tarfile
from dataclasses import dataclass
from typing import Any, BinaryIO, Dict, List, NamedTuple, Optional, Tuple

from . import fields, processor
from .errors import Error
from .tensor import Extent, Tensor, parse_extent, parse_tensor

#: Versions of the package format that this module reads.
OLDEST_FORMAT, NEWEST_FORMAT = 2, 6

MANIFEST, OBJECT, WEIGHTS = "manifest.json", "model.so", "weights.bin"

# A package has four members. Limits apply to members that are read before they are verified.
_MAX_MEMBERS = 64
_MAX_BYTES = {MANIFEST: 64 << 20, OBJECT: 1 << 30}


class Place(NamedTuple):
    """The position of a member in the archive."""

    offset: int
    size: int


@dataclass(frozen=True)
class Call:
    """One execution of a kernel: the model's nodes that it computes, and its task."""

    name: str
    task: str


@dataclass(frozen=True)
class Manifest:
    """A package's manifest; ``raw`` is the whole document."""

    model: str
    target: Dict[str, Any]
    extents: Tuple[Extent, ...]
    past: Optional[str]
    step: Optional[str]
    inputs: Tuple[Tensor, ...]
    outputs: Tuple[Tensor, ...]
    calls: Tuple[Call, ...]
    digests: Dict[str, Tuple[int, str]]
    raw: Dict[str, Any]


def members(f: BinaryIO) -> Dict[str, Place]:
    """Returns the members of the archive without reading them."""
    size = os.fstat(f.fileno()).st_size
    found: Dict[str, Place] = {}
    try:
        with tarfile.open(fileobj=f, mode="r:") as archive:
            for member in archive:
                if member.name in found or len(found) == _MAX_MEMBERS:
                    raise Error(f"it has {member.name} twice, or more than {_MAX_MEMBERS} members")
                if not member.isreg() or member.sparse is not None:
                    raise Error(f"{member.name} is no plain file")
                if not 0 <= member.size <= size - member.offset_data:
                    place = f"{member.size} bytes at byte {member.offset_data} of {size}"
                    raise Error(f"it was cut short: {member.name} has {place}")
                found[member.name] = Place(member.offset_data, member.size)
    except (tarfile.TarError, ValueError, IndexError, OverflowError, RecursionError, EOFError) as e:
        raise Error("it is not a package, or was cut short") from e
    if not found:
        raise Error("it is not a package, or was cut short")
    return found


def read(f: BinaryIO, found: Dict[str, Place], name: str) -> bytes:
    """Reads a member into memory."""
    if name not in found:
        raise Error(f"it has no {name}")
    place = found[name]
    if place.size > _MAX_BYTES[name]:
        raise Error(f"its {name} has {place.size} bytes, which is too much")
    f.seek(place.offset)
    data = f.read(place.size)
    if len(data) != place.size:
        raise Error(f"it was cut short: {name} has {len(data)} of {place.size} bytes")
    return data


def manifest(data: bytes) -> Manifest:
    """Reads and checks a manifest."""
    try:
        raw = json.loads(data)
    except (ValueError, RecursionError) as e:
        raise Error(f"{MANIFEST} is not valid: {e}") from e
    if not isinstance(raw, dict):
        raise Error(f"{MANIFEST} is not valid")
    version = raw.get("format")
    if not isinstance(version, int) or not OLDEST_FORMAT <= version <= NEWEST_FORMAT:
        versions = f"this module reads versions {OLDEST_FORMAT} to {NEWEST_FORMAT}"
        raise Error(f"its format is version {version!r:.20}, {versions}; compile the model again")
    try:
        return _checked(raw)
    except Error as e:
        raise Error(f"{MANIFEST}: {e}") from e


def _checked(raw: Dict[str, Any]) -> Manifest:
    target = raw.get("target")
    if not isinstance(target, dict):
        raise Error("it names no target")
    extents = tuple(parse_extent(row) for row in fields.items(raw, "extents", ()))
    decoding = raw.get("decoding")
    m = Manifest(
        model=fields.text(raw, "model", ""),
        target=target,
        extents=extents,
        past=fields.text(decoding, "past") if decoding else None,
        step=fields.text(decoding, "step") if decoding else None,
        inputs=tuple(parse_tensor(row, extents) for row in fields.items(raw, "inputs", ())),
        outputs=tuple(parse_tensor(row, extents) for row in fields.items(raw, "outputs", ())),
        calls=tuple(_calls(raw)),
        digests={
            fields.text(row, "name"): (fields.integer(row, "size_bytes"), fields.text(row, "sha256"))
            for row in fields.items(raw, "members", ())
        },
        raw=raw,
    )
    _check_names(m)
    return m


def _calls(raw: Dict[str, Any]) -> List[Call]:
    tasks = [fields.text(row, "name") for row in fields.items(raw, "tasks", ())]
    calls = []
    for row in fields.items(raw, "calls", ()):
        name, task = fields.text(row, "name"), fields.integer(row, "task")
        if not 0 <= task < len(tasks):
            raise Error(f"call {name!r} is of task {task} of {len(tasks)}")
        calls.append(Call(name, tasks[task]))
    return calls


def _check_names(m: Manifest) -> None:
    for what, names in (
        ("extent", [e.name for e in m.extents]),
        ("input", [t.name for t in m.inputs]),
        ("output", [t.name for t in m.outputs]),
    ):
        if len(set(names)) != len(names):
            raise Error(f"an {what} comes twice")
    inputs = {t.name: t for t in m.inputs}
    kept = [t for t in m.outputs if t.continues]
    for t in kept:
        other = inputs.get(t.continues)
        if other is None or (other.shape, other.type) != (t.shape, t.type):
            raise Error(f"output {t.name!r} continues {t.continues!r}, which is no input like it")
    if m.past is not None:
        known = {e.name for e in m.extents}
        if m.past == m.step or not {m.past, m.step} <= known or not kept:
            raise Error(f"decoding is by {m.past!r} and {m.step!r}, which are no two extents, or continues no input")


def check_here(m: Manifest) -> None:
    """Raises Error unless the package runs on this machine."""
    arch, here = m.target.get("arch"), processor.arch()
    if arch != here:
        raise Error(f"it was compiled for {arch}, this machine is {here}; compile the model for this machine")
    features = [f for f in fields.items(m.target, "features", ()) if isinstance(f, str)]
    missing = processor.lacks(features, processor.flags())
    if missing:
        names = ", ".join(missing)
        raise Error(f"it needs {names}, which this processor lacks; compile the model for this machine")


def check_digest(m: Manifest, name: str, data: Any) -> None:
    """Raises Error unless a member matches the manifest."""
    if name not in m.digests:
        raise Error(f"{MANIFEST} does not describe {name}")
    if (len(data), hashlib.sha256(data).hexdigest()) != m.digests[name]:
        raise Error(f"{name} is damaged: it does not match {MANIFEST}; copy or compile the package again")


def check_weights(m: Manifest, f: BinaryIO, place: Place) -> None:
    """Checks the digest of the mapped weights, which also loads them into memory."""
    if place.size == 0:
        check_digest(m, WEIGHTS, b"")
        return
    skip = place.offset % mmap.ALLOCATIONGRANULARITY
    with mmap.mmap(f.fileno(), place.size + skip, access=mmap.ACCESS_READ, offset=place.offset - skip) as pages:
        with memoryview(pages) as view, view[skip:] as weights:
            check_digest(m, WEIGHTS, weights)
