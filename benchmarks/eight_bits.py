"""How fast is an 8-bit model on a CPU, beside its 32-bit original, and in other ways?

    python benchmarks/eight_bits.py [--models bertology-mini FOLDER …] [--threads 1 2] [--rounds 60]
        [--texts 1 32] [--compiled]

All ways take turns at the same random rows, of one text and of 32, after three passes that are not
counted. The whole classifier is timed, without cutting texts into tokens. The median of all rounds
counts. Other ways are shown where their libraries are installed: ONNX Runtime (our file of the
8-bit model, and the 32-bit file after its own `quantize_dynamic`), and torchao's 8-bit weights and
dynamic inputs, as it is and, with --compiled, after `torch.compile`. Prints a markdown table.
"""

from __future__ import annotations

import argparse
import copy
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import torch
from machine import describe
from torch import Tensor

from bertology.model import exported
from bertology.model.compressed import input_ranges, quantised
from bertology.model.encoder import Encoder

SHAPES = ((1, 8), (1, 25), (1, 64), (1, 128), (32, 64))  # texts × tokens
_PLAIN = 3  # unmeasured passes

Ways = dict[str, Callable[[dict[str, Tensor]], object]]


def rows(texts: int, tokens: int) -> dict[str, Tensor]:
    """Random pieces without padding."""
    return {
        "input_ids": torch.randint(5, 1000, (texts, tokens)),
        "attention_mask": torch.ones(texts, tokens, dtype=torch.long),
    }


def milliseconds(ways: Ways, texts: int, tokens: int, rounds: int) -> dict[str, float]:
    """The median of each way, in turns."""
    inputs = rows(texts, tokens)
    spent: dict[str, list[float]] = {name: [] for name in ways}
    with torch.no_grad():
        for number in range(_PLAIN + rounds):
            for name, run in ways.items():
                started = time.perf_counter()
                run(inputs)
                if number >= _PLAIN:
                    spent[name].append(1000 * (time.perf_counter() - started))
    return {name: median(times) for name, times in spent.items()}


def called(model: Any) -> Callable[[dict[str, Tensor]], object]:
    """A model of PyTorch as a function of its inputs."""
    return lambda inputs: model(**inputs)


def in_onnx(encoder: Encoder, small: Any, folder: Path) -> Callable[[], Ways]:
    """Two 8-bit files, which are opened when the number of threads is known."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    ours, plain, theirs = (folder / f"{name}.onnx" for name in ("ours", "plain", "theirs"))
    for model, path in ((small, ours), (encoder.model, plain)):
        one = Encoder(model, encoder.tokenizer, head="classification", name=path.stem)
        exported.export_file(one, rows(2, 8), path, format="onnx")
    graph = onnx.load(plain)
    del graph.graph.value_info[:]  # shapes that onnxruntime infers again, and turns about
    quantize_dynamic(graph, theirs, weight_type=QuantType.QInt8, per_channel=True)
    return lambda: {
        "ONNX Runtime, our file": exported.open_file(ours),
        "ONNX Runtime, quantize_dynamic": exported.open_file(theirs),
    }


def in_torchao(model: Any, *, compiled: bool) -> Ways:
    """torchao's own way for the same weights."""
    from torchao.quantization import Int8DynamicActivationInt8WeightConfig, quantize_

    found: Ways = {}
    for name in ("torchao", "torchao, compiled")[: 1 + compiled]:
        other = copy.deepcopy(model)
        quantize_(other, Int8DynamicActivationInt8WeightConfig())
        if name != "torchao":
            other.compile(dynamic=True)
        found[name] = called(other)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", nargs="+", default=["bertology-mini"])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--texts", type=int, nargs="+", default=[1, 32])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--compiled", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")  # torch warns that types of its quantised tensors will go
    print(describe() + "\n")
    begun = False
    for name in asked.models:
        encoder = Encoder.load(name, head="classification", num_labels=2, device="cpu")
        model = encoder.model.eval().float()
        ranges = input_ranges.watched_ranges(model, [rows(8, 64)])
        small = quantised.quantise(copy.deepcopy(model), 8, activations=8, ranges=ranges).eval()
        with tempfile.TemporaryDirectory() as folder:
            opened = in_onnx(encoder, small, Path(folder)) if find_spec("onnxruntime") else dict
            more = in_torchao(model, compiled=asked.compiled) if find_spec("torchao") else {}
            for threads in asked.threads:
                torch.set_num_threads(threads)
                ways: Ways = {"32 bits": called(model), "8 bits": called(small), **opened(), **more}
                if not begun:
                    print(f"| model | threads | texts × tokens | {' | '.join(ways)} |")
                    print("|---" * (3 + len(ways)) + "|")
                    begun = True
                for texts, tokens in (one for one in SHAPES if one[0] in asked.texts):
                    rounds = asked.rounds if texts == 1 else max(5, asked.rounds // 6)
                    taken = milliseconds(ways, texts, tokens, rounds)
                    plain = taken.pop("32 bits")
                    cells = [f"{t:.1f} ms ({plain / t:.2f} ×)" for t in taken.values()]
                    about = [Path(name).name, str(threads), f"{texts} × {tokens}"]
                    print(f"| {' | '.join([*about, f'{plain:.1f} ms', *cells])} |", flush=True)


if __name__ == "__main__":
    main()
