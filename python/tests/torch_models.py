"""Models of PyTorch are exported, tuned, compiled and compared with PyTorch. ``make test-python`` runs these.

``$SECONDS_TO_TUNE`` is the budget of each, and ``$THREADS`` what both run on.
"""

from __future__ import annotations

import os
import statistics
import time
import unittest
from typing import Any, Callable, List, Tuple

import numpy as np
import torch

import tilth

from . import support

BUDGET = float(os.environ.get("SECONDS_TO_TUNE", "30"))
THREADS = int(os.environ.get("THREADS", "0")) or None
ROUNDS = 15


class SmallCNN(torch.nn.Module):
    """Two convolutions, a pool and a classifier, of images of 32 x 32."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 16, 3, padding=1)
        self.second = torch.nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.last = torch.nn.Linear(32 * 8 * 8, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(image))
        x = torch.max_pool2d(torch.relu(self.second(x)), 2)
        return torch.softmax(self.last(x.flatten(1)), dim=1)


class Mixed(torch.nn.Module):
    """Several inputs and outputs, of several types, with a batch that stays open."""

    def forward(self, x: torch.Tensor, keep: torch.Tensor, scale: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        y = torch.where(keep, x * scale, -x)
        return y, y.argmax(dim=1)


def medians(first: Callable[[], Any], second: Callable[[], Any]) -> Tuple[float, float]:
    """Median seconds of each, measured in turns, each for at least 20 ms a turn."""

    def one(call: Callable[[], Any]) -> float:
        count, began = 0, time.perf_counter()
        while time.perf_counter() - began < 0.02 or count == 0:
            call()
            count += 1
        return (time.perf_counter() - began) / count

    one(first), one(second)
    samples: List[Tuple[float, float]] = [(one(first), one(second)) for _ in range(ROUNDS)]
    return statistics.median(s[0] for s in samples), statistics.median(s[1] for s in samples)


class Torch(unittest.TestCase):
    def setUp(self) -> None:
        torch.manual_seed(1)

    def compare(self, module: torch.nn.Module, image: torch.Tensor) -> None:
        module.eval()
        name = type(module).__name__
        records, package = support.FOLDER / f"{name}.db", support.FOLDER / f"{name}.tar"
        tuned = tilth.tune(module, args=image, time=BUDGET, records=records, threads=THREADS, numerics="strict")
        compiled = tilth.compile(
            module, package, args=image, records=records, threads=THREADS, numerics="strict", check={"image": image}
        )
        with torch.no_grad(), compiled.load() as model:
            threads = model.manifest["target"]["threads"]
            torch.set_num_threads(threads)
            want = module(image).numpy()
            (got,) = model.run(image).values()
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4 * np.abs(want).max())
            ours, theirs = medians(lambda: model.run(image), lambda: module(image))
            error = np.abs(got - want).max() / np.abs(want).max()
        print(
            f"\n{name}: tilth {ours * 1e3:.3f} ms, torch {torch.__version__} {theirs * 1e3:.3f} ms, {threads} threads"
            f" (medians of {ROUNDS} in turns); {compiled.tuned} of {compiled.tasks} tasks tuned,"
            f" {tuned.trials} trials in {tuned.elapsed:.0f} s, error {error:.1e}"
        )

    def test_a_small_network(self) -> None:
        self.compare(SmallCNN(), torch.rand(1, 3, 32, 32))

    def test_resnet_18(self) -> None:
        try:
            from torchvision.models import resnet18
        except ImportError:
            self.skipTest("torchvision is not installed")

        class ResNet18(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.net = resnet18()

            def forward(self, image: torch.Tensor) -> torch.Tensor:
                return self.net(image)  # type: ignore[no-any-return]

        self.compare(ResNet18(), torch.rand(1, 3, 224, 224))

    def test_several_inputs_and_outputs(self) -> None:
        path = support.FOLDER / "mixed.onnx"
        args = (torch.rand(4, 5), torch.rand(4, 5) > 0.5, torch.tensor(3.0))
        axes = {name: {0: "batch"} for name in ("x", "keep", "output_0", "output_1")}
        tilth.export(Mixed(), args, path, dynamic_axes=axes)
        package = support.FOLDER / "mixed.tar"
        with tilth.compile(path, package, untuned=True, shape={"batch": range(1, 9)}).load() as model:
            self.assertEqual([t.name for t in model.inputs], ["x", "keep", "scale"])
            for batch in (1, 4, 8):
                x, keep = torch.rand(batch, 5), torch.rand(batch, 5) > 0.5
                got = model.run(x, keep, args[2])
                want = Mixed()(x, keep, args[2])
                np.testing.assert_allclose(got["output_0"], want[0].numpy(), rtol=1e-6)
                np.testing.assert_array_equal(got["output_1"], want[1].numpy())

    def test_a_model_of_onnx(self) -> None:
        import onnx

        proto = onnx.load(support.mlp())
        self.assertEqual(len(tilth.tasks(proto)), 4)

    def test_what_cannot_be_exported_is_one_error(self) -> None:
        class Bad(torch.nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                raise ValueError("on purpose")

        with self.assertRaisesRegex(tilth.Error, "args are|args="):
            tilth.tasks(Bad())
        with self.assertRaisesRegex(tilth.Error, "Bad: on purpose"):
            tilth.tasks(Bad(), args=torch.rand(1))


if __name__ == "__main__":
    unittest.main()
