"""Models are tuned and compiled by the program, which is found, watched, interrupted, and whose errors are raised."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import unittest
from pathlib import Path
from typing import List

import numpy as np

import tilth
from tilth import program, source

from . import onnxfile as onnx
from . import support

RECORDS = support.FOLDER / "tuned.db"

# A search that runs until it is interrupted, and reports its start.
# Background processes may have inherited ignored interrupts.
INTERRUPTED = """
import signal, sys, tilth
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    tilth.tune(sys.argv[1], records=sys.argv[2], time="10m", seed=3, progress=lambda trial: print("trial", flush=True))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


class Tuning(unittest.TestCase):
    def test_a_model_is_tuned_compiled_and_run(self) -> None:
        seen: List[tilth.Trial] = []
        tuned = tilth.tune(
            support.mlp(),
            records=RECORDS,
            trials=8,
            tasks="0,1",
            threads=1,
            seed=1,
            name="small",
            progress=seen.append,
        )
        self.assertEqual((tuned.state, tuned.trials, len(seen)), ("done", 8, 8))
        self.assertEqual([t.name for t in tuned.tasks], ["dense+relu 1x784 -> 256", "dense+relu 1x256 -> 128"])
        self.assertEqual({t.task for t in seen}, {t.name for t in tuned.tasks})
        best = [t.best for t in tuned.tasks]
        self.assertTrue(tuned.best is not None and abs(tuned.best - sum(b or 0 for b in best)) < 1e-12)
        self.assertTrue(tuned.speedup is not None and tuned.speedup >= 1)
        self.assertEqual(tuned.curve[-1][1], tuned.best)
        self.assertLess(len(repr(tuned)), 1500)

        compiled = tilth.compile(
            Path(support.mlp()).read_bytes(), support.FOLDER / "tuned.tar", records=RECORDS, threads=1
        )
        self.assertEqual((compiled.tasks, compiled.tuned, compiled.target), (4, 2, tuned.target))
        x = np.random.default_rng(5).random((1, 784), np.float32)
        with compiled.load() as model, tilth.load(support.mlp_package()) as untuned:
            np.testing.assert_allclose(model.run(x)["out"], untuned.run(x)["out"], rtol=1e-4)

        records = tilth.Records(RECORDS)
        self.assertEqual(len(records.best(target=tuned.target)), 2)
        (task, *_) = tilth.tasks(support.mlp())
        listed = records.list(workload=task.workload)
        self.assertEqual({r.workload for r in listed}, {task.workload})
        self.assertLessEqual({t.latency for t in seen if t.task == task.name}, {r.latency for r in listed})
        records.export(support.FOLDER / "export.jsonl")
        self.assertGreater((support.FOLDER / "export.jsonl").stat().st_size, 0)

    def test_schedules_of_tvm_are_seeds(self) -> None:
        log = Path(__file__).parents[2] / "tuner" / "importedseeds" / "testdata" / "autotvm.log"
        path = support.FOLDER / "seeded.db"
        said = tilth.Records(path).import_log(log, "autotvm")
        self.assertRegex(said, r"dense 1x784 -> 256 +1\n")
        self.assertRegex(said, r"[0-9]+ seeds, [1-9][0-9]* of them new")
        again = tilth.Records(path).import_log(log, "autotvm")
        self.assertIn("0 of them new", again)
        with self.assertRaisesRegex(tilth.ProgramError, "--format relay: want one of"):
            tilth.Records(path).import_log(log, "relay")

        other = support.FOLDER / "other.db"
        tuned = tilth.tune(support.mlp(), records=other, trials=2, tasks="0", threads=1, seeds={log: "autotvm"})
        self.assertEqual((tuned.state, tuned.trials), ("done", 2))
        self.assertTrue(Path(f"{other}.seeds").exists())

    def test_what_progress_raises_ends_the_search_and_keeps_its_measurements(self) -> None:
        class Enough(Exception):
            pass

        def progress(trial: tilth.Trial) -> None:
            raise Enough(trial.task)

        file = support.FOLDER / "enough.db"
        with self.assertRaises(Enough):
            tilth.tune(support.mlp(), records=file, time="10m", threads=1, progress=progress)
        self.assertGreater(len(tilth.Records(file).list()), 0)

    def test_an_interrupt_ends_the_search_and_keeps_its_measurements(self) -> None:
        file = support.FOLDER / "interrupted.db"
        with subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED, support.mlp(), file], stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            self.assertEqual(child.stdout.readline(), "trial\n")
            child.send_signal(signal.SIGINT)
            self.assertEqual(child.stdout.read().splitlines()[-1:], ["interrupted"])
        self.assertGreater(len(tilth.Records(file).list()), 0)

    def test_the_error_of_a_package_is_measured_and_bounded(self) -> None:
        inputs = {"data": np.random.default_rng(6).random((1, 784), np.float32)}
        out = support.FOLDER / "checked.tar"
        compiled = tilth.compile(support.mlp(), out, untuned=True, threads=1, check=inputs)
        self.assertIn("out", compiled.raw["accuracy"]["relative_errors"])
        with self.assertRaisesRegex(tilth.ProgramError, "exceed|error"):
            tilth.compile(
                support.mlp(),
                support.FOLDER / "refused.tar",
                untuned=True,
                weights="int4",
                check=inputs,
                max_error=1e-9,
            )
        self.assertFalse((support.FOLDER / "refused.tar").exists())

    def test_failures_are_the_programs_own_words(self) -> None:
        out = support.FOLDER / "none.tar"
        for name, call, message, status in (
            ("no file", lambda: tilth.compile("/no/model.onnx", out), "read model.*no such file", 1),
            ("no model", lambda: tilth.compile(b"hello", out), "ONNX|onnx|model", 1),
            ("a number", lambda: tilth.tune(support.mlp(), trials=-1), "--trials \"-1\": want at least 0", 2),
            ("a device here", lambda: tilth.tune(support.mlp(), device="x"), "--device is for farms", 2),
        ):
            with self.subTest(name), self.assertRaisesRegex(tilth.ProgramError, message) as caught:
                call()
            self.assertEqual(caught.exception.status, status)
            self.assertNotIn("\n", str(caught.exception))
        with self.assertRaisesRegex(tilth.Error, "a dict is no model: want a path"):
            tilth.tasks({})
        with self.assertRaisesRegex(tilth.Error, "no model was given"):
            tilth.tasks([])


class Models(unittest.TestCase):
    def test_a_model_comes_in_several_forms(self) -> None:
        data = onnx.model(
            [("Relu", ["x"], ["y"], {})], [("x", onnx.FLOAT, ["n", 2])], [("y", onnx.FLOAT, ["n", 2])], {}
        )

        class Proto:
            def SerializeToString(self) -> bytes:
                return data

        for model in (data, bytearray(data), Proto()):
            (task,) = tilth.tasks(model, shape={"n": 3})
            self.assertEqual((task.times, task.index), (1, 0))
        self.assertEqual(len(tilth.tasks([data, Proto()], shape="n=3")), 1)

    def test_files_are_named_after_the_model(self) -> None:
        class Graph:
            name = "../my model"

        class Proto:
            graph = Graph()

        self.assertEqual(source._name(Proto()), "my-model")
        self.assertEqual(source._name(b""), "model")


class Finding(unittest.TestCase):
    def setUp(self) -> None:
        self.program = program.find()
        before = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(before)))

    def test_the_program_is_found_where_it_is_named(self) -> None:
        os.environ.pop("TILTH", None)
        os.environ["PATH"] = "/nowhere"
        self.assertEqual(program.find(self.program), self.program)
        os.environ["TILTH"] = self.program
        self.assertEqual(program.find(), self.program)
        with self.assertRaisesRegex(tilth.ProgramError, "there is no program /no/tilth: name tilth's"):
            program.find("/no/tilth")
        del os.environ["TILTH"]
        os.environ["PATH"] = os.path.dirname(self.program)
        self.assertEqual(program.find(), self.program)
