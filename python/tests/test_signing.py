"""With a key, only what it has signed is loaded."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

import tilth
from tilth import signing

from . import support


@unittest.skipUnless(shutil.which("minisign"), "minisign is not installed")
class Signatures(unittest.TestCase):
    def setUp(self) -> None:
        self.dir = Path(tempfile.mkdtemp(dir=support.FOLDER))
        for name in ("own", "other"):
            self.minisign("-G", "-W", "-p", f"{name}.pub", "-s", f"{name}.key")

    def minisign(self, *args: str) -> None:
        subprocess.run(["minisign", *args], cwd=self.dir, check=True, capture_output=True)

    def refuse(self, path: Path, key: Path, message: str) -> None:
        with self.assertRaises(tilth.Error) as caught:
            tilth.load(path, key=key)
        self.assertIn(message, str(caught.exception))
        self.assertIn(str(path), str(caught.exception))

    def test_a_package_is_loaded_with_the_key_that_signed_it(self) -> None:
        path = self.dir / "mlp.tar"
        shutil.copyfile(support.mlp_package(), path)
        key = self.dir / "own.pub"
        self.refuse(path, key, "it is not signed: there is no ")
        self.minisign("-S", "-s", "own.key", "-t", "of Monday", "-m", "mlp.tar")
        text = key.read_text().splitlines()[1]
        with tilth.load(support.mlp_package()) as model:
            want = model.run(data=np.zeros((1, 784), np.float32))["out"]
        for proof in (key, text):
            with tilth.load(path, key=proof) as model:
                os.truncate(path, 0)  # what is loaded is the copy that was verified
                outputs = model.run(data=np.zeros((1, 784), np.float32))
                self.assertTrue(np.array_equal(outputs["out"], want))
            shutil.copyfile(support.mlp_package(), path)
        self.refuse(path, self.dir / "other.pub", "it is signed with another key")
        with open(path, "r+b") as f:
            f.seek(100)
            f.write(b"x")
        self.refuse(path, key, "changed after signing")

    def test_what_is_no_regular_file_is_not_waited_for(self) -> None:
        (self.dir / "file").write_bytes(b"a package")
        self.minisign("-S", "-s", "own.key", "-t", "of Monday", "-m", "file")
        os.mkfifo(self.dir / "pipe")
        os.symlink("/dev/zero", self.dir / "endless")
        for name in ("pipe", "endless"):
            shutil.copyfile(self.dir / "file.minisig", self.dir / f"{name}.minisig")
            self.refuse(self.dir / name, self.dir / "own.pub", f"{name} is no file")
        (self.dir / "file.minisig").unlink()
        os.mkfifo(self.dir / "file.minisig")
        self.refuse(self.dir / "file", self.dir / "own.pub", "file.minisig is no file")

    def test_a_copy_is_what_was_verified_and_cannot_be_changed(self) -> None:
        with signing.sealed(io.BytesIO(b"a package and more"), 9) as copy:
            self.assertEqual(copy.read(), b"a package")
            with self.assertRaises(OSError):
                os.pwrite(copy.fileno(), b"x", 0)
            with self.assertRaises(OSError):
                os.ftruncate(copy.fileno(), 0)

    def test_no_bit_of_a_signature_may_change(self) -> None:
        (self.dir / "file").write_bytes(b"a package")
        self.minisign("-S", "-s", "own.key", "-t", "of Monday", "-m", "file")
        key = signing.parse_key(self.dir / "own.pub")
        path = self.dir / "file.minisig"
        lines = path.read_text().splitlines()
        signing.verify(io.BytesIO(b"a package"), signing.read_signature(str(path), key), key)
        for line, at in ((1, 20), (1, 70), (2, 20), (3, 5), (3, 60)):
            changed = list(lines)
            letter = "A" if changed[line][at] != "A" else "B"
            changed[line] = changed[line][:at] + letter + changed[line][at + 1 :]
            path.write_text("\n".join(changed) + "\n")
            with self.subTest(line=line, at=at), self.assertRaises(tilth.Error):
                signing.verify(io.BytesIO(b"a package"), signing.read_signature(str(path), key), key)

    def test_a_path_is_a_file_whatever_its_name(self) -> None:
        os.rename(self.dir / "own.pub", self.dir / "RW.pub")
        here = os.getcwd()
        os.chdir(self.dir)
        self.addCleanup(os.chdir, here)
        key = signing.parse_key(Path("RW.pub"))
        self.assertEqual(key, signing.parse_key(os.fsencode(self.dir / "RW.pub")))
        self.assertEqual(key, signing.parse_key(Path("RW.pub").read_bytes()))

    def test_what_is_no_key_is_refused(self) -> None:
        for key in ("RWhello", str(self.dir / "own.key"), str(self.dir / "nothing")):
            with self.subTest(key), self.assertRaises(tilth.Error):
                signing.parse_key(key)
