"""The exact sweep of all heads and layers over MRPC's 408 dev pairs, on this machine's CPU.

Against (a) a plain loop of whole forward passes padded to the longest pair, and (b) the same loop
over batches sorted by length. A pass of a loop costs the same whatever it disables, so the loops
are timed on a sample of variants, spread over the layers and interleaved with the sweep's parts,
and scaled to all 157 passes; the sweep is timed whole. Also timed: the gradient estimate.

Needs the reference model and GLUE beside the project. Usage:
    python benchmarks/sweep_cpu.py [--model FOLDER] [--root FOLDER] [--every 1] [--passes 6]
"""

from __future__ import annotations

import argparse
import resource
import tarfile
import tempfile
import time
from pathlib import Path

import plain_loop
import torch
from machine import describe

from bertology.data.loading import load_corpus
from bertology.model.encoder import Encoder
from bertology.model.sweeps.gate_gradients import first_order_effects, losses
from bertology.model.sweeps.replay import Sweep, Variant
from bertology.quiet import hush
from bertology.stats import rank_correlation

SHARED = Path(__file__).resolve().parents[2] / "shared"


def mrpc(every: int, root: Path | None) -> tuple[list[tuple[str, str]], list[int]]:
    """MRPC's dev pairs as the product's own reader gives them."""
    if root is None:
        root = Path(tempfile.mkdtemp())
        with tarfile.open(SHARED / "data/glue.tar.xz") as archive:
            archive.extractall(root, filter="data")
    corpus = load_corpus("mrpc", split="validation", root=root)
    return corpus.texts[::every], corpus.labels[::every]


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--model", default=str(SHARED / "models/english-12x384-long"))
    arguments.add_argument("--root", type=Path, help="the folder that holds GLUE")
    arguments.add_argument("--every", type=int, default=1, help="use every n-th pair only")
    arguments.add_argument("--passes", type=int, default=6, help="loop passes to time, each kind")
    arguments.add_argument("--threads", type=int, default=2)
    given = arguments.parse_args()
    hush()
    torch.set_num_threads(given.threads)
    encoder = Encoder.load(given.model, head="classification", num_labels=2, device="cpu")
    plain = plain_loop.prepare(
        Encoder.load(given.model, head="classification", num_labels=2, device="cpu").model
    )
    texts, labels = mrpc(given.every, given.root)
    layers, heads = range(encoder.shape.layers), range(encoder.shape.heads)
    variants = [Variant(((i, h),)) for i in layers for h in heads]
    variants += [Variant(tuple((i, h) for h in heads)) for i in layers]
    a = list(plain_loop.padded_to_longest(encoder.tokenizer, texts))
    b = list(plain_loop.sorted_by_length(encoder.tokenizer, texts))
    picked = [len(variants) * k // given.passes for k in range(given.passes)]

    sweep = Sweep(encoder, variants)
    assert sweep.fast
    sweep.logits(texts[:2])
    plain_loop.logits(plain, b[:1], len(texts), {})
    parts = [list(range(k, len(texts), given.passes)) for k in range(given.passes)]
    exact = torch.empty(1 + len(variants), len(texts), 2)
    seconds = {"a": 0.0, "b": 0.0, "sweep": 0.0, "gradient": 0.0}
    worst = 0.0
    reference = {}
    for part, index in zip(parts, picked, strict=True):
        started = time.perf_counter()
        exact[:, part] = sweep.logits([texts[i] for i in part])
        seconds["sweep"] += time.perf_counter() - started
        disabled: plain_loop.Disabled = {}
        for layer, head in variants[index].heads:
            disabled.setdefault(layer, []).append(head)
        for name, batches in (("a", a), ("b", b)):
            started = time.perf_counter()
            reference[index] = plain_loop.logits(plain, batches, len(texts), disabled)
            seconds[name] += time.perf_counter() - started
        print(f"  part done, so far {', '.join(f'{k} {v:.1f}s' for k, v in seconds.items())}",
              flush=True)  # fmt: skip
    for index, logits in reference.items():
        worst = max(worst, float((logits - exact[1 + index]).abs().max()))
    slopes = torch.empty(len(texts), len(layers), len(heads))
    started = time.perf_counter()
    for batch in encoder.batches(texts):
        wanted = torch.tensor([labels[i] for i in batch.indices])
        slopes[list(batch.indices)] = first_order_effects(encoder, batch, wanted).cpu()
    seconds["gradient"] = time.perf_counter() - started
    wanted = torch.tensor(labels)
    rise = torch.stack([losses(v, wanted).mean() for v in exact[1 : 1 + len(layers) * len(heads)]])
    rank = rank_correlation(slopes.mean(0).flatten().numpy(), rise.numpy())
    scale = (1 + len(variants)) / given.passes
    loop = {k: seconds[k] * scale for k in ("a", "b")}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(describe())
    print(f"| {len(texts)} pairs, {1 + len(variants)} passes | seconds | ratio |\n|---|---|---|")
    print(f"| (a) loop, padded to the longest | {loop['a']:.0f} | 1 |")
    print(f"| (b) loop, sorted by length | {loop['b']:.0f} | {loop['a'] / loop['b']:.2f} × (a) |")
    print(f"| exact sweep by replay | {seconds['sweep']:.0f} | "
          f"**{loop['a'] / seconds['sweep']:.2f}** × (a), "
          f"**{loop['b'] / seconds['sweep']:.2f}** × (b) |")  # fmt: skip
    print(f"| gradient estimate | {seconds['gradient']:.1f} | "
          f"**{loop['b'] / seconds['gradient']:.0f}** × (b) |")  # fmt: skip
    print(f"largest difference of a logit to the loop: {worst:.1e}; peak memory {peak:.2f} GiB")
    print(f"rank correlation of the gradient estimate with the exact rise of the loss: "
          f"{rank.value:.2f} [{rank.low:.2f}, {rank.high:.2f}]")  # fmt: skip


if __name__ == "__main__":
    main()
