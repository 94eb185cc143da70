"""Packages run, and give what the program says."""

from __future__ import annotations

import gc
import os
import threading
import unittest

import numpy as np

import tilth
from tilth import program

from . import support


def image(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((1, 784), np.float32)


class Running(unittest.TestCase):
    def setUp(self) -> None:
        self.model = tilth.load(support.mlp_package())
        self.addCleanup(self.model.close)

    def test_outputs_are_those_of_the_program_and_of_the_reference(self) -> None:
        inputs, outputs = support.FOLDER / "in.npz", support.FOLDER / "out.npz"
        np.savez(inputs, data=image())
        program.call(["run", support.mlp_package(), f"--inputs={inputs}", f"--outputs={outputs}"])
        reference = tilth.compile(support.mlp(), support.FOLDER / "reference.tar", target="reference", untuned=True)
        got = self.model.run(data=image())["out"]
        np.testing.assert_array_equal(got, np.load(outputs)["out"])
        with reference.load() as other:
            np.testing.assert_allclose(got, other.run(data=image())["out"], rtol=1e-4)

    def test_inputs_are_given_in_three_ways(self) -> None:
        want = self.model.run({"data": image()})["out"]
        np.testing.assert_array_equal(self.model.run(image())["out"], want)
        np.testing.assert_array_equal(self.model.run(data=image())["out"], want)
        columns = np.asfortranarray(np.repeat(image(), 2, axis=0))[::2]
        np.testing.assert_array_equal(self.model.run(columns)["out"], want)

    def test_inputs_and_outputs_are_described(self) -> None:
        (data,), (out,) = self.model.inputs, self.model.outputs
        self.assertEqual((data.name, data.dtype, data.shape), ("data", np.float32, (1, 784)))
        self.assertEqual((out.name, out.dtype, out.shape), ("out", np.float32, (1, 10)))
        self.assertEqual(repr(self.model), "<tilth.Model mlp(data: float32[1, 784]) -> out: float32[1, 10]>")

    def test_wrong_inputs_are_named_with_what_is_wanted(self) -> None:
        for name, inputs, message in (
            ("none", {}, 'input "data" (float32[1, 784]) is missing'),
            ("a type", {"data": image().astype(np.float64)}, 'input "data" is float64[1, 784], not float32[1, 784]'),
            ("a shape", {"data": image()[:, :5]}, 'input "data" is float32[1, 5], not float32[1, 784]'),
            ("a rank", {"data": image()[0]}, 'input "data" is float32[784], not float32[1, 784]'),
            ("another name", {"date": image()}, "has no input 'date' to be given; these are \"data\""),
            ("an order of bytes", {"data": image().astype(">f4")}, 'input "data" is >f4[1, 784]'),
            ("no array", {"data": [[1], [1, 2]]}, 'input "data" is no array'),
        ):
            with self.subTest(name), self.assertRaises(tilth.InputError) as caught:
                self.model.run(inputs)
            self.assertIn(message, str(caught.exception))
            self.assertNotIn("\n", str(caught.exception))
        for call in (
            lambda: self.model.run(image(), image()),
            lambda: self.model.run({"data": image()}, image()),
            lambda: self.model.run(image(), data=image()),
        ):
            self.assertRaises(tilth.InputError, call)

    def test_memory_is_seen_without_a_copy_and_outlives_the_model(self) -> None:
        want = self.model.run(image(1))["out"]
        view = self.model.input("data")
        view[...] = image(1)
        self.assertTrue(np.shares_memory(view, self.model.input("data")))
        self.model.execute()
        out = self.model.output("out")
        np.testing.assert_array_equal(out, want)
        self.assertFalse(out.flags.writeable)
        self.model.close()
        gc.collect()
        np.testing.assert_array_equal(out, want)
        view[...] = 0  # which the memory is still there for

    def test_a_closed_model_says_so(self) -> None:
        self.model.close()
        self.model.close()
        self.assertTrue(self.model.closed)
        for call in (lambda: self.model.run(image()), self.model.execute, lambda: self.model.output("out")):
            with self.assertRaisesRegex(tilth.Error, "model mlp is closed: load .* again"):
                call()

    def test_several_threads_share_a_model(self) -> None:
        want = [self.model.run(image(k))["out"] for k in range(8)]
        wrong = []

        def work(k: int) -> None:
            for _ in range(50):
                if not np.array_equal(self.model.run(image(k))["out"], want[k]):
                    wrong.append(k)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_several_models_are_open(self) -> None:
        with tilth.load(support.mlp_package()) as same, tilth.load(support.open_package()) as other:
            same.run(image(2))
            other.run(np.ones((2, 4), np.float32))
            self.model.run(image(3))
            self.assertFalse(np.array_equal(same.output("out"), self.model.output("out")))
        self.assertEqual(self.model.run(image(3))["out"].shape, (1, 10))

    def test_models_are_opened_and_closed_by_many_threads(self) -> None:
        want = self.model.run(image())["out"]
        wrong = []

        def work() -> None:
            for _ in range(5):
                with tilth.load(support.mlp_package()) as model:
                    if not np.array_equal(model.run(image())["out"], want):
                        wrong.append(model)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_a_forked_process_is_told_to_load_again(self) -> None:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                self.model.run(image())
                os.write(write, b"it ran")
            except tilth.Error as e:
                os.write(write, str(e).encode())
            finally:
                os._exit(0)
        os.close(write)
        with open(read, "rb") as f:
            self.assertIn(b"load the package in each process", f.read())
        os.waitpid(child, 0)

    def test_a_profile_has_each_call(self) -> None:
        self.model.run(image())
        calls = self.model.profile()
        self.assertEqual([c.name for c in calls][:1], ["Gemm_1+Relu_1"])
        self.assertTrue(all(c.seconds is None or c.seconds >= 0 for c in calls))

    def test_runs_are_timed(self) -> None:
        timing = self.model.benchmark(repeat=3, number=2)
        self.assertEqual(len(timing.samples), 3)
        self.assertTrue(0 < timing.min <= timing.median <= timing.max)
        self.assertIn("median of 3", str(timing))
        self.assertRaises(tilth.Error, self.model.benchmark, repeat=0)


class Types(unittest.TestCase):
    def test_each_type_is_numpys(self) -> None:
        with tilth.load(support.types_package()) as model:
            brain = np.full(4, 0x3F80, np.uint16)  # ones
            got = model.run(
                half=np.full((2, 3), 1.5, np.float16),
                brain=brain,
                flag=np.array([True, False, True]),
                byte=np.arange(5, dtype=np.uint8),
                x=np.array([[1, 0], [2, 3]], np.float32),
            )
            np.testing.assert_array_equal(got["half2"], np.full((2, 3), 3, np.float16))
            np.testing.assert_array_equal(got["brain2"].view(np.uint16), np.full(4, 0x4000, np.uint16))
            np.testing.assert_array_equal(got["unflag"], [False, True, False])
            np.testing.assert_array_equal(got["square"], [0, 1, 4, 9, 16])
            self.assertEqual((got["total"].shape, float(got["total"])), ((), 6.0))
            np.testing.assert_array_equal(got["where"], [[0, 1, 1], [0, 0, 1]])
            self.assertEqual(str(model.outputs[5]), "int64[2, 0..4]")
            self.assertEqual(str(model.inputs[1]), "bfloat16[4]")
            with self.assertRaisesRegex(tilth.InputError, r'"brain" is float32\[4\], not bfloat16\[4\]'):
                model.run(
                    got["half2"], brain.astype(np.float32), got["unflag"], got["square"], np.ones((2, 2), np.float32)
                )

    def test_a_length_that_depends_on_data_may_be_none(self) -> None:
        with tilth.load(support.types_package()) as model:
            model.input("x")[...] = 0
            model.execute()
            self.assertEqual(model.output("where").shape, (2, 0))


class OpenDimensions(unittest.TestCase):
    def setUp(self) -> None:
        self.model = tilth.load(support.open_package())
        self.addCleanup(self.model.close)

    def test_each_run_has_its_shape(self) -> None:
        w = np.arange(12, dtype=np.float32).reshape(4, 3)
        for rows in (1, 5, 8, 3):
            x = np.random.default_rng(rows).standard_normal((rows, 4)).astype(np.float32)
            got = self.model.run(x)
            np.testing.assert_array_equal(got["y"], np.maximum(x, 0))
            np.testing.assert_allclose(got["z"], x @ w, rtol=1e-5, atol=1e-5)

    def test_extents_are_described_and_bounded(self) -> None:
        self.assertEqual(self.model.extents, (tilth.Extent("rows", 1, 8),))
        self.assertEqual(self.model.inputs[0].dims, ("rows", 4))
        with self.assertRaisesRegex(tilth.InputError, "has 9 elements on axis 0, which none of rows in 1..8 has"):
            self.model.run(np.ones((9, 4), np.float32))
        with self.assertRaisesRegex(tilth.InputError, "rows cannot be 0, it is 1..8"):
            self.model.set_extents(rows=0)
        with self.assertRaisesRegex(tilth.InputError, "has no extent 'columns'; it has rows"):
            self.model.set_extents(columns=1)

    def test_extents_are_chosen_without_a_copy(self) -> None:
        self.model.set_extents(rows=2)
        self.model.input("x")[...] = [[1, -1, 2, -2], [3, 4, -5, 6]]
        self.model.execute()
        np.testing.assert_array_equal(self.model.output("y"), [[1, 0, 2, 0], [3, 4, 0, 6]])

    def test_extents_may_have_steps(self) -> None:
        with tilth.load(support.steps_package()) as model:
            self.assertEqual(model.extents, (tilth.Extent("rows", 4, 32, 4),))
            self.assertEqual(model.inputs[0].dims, ("rows", 2))
            self.assertEqual(model.outputs[0].dims, ("rows/4", 2))
            for rows in (4, 12, 32, 8):
                x = np.arange(2 * rows, dtype=np.float32).reshape(rows, 2)
                got = model.run(x)
                np.testing.assert_array_equal(got["y"], x[::4])
                np.testing.assert_array_equal(got["z"], x[::8])
            says = "has 10 elements on axis 0, which none of rows in 4..32, in steps of 4, has"
            with self.assertRaisesRegex(tilth.InputError, says):
                model.run(np.ones((10, 2), np.float32))
            with self.assertRaisesRegex(tilth.InputError, "rows cannot be 6, it is 4..32, in steps of 4$"):
                model.set_extents(rows=6)


class Decoding(unittest.TestCase):
    def setUp(self) -> None:
        self.model = tilth.load(support.decoder_package())
        self.addCleanup(self.model.close)
        self.x = np.random.default_rng(1).integers(0, 9, (1, 6, 4)).astype(np.float32)

    def test_positions_are_kept(self) -> None:
        self.model.prefill(self.x[:, :2])
        self.model.decode(x=self.x[:, 2:3])
        got = self.model.decode(self.x[:, 3:6])
        np.testing.assert_array_equal(got["present"], self.x)
        np.testing.assert_array_equal(got["sum"], self.x.sum(axis=1))
        self.assertEqual(self.model.positions, 6)
        np.testing.assert_array_equal(self.model.prefill(self.x[:, :1])["present"], self.x[:, :1])

    def test_a_decoder_goes_on_from_a_whole_run(self) -> None:
        self.model.run(past=self.x[:, :3], x=self.x[:, 3:4])
        np.testing.assert_array_equal(self.model.decode(self.x[:, 4:6])["sum"], self.x.sum(axis=1))

    def test_misuse_is_told(self) -> None:
        with self.assertRaisesRegex(tilth.Error, "nothing to go on from: call prefill first"):
            self.model.decode(self.x[:, :1])
        self.model.prefill(self.x[:, :3])
        self.model.decode(self.x[:, :3])
        with self.assertRaisesRegex(tilth.Error, "it has 6 positions, and was compiled for at most 5 before a run"):
            self.model.decode(self.x[:, :1])
        with self.assertRaisesRegex(tilth.InputError, "has no input 'past' to be given"):
            self.model.prefill(self.x[:, :1], past=self.x)
        with tilth.load(support.open_package()) as other, self.assertRaisesRegex(
            tilth.Error, "is no decoder: use run"
        ):
            other.decode(self.x)
