"""Features of this machine's processor, by their names in targets."""

from __future__ import annotations

import platform
from typing import Dict, FrozenSet, Iterable, List, Optional, Tuple

_ARCHES = {
    "x86_64": "x86-64",
    "AMD64": "x86-64",
    "aarch64": "arm64",
    "arm64": "arm64",
    "riscv64": "riscv64",
    "armv7l": "arm32",
}

# The line of /proc/cpuinfo with an architecture's flags, and flags named differently from features.
_FLAGS: Dict[str, Tuple[str, Dict[str, str]]] = {
    "x86-64": (
        "flags",
        {
            "sse3": "pni",
            "sse4.1": "sse4_1",
            "sse4.2": "sse4_2",
            "bmi": "bmi1",
            "lzcnt": "abm",
            "avxvnni": "avx_vnni",
            "avx512vbmi2": "avx512_vbmi2",
            "avx512vnni": "avx512_vnni",
            "avx512bf16": "avx512_bf16",
            "avx512fp16": "avx512_fp16",
            "amx-tile": "amx_tile",
            "amx-int8": "amx_int8",
            "amx-bf16": "amx_bf16",
            "amx-fp16": "amx_fp16",
        },
    ),
    "arm64": ("Features", {"neon": "asimd", "lse": "atomics", "fp16": "asimdhp", "dotprod": "asimddp"}),
    "arm32": ("Features", {"idiv": "idiva"}),
}

# Lengths of SVE registers, which belong to a process: /proc/cpuinfo lacks them, and a package checks its own.
_LENGTHS = frozenset(["sve256", "sve512", "sve1024"])


def arch() -> str:
    """Returns this machine's architecture as named by targets."""
    machine = platform.machine()
    return _ARCHES.get(machine, machine)


def flags(path: str = "/proc/cpuinfo") -> Optional[FrozenSet[str]]:
    """Returns the flags of the first processor, or None if unknown."""
    line = _FLAGS.get(arch(), ("", {}))[0]
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            for text in f:
                key, _, value = text.partition(":")
                if line and key.strip() == line:
                    return frozenset(value.split())
    except OSError:
        pass
    return None


def lacks(features: Iterable[str], has: Optional[FrozenSet[str]]) -> List[str]:
    """Returns the required features missing from these flags; empty if the flags are unknown."""
    if has is None:
        return []
    if "avx2" in has:
        has |= {"abm"}  # some kernels omit it, but every processor with AVX2 has it
    names = _FLAGS.get(arch(), ("", {}))[1]
    return [f for f in features if names.get(f, f) not in has and f not in _LENGTHS]
