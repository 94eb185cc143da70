"""The wheel is whole, the same on every machine, and what pip installs."""

from __future__ import annotations

import doctest
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path
from types import ModuleType

from tilth import program

from . import support

ROOT = Path(__file__).resolve().parents[1]


def backend() -> ModuleType:
    spec = importlib.util.spec_from_file_location("backend", ROOT / "backend.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Wheel(unittest.TestCase):
    def setUp(self) -> None:
        os.environ["TILTH_VERSION"] = "v1.2.0-3-gabc1234"
        self.addCleanup(os.environ.pop, "TILTH_VERSION")

    def make(self) -> Path:
        folder = tempfile.mkdtemp(dir=support.FOLDER)
        return Path(folder, backend().build_wheel(folder))

    def test_it_is_the_same_twice_and_has_all_of_the_package(self) -> None:
        first, second = self.make(), self.make()
        self.assertEqual(first.name, "tilth-1.2.0.post3+gabc1234-py3-none-any.whl")
        self.assertEqual(first.read_bytes(), second.read_bytes())
        with zipfile.ZipFile(first) as archive:
            names = set(archive.namelist())
            metadata = archive.read("tilth-1.2.0.post3+gabc1234.dist-info/METADATA").decode()
        sources = {p.relative_to(ROOT).as_posix() for p in ROOT.glob("tilth/*") if p.is_file()}
        self.assertEqual({n for n in names if n.startswith("tilth/")}, sources)
        self.assertIn("tilth/py.typed", names)
        for line in ("Version: 1.2.0.post3+gabc1234", "Requires-Dist: numpy>=1.21", "Provides-Extra: farm"):
            self.assertIn(line + "\n", metadata)

    def test_what_is_installed_runs_packages(self) -> None:
        folder = Path(tempfile.mkdtemp(dir=support.FOLDER))
        with zipfile.ZipFile(self.make()) as archive:
            archive.extractall(folder)
        script = "import sys, tilth; print(tilth.__version__, tilth.load(sys.argv[1]).name, 'grpc' in sys.modules)"
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        words = [sys.executable, "-c", script, support.mlp_package()]
        out = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=True).stdout
        self.assertEqual(out, "1.2.0.post3+gabc1234 mlp False\n")

    def test_pip_installs_it_without_a_registry(self) -> None:
        if importlib.util.find_spec("pip") is None:
            self.skipTest("pip is not installed")
        folder = tempfile.mkdtemp(dir=support.FOLDER)
        words = [sys.executable, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-index", "--no-deps"]
        subprocess.run([*words, "--target", folder, str(ROOT)], check=True, capture_output=True)
        self.assertTrue(Path(folder, "tilth", "wire.binpb").exists())


class Documentation(unittest.TestCase):
    def test_examples_of_docstrings_hold(self) -> None:
        for module in (backend(), program):
            self.assertEqual(doctest.testmod(module).failed, 0, module.__name__)
