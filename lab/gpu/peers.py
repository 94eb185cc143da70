"""Times products by cuBLAS and by Triton, and models by torch.compile, as PyTorch has them: a line of JSON with a
question on standard input, one with the answer on standard output. What is compiled is kept for the next question."""

import json
import sys

try:
    import torch
except Exception as problem:  # a broken installation may raise any exception
    torch, missing = None, str(problem)
else:
    missing = "" if torch.cuda.is_available() else f"PyTorch {torch.__version__} sees no GPU"

SAMPLES = 50
# Cycles of the card, about 0.2 ms, in which the host enqueues the timed work.
HEAD_START = 400_000
TOKENS = 128
# The current subject, and the ways to run it by kind of question.
made = {}


def input_of(shape, dtype):
    return torch.randn(shape, device="cuda").to(dtype)


def product(q, dtype):
    a, b = input_of((q["m"], q["k"]), dtype), input_of((q["k"], q["n"]), dtype)
    return lambda: a @ b


def triton_product(q, dtype):
    """The product by Triton alone: Inductor's kernel of it, with the best of its points."""
    a, b = input_of((q["m"], q["k"]), dtype), input_of((q["k"], q["n"]), dtype)
    torch._dynamo.reset()
    options = {"max_autotune": True, "max_autotune_gemm_backends": "TRITON"}
    multiply = torch.compile(lambda x, y: x @ y, dynamic=False, options=options)
    return lambda: multiply(a, b)


def tokens(config, batch):
    return torch.randint(0, config.vocab_size, (batch, TOKENS), device="cuda")


def network(name):
    """A model with random weights, and a function that makes its inputs."""
    if name == "bert":
        from transformers import BertConfig, BertModel

        config = BertConfig()
        return BertModel(config), lambda batch, _: tokens(config, batch)
    if name == "gpt2":
        from transformers import GPT2Config, GPT2LMHeadModel

        config = GPT2Config(use_cache=False)
        return GPT2LMHeadModel(config), lambda batch, _: tokens(config, batch)
    import torchvision

    model = getattr(torchvision.models, name)(weights=None)
    return model, lambda batch, dtype: input_of((batch, 3, 224, 224), dtype)


def compiled(q, dtype):
    """The model as max-autotune makes it. Its launches become a graph here: PyTorch's own graphs do more each time."""
    model, inputs = network(q["name"])
    torch._dynamo.reset()
    model = torch.compile(model.eval().to("cuda", dtype), dynamic=False, mode="max-autotune-no-cudagraphs")
    x = inputs(q["batch"], dtype)
    return lambda: model(x)


MAKERS = {"product": product, "triton": triton_product, "model": compiled}


def graphed(work):
    """The work as one graph of launches, whose inputs stay where they are."""
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def warm(work):
    for _ in range(5):
        work()


def prepared(q):
    """The ways to do the work by their names: launch by launch, and as a graph where it can be one."""
    precision = "high" if q["tf32"] else "highest"
    torch.set_float32_matmul_precision(precision)
    torch.backends.cudnn.allow_tf32 = q["tf32"]
    work = MAKERS[q["what"]](q, getattr(torch, q["dtype"]))
    warm(work)
    try:
        return {"launches": work, "a graph": graphed(work)}
    except Exception as problem:
        return {f"launches, no graph: {type(problem).__name__}: {problem}"[:300]: work}


def seconds(work):
    """The median of what the card takes, with the host ahead of it where it can be."""
    warm(work)
    times = []
    for _ in range(SAMPLES):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda._sleep(HEAD_START)
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return sorted(times)[len(times) // 2]


def versions():
    text = f"PyTorch {torch.__version__}"
    try:
        import triton
    except ImportError:
        return text + " without Triton"
    return f"{text}, Triton {triton.__version__}"


def answer(line):
    if missing:
        return {"missing": missing}
    q = json.loads(line)
    if q["what"] == "versions":
        return {"versions": versions()}
    subject = {name: q[name] for name in q if name not in ("what", "ready")}
    if made.get("subject") != subject:  # the card's memory only suffices for one subject
        made.clear()
        torch.cuda.empty_cache()
        made["subject"] = subject
    if q["what"] not in made:
        made[q["what"]] = prepared(q)
    if q.get("ready"):
        return {"ready": True}
    took, way = min((seconds(work), way) for way, work in made[q["what"]].items())  # the fastest counts
    return {"seconds": took, "way": way}


def serve():
    for line in sys.stdin:
        try:
            said = answer(line.strip())
        except Exception as problem:  # the next question may have an answer
            said = {"error": f"{type(problem).__name__}: {problem}"[:500]}
        print(json.dumps(said), flush=True)


if torch is None:
    serve()
else:
    with torch.no_grad():
        serve()
