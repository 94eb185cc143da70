"""Packages that are damaged, cut short, of another version or for another machine are refused, and nothing crashes."""

from __future__ import annotations

import json
import random
import re
import tempfile
import unittest
from pathlib import Path
from typing import Any, Callable, Dict

import tilth
from tilth import package, processor

from . import support


def edited(change: Callable[[Dict[str, Any]], None]) -> str:
    """A package with another manifest."""

    def edit(members: Dict[str, bytes]) -> None:
        manifest = json.loads(members["manifest.json"])
        change(manifest)
        members["manifest.json"] = json.dumps(manifest).encode()

    return support.repack(support.mlp_package(), edit)


def tampered(name: str, change: Callable[[bytes], bytes]) -> str:
    def edit(members: Dict[str, bytes]) -> None:
        members[name] = change(members[name])

    return support.repack(support.mlp_package(), edit)


class Refusals(unittest.TestCase):
    def refuse(self, path: str, message: str) -> None:
        with self.assertRaises(tilth.Error) as caught:
            tilth.load(path)
        text = str(caught.exception)
        self.assertIn(message, text)
        self.assertTrue(text.startswith(f"loading package {path}: "), text)
        self.assertNotIn("\n", text)

    def test_what_is_no_package(self) -> None:
        folder = tempfile.mkdtemp(dir=support.FOLDER)
        for name, data in (
            ("empty", b""),
            ("text", b"hello"),
            ("zeros", bytes(4096)),
            ("noise", random.Random(1).randbytes(8192)),
        ):
            path = Path(folder, name)
            path.write_bytes(data)
            with self.subTest(name):
                self.refuse(str(path), "not a package")
        self.refuse(f"{folder}/nothing.tar", "No such file")
        self.refuse(folder, "Is a directory")

    def test_a_package_that_was_cut_short_anywhere(self) -> None:
        whole = Path(support.mlp_package()).read_bytes()
        path = str(support.FOLDER / "cut.tar")
        rng = random.Random(2)
        for size in [100, 511, 512, 513, len(whole) // 2] + [rng.randrange(len(whole) - 2048) for _ in range(40)]:
            Path(path).write_bytes(whole[:size])
            with self.subTest(size), self.assertRaises(tilth.Error):
                tilth.load(path)

    def test_a_package_with_a_byte_changed_anywhere(self) -> None:
        whole = bytearray(Path(support.mlp_package()).read_bytes())
        path = str(support.FOLDER / "flipped.tar")
        rng = random.Random(3)
        for _ in range(60):
            at = rng.randrange(len(whole))
            whole[at] ^= 1 << rng.randrange(8)
            Path(path).write_bytes(whole)
            with self.subTest(at):
                try:
                    tilth.load(path).close()  # padding, tilth.h and texts of the manifest change nothing
                except tilth.Error:
                    pass
            whole = bytearray(Path(support.mlp_package()).read_bytes())

    def test_damage_to_members(self) -> None:
        for name in ("model.so", "weights.bin"):
            with self.subTest(name):
                self.refuse(tampered(name, lambda data: data[:-1] + bytes([data[-1] ^ 1])), f"{name} is damaged")
                self.refuse(tampered(name, lambda data: data[:-1]), f"{name} is damaged")
                self.refuse(
                    support.repack(support.mlp_package(), lambda members: members.pop(name) and None), f"no {name}"
                )
        tilth.load(tampered("weights.bin", lambda data: data[:-1] + b"\1"), verify=False).close()

    def test_code_that_is_none(self) -> None:
        for name, code in (("no code", b"hello"), ("nothing", b"")):

            def edit(members: Dict[str, bytes], code: bytes = code) -> None:
                import hashlib

                manifest = json.loads(members["manifest.json"])
                for row in manifest["members"]:
                    if row["name"] == "model.so":
                        row.update(size_bytes=len(code), sha256=hashlib.sha256(code).hexdigest())
                members["manifest.json"], members["model.so"] = json.dumps(manifest).encode(), code

            with self.subTest(name):
                self.refuse(support.repack(support.mlp_package(), edit), "loading model.so")

    def test_manifests(self) -> None:
        def tensor(**fields: Any) -> Callable[[Dict[str, Any]], None]:
            return lambda m: m["inputs"][0].update(fields)

        for name, change, message in (
            ("a newer version", lambda m: m.update(format=7), "version 7, this module reads versions 2 to 6"),
            ("an older version", lambda m: m.update(format=1), "version 1"),
            ("no version", lambda m: m.pop("format"), "version None"),
            ("a version of text", lambda m: m.update(format="3" * 999), "version '333"),
            (
                "another architecture",
                lambda m: m["target"].update(arch="mips"),
                "it was compiled for mips, this machine",
            ),
            (
                "another processor",
                lambda m: m["target"]["features"].append("warp"),
                "it needs warp, which this processor",
            ),
            ("no target", lambda m: m.pop("target"), "names no target"),
            ("another size", tensor(shape=[1, 785]), "differ on the size of 'data'"),
            ("a type", tensor(dtype="f7"), "'data' has unknown type 'f7'"),
            ("a negative shape", tensor(shape=[1, -784]), "'data' has no valid shape"),
            ("a shape of text", tensor(shape=["1"]), "'data' has no valid shape"),
            ("a huge shape", tensor(shape=[1 << 40, 1 << 40]), "'data' has no valid shape"),
            ("a rank", tensor(shape=[1] * 100), "'data' has no valid shape"),
            ("an open axis", tensor(open_axes=[2]), "'data' has no valid shape"),
            ("an extent", tensor(varying=[{"axis": 0, "extent": "n", "times": 1}]), "extent 'n', which has no bounds"),
            ("bounds", lambda m: m.update(extents=[{"name": "n", "least": 2, "most": 1}]), "extent 'n' has no bounds"),
            (
                "a step",
                lambda m: m.update(extents=[{"name": "n", "least": 2, "most": 6, "step": 4}]),
                "extent 'n' has no bounds",
            ),
            ("inputs", lambda m: m["inputs"].append(m["inputs"][0]), "an input comes twice"),
            ("fewer calls", lambda m: m["calls"].pop(), "do not belong together"),
            ("a call", lambda m: m["calls"][0].update(task=9), "is of task 9 of 4"),
            ("inputs of text", lambda m: m.update(inputs="data"), "'inputs' is no list"),
            ("a list of numbers", lambda m: m.update(inputs=[1]), "manifest.json"),
            ("digests", lambda m: m.pop("members"), "does not describe model.so"),
            ("decoding", lambda m: m.update(decoding={"past": "a", "step": "b"}), "which are no two extents"),
        ):
            with self.subTest(name):
                self.refuse(edited(change), message)
        for name, data in (
            ("cut", b'{"format": 3'),
            ("a number", b"3"),
            ("deep", b"[" * 100000),
            ("bytes", b"\xff\xfe\xfd"),
        ):
            with self.subTest(name):
                self.refuse(tampered("manifest.json", lambda _, data=data: data), "manifest.json is not valid")

    def test_a_manifest_that_is_too_large_is_not_read(self) -> None:
        path = Path(support.FOLDER, "large.tar")
        data = bytearray(Path(support.mlp_package()).read_bytes())
        place = {}
        with open(support.mlp_package(), "rb") as f:
            place = package.members(f)
        header = place["manifest.json"].offset - 512
        data[header + 124 : header + 136] = b"%011o\0" % (65 << 20)
        data[header + 148 : header + 156] = b" " * 8
        data[header + 148 : header + 156] = b"%06o\0 " % sum(data[header : header + 512])
        with open(path, "wb") as out:
            out.write(data)
            out.truncate(len(data) + (66 << 20))  # a hole, which takes no space
        self.refuse(str(path), "manifest.json has 68157440 bytes, which is too much")


class Processor(unittest.TestCase):
    def test_features_are_those_of_the_compiler(self) -> None:
        """Names of flags are the same in compiler/target/feature.go."""
        text = Path(__file__).resolve().parents[2].joinpath("compiler/target/feature.go").read_text(encoding="utf-8")
        named = dict(re.findall(r'\{name: "([^"]+)", flag: "([^"]+)"\}', text))
        known = {k: v for _, names in processor._FLAGS.values() for k, v in names.items()}
        self.assertEqual(known, named)

    def test_what_is_lacking(self) -> None:
        if processor.arch() == "x86-64":
            self.assertEqual(processor.lacks(["avx2", "avx512f", "lzcnt"], frozenset(["avx2", "abm"])), ["avx512f"])
            self.assertEqual(processor.lacks(["sse4.1"], frozenset(["sse4_1"])), [])
        self.assertEqual(processor.lacks(["avx2"], None), [])
        self.assertEqual(processor.lacks(["sve", "sve256"], frozenset(["sve"])), [])
        self.assertIsNone(processor.flags("/nothing/there"))
