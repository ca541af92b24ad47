"""How much faster a model is without half of its heads: python benchmarks/pruned_speed.py

Both models take turns on the same batches in one process; the fastest of the rounds counts.
Prints one row of a markdown table.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import torch
import transformers

from bertology.model.encoder import Encoder
from bertology.model.loading.pruning import prune_heads
from bertology.quiet import hush

SHARED = Path(__file__).resolve().parents[2] / "shared" / "models" / "english-12x384"


def model_to_prune() -> tuple[str, Any]:
    if SHARED.is_dir():
        return SHARED.name, Encoder.load(str(SHARED), device="cpu").model
    config = transformers.BertConfig(
        vocab_size=16384, hidden_size=384, num_hidden_layers=12, num_attention_heads=12,
        intermediate_size=1536,
    )  # fmt: skip
    return "random 12x12x384", transformers.BertModel(config).eval()


def seconds(model: Any, inputs: dict[str, torch.Tensor]) -> float:
    start = time.perf_counter()
    with torch.inference_mode():
        model(**inputs)
    if inputs["input_ids"].is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    hush()
    name, whole = model_to_prune()
    layers, heads = whole.config.num_hidden_layers, whole.config.num_attention_heads
    gone = [(layer, head) for layer in range(layers) for head in range(0, heads, 2)]
    whole = whole.to(given.device)
    pruned = prune_heads(whole, gone)
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(1000, 16000, (given.batch, given.length), generator=generator)
    inputs = {
        "input_ids": ids.to(given.device),
        "attention_mask": torch.ones_like(ids, device=given.device),
    }
    seconds(whole, inputs), seconds(pruned, inputs)  # warm up
    rounds = [(seconds(whole, inputs), seconds(pruned, inputs)) for _ in range(given.rounds)]
    before, after = (min(times) for times in zip(*rounds, strict=True))
    sizes = [m.num_parameters() / 1e6 for m in (whole, pruned)]
    print(
        f"| half of the heads pruned | {name}, {given.batch} × {given.length} tokens, "
        f"{given.device}, {torch.get_num_threads()} threads | {before * 1e3:.0f} ms → "
        f"{after * 1e3:.0f} ms | {sizes[0]:.1f} M → {sizes[1]:.1f} M parameters | "
        f"{before / after:.2f}× |"
    )


if __name__ == "__main__":
    main()
