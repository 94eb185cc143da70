"""Times products by cuBLAS and models by torch.compile, as PyTorch has them: a line of JSON with a question on standard
input, one with the median seconds on standard output. What is compiled is kept for the next time."""

import json
import sys

import torch

SAMPLES = 50
made = {}


def input_of(shape, dtype):
    return torch.randn(shape, device="cuda").to(dtype)


def product(q, dtype):
    a, b = input_of((q["m"], q["k"]), dtype), input_of((q["k"], q["n"]), dtype)
    return lambda: a @ b


def network(name):
    """A model with random weights, and a function that makes its inputs."""
    if name == "bert":
        from transformers import BertConfig, BertModel

        model = BertModel(BertConfig())
        return model, lambda batch, _: torch.randint(0, 30000, (batch, 128), device="cuda")
    if name == "gpt2":
        from transformers import GPT2Config, GPT2LMHeadModel

        model = GPT2LMHeadModel(GPT2Config(use_cache=False))
        return model, lambda batch, _: torch.randint(0, 50000, (batch, 128), device="cuda")
    import torchvision

    model = getattr(torchvision.models, name)(weights=None)
    return model, lambda batch, dtype: input_of((batch, 3, 224, 224), dtype)


def compiled(q, dtype):
    model, inputs = network(q["name"])
    model = torch.compile(model.eval().to("cuda", dtype), mode="max-autotune")
    x = inputs(q["batch"], dtype)
    return lambda: model(x)


def graphed(work):
    """The work as one graph of launches, whose inputs stay where they are."""
    for _ in range(5):
        work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def seconds(work):
    for _ in range(5):
        work()
    times = []
    for _ in range(SAMPLES):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return sorted(times)[len(times) // 2]


def answer(line):
    q = json.loads(line)
    precision = "high" if q["tf32"] else "highest"
    torch.set_float32_matmul_precision(precision)
    torch.backends.cudnn.allow_tf32 = q["tf32"]
    if line not in made:
        made.clear()  # one at a time is kept in the card's memory
        torch.cuda.empty_cache()
        dtype = getattr(torch, q["dtype"])
        # max-autotune makes graphs itself.
        made[line] = graphed(product(q, dtype)) if q["what"] == "product" else compiled(q, dtype)
    return seconds(made[line])


with torch.no_grad():
    for line in sys.stdin:
        try:
            said = {"seconds": answer(line.strip())}
        except Exception as problem:  # the next question may have an answer
            said = {"error": f"{type(problem).__name__}: {problem}"[:500]}
        print(json.dumps(said), flush=True)
