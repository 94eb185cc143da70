"""Makes the wheel: for pip, as pyproject.toml names it, and by itself: ``python3 backend.py FOLDER``.

It needs nothing but Python. One version of the sources makes the same wheel, bit for bit, on every machine.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

_ROOT = Path(__file__).resolve().parent
_PACKAGE = _ROOT / "tilth"
_SUFFIXES = (".py", ".typed", ".binpb")
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # the earliest date in a zip file

_METADATA = """\
Metadata-Version: 2.1
Name: tilth
Version: {version}
Summary: Tunes neural-network kernels on real devices, and runs the packages that it compiles
License: Apache-2.0
License-File: LICENSE
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Requires-Python: >=3.9
Requires-Dist: numpy>=1.21
Provides-Extra: farm
Requires-Dist: grpcio>=1.51; extra == "farm"
Requires-Dist: protobuf>=3.21; extra == "farm"
Provides-Extra: torch
Requires-Dist: torch>=1.13; extra == "torch"
Description-Content-Type: text/markdown

{description}"""

_WHEEL = """\
Wheel-Version: 1.0
Generator: tilth
Root-Is-Purelib: true
Tag: py3-none-any
"""


def normalised(described: str) -> str:
    """What ``git describe --tags --always --dirty`` says, as a version of PEP 440.

    >>> [normalised(v) for v in ("v1.2.0", "v1.2.0-3-gabc1234", "v1.2.0-rc.1", "abc1234-dirty", "unknown")]
    ['1.2.0', '1.2.0.post3+gabc1234', '1.2.0rc1', '0+gabc1234.dirty', '0+unknown']
    """
    text, dirty = re.subn(r"-dirty$", "", described.strip())
    local = ["dirty"] if dirty else []
    after = re.fullmatch(r"(.+)-(\d+)-(g[0-9a-f]+)", text)
    if after:
        text, local = after[1], [after[3], *local]
    release = re.fullmatch(r"v?(\d+(?:\.\d+)*)(?:[-.]?(a|b|rc|alpha|beta)[-.]?(\d+))?", text)
    # A digest of digits only is not a release: tags contain a dot or begin with v.
    if release and (text.startswith("v") or "." in text):
        version = release[1]
        if release[2]:
            version += {"alpha": "a", "beta": "b"}.get(release[2], release[2]) + release[3]
        if after:
            version += f".post{after[2]}"
    else:
        version = "0"
        local = ["g" + text if re.fullmatch(r"[0-9a-f]{4,40}", text) else "unknown", *local]
    return "+".join([version, ".".join(local)] if local else [version])


def version() -> str:
    """Returns the version: $TILTH_VERSION, or that of the git checkout."""
    described = os.environ.get("TILTH_VERSION")
    if not described:
        words = ["git", "-C", str(_ROOT), "describe", "--tags", "--always", "--dirty"]
        try:
            described = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            described = "unknown"
    return normalised(described)


def _metadata(of: str) -> Dict[str, bytes]:
    folder = f"tilth-{of}.dist-info"
    description = (_ROOT / "README.md").read_text(encoding="utf-8")
    return {
        f"{folder}/LICENSE": (_ROOT.parent / "LICENSE").read_bytes(),
        f"{folder}/METADATA": _METADATA.format(version=of, description=description).encode(),
        f"{folder}/WHEEL": _WHEEL.encode(),
    }


def _sources() -> Dict[str, bytes]:
    paths = [p for p in sorted(_PACKAGE.rglob("*")) if p.suffix in _SUFFIXES]
    return {p.relative_to(_ROOT).as_posix(): p.read_bytes() for p in paths}


def _record(files: Mapping[str, bytes], path: str) -> bytes:
    rows = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(data)}\n")
    return "".join([*rows, f"{path},,\n"]).encode()


def _write(folder: str, files: Dict[str, bytes]) -> str:
    of = version()
    name, record = f"tilth-{of}-py3-none-any.whl", f"tilth-{of}.dist-info/RECORD"
    files = {**dict(sorted(files.items())), **_metadata(of)}
    files[record] = _record(files, record)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, name)
    # No compression, because versions of zlib compress differently.
    with zipfile.ZipFile(path + ".tmp", "w", zipfile.ZIP_STORED) as archive:
        for member, data in files.items():
            info = zipfile.ZipInfo(member, _EARLIEST)
            info.create_system, info.external_attr = 3, 0o100644 << 16
            archive.writestr(info, data)
    os.replace(path + ".tmp", path)
    return name


# The hooks of PEP 517 and PEP 660.


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: Optional[str] = None) -> str:
    return _write(wheel_directory, _sources())


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: Optional[str] = None) -> str:
    return _write(wheel_directory, {"tilth.pth": f"{_ROOT}\n".encode()})


def build_sdist(sdist_directory: str, config_settings: Any = None) -> str:
    raise NotImplementedError("the sources are those of the repository")


def get_requires_for_build_wheel(config_settings: Any = None) -> List[str]:
    return []


def main(words: Tuple[str, ...]) -> None:
    if len(words) != 1:
        raise SystemExit("usage: python3 backend.py FOLDER")
    print(os.path.join(words[0], build_wheel(words[0])))


if __name__ == "__main__":
    main(tuple(sys.argv[1:]))
