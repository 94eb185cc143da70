"""Stands in for PyTorch and its GPU where there is none, in tests of peers.py. It is a fake: work takes the time on its
clock that it is made to take, and nothing is computed."""

import json
import os
from contextlib import nullcontext as no_grad

__version__ = "fake"
float32, bfloat16 = "float32", "bfloat16"
# Milliseconds of a product, of Triton's, of a model, and of all of them as a graph.
EAGER, TRITON, MODEL, GRAPH = 4.0, 3.0, 6.0, 2.0


def log(*what):
    """Keeps what was asked of it, for tests."""
    with open(os.environ["FAKE_TORCH_LOG"], "a") as file:
        file.write(json.dumps(what) + "\n")


class Clock:
    now = 0.0


def work(milliseconds):
    Clock.now += milliseconds


class Tensor:
    def to(self, *_):
        return self

    def __matmul__(self, _):
        work(EAGER)


def randn(shape, device):
    assert device == "cuda"
    return Tensor()


def randint(low, high, shape, device):
    assert device == "cuda" and low < high
    return Tensor()


class Module:
    def eval(self):
        return self

    def to(self, device, dtype):
        assert device == "cuda"
        return self

    def __call__(self, x):
        work(MODEL)


def compile(model, dynamic, mode=None, options=None):
    log("compile", mode, options)
    if isinstance(model, Module):
        return model
    return lambda *_: work(TRITON)


def set_float32_matmul_precision(precision):
    log("precision", precision)


class Graph:
    def replay(self):
        work(GRAPH)


class Event:
    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        self.at = Clock.now

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        return end.at - self.at


def capture(graph):
    if os.environ.get("FAKE_TORCH_NO_GRAPHS"):
        raise RuntimeError("operation not permitted when stream is capturing")
    return no_grad()


class cuda:
    CUDAGraph, Event, graph = Graph, Event, staticmethod(capture)

    @staticmethod
    def is_available():
        return True

    @staticmethod
    def synchronize():
        pass

    @staticmethod
    def empty_cache():
        log("empty")

    @staticmethod
    def _sleep(cycles):
        work(cycles / 2e6)


class backends:
    class cudnn:
        allow_tf32 = True


class _dynamo:
    @staticmethod
    def reset():
        pass
