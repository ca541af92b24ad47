"""What a compressed model saves and costs, beside its original, in one run on one machine."""

from __future__ import annotations

import copy
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bertology.data.corpus import Corpus
from bertology.model.compressed.quantised_maps import Quantised, QuantisedLinear
from bertology.model.encoder import Encoder
from bertology.stats.intervals import Estimate
from bertology.stats.paired import paired_bootstrap, score_interval
from bertology.train.answers import Answers, answer, encode_for
from bertology.train.encoded import task_of
from bertology.train.speed import measure_batches
from bertology.train.stage_watch import StageWatch
from bertology.train.token_rows import Encoded

SIZES = (1, 32)  # of batches whose speed is told
_MOVED = 10  # examples that are named where answers are numbers
_READ = 2**20  # bytes that are packed at once


def measure(
    original: Encoder,
    smaller: Encoder,
    held_out: Corpus,
    *,
    on_disk: tuple[int, int],
    packed: tuple[int, int] | None = None,
    watch: StageWatch | None = None,
    batch_tokens: int = 4096,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """All numbers of both models, and the examples whose answer changed.

    `on_disk` are the bytes of their weights there; `packed` those with gzip, if that is to be told.
    """
    both, watch = (original, smaller), watch or StageWatch()
    encoded = [encode_for(one, held_out) for one in both]
    with watch.counted("measuring answers", 2 * len(held_out)) as count:
        before, after = (
            answer(one, rows, task_of(held_out), batch_tokens=batch_tokens, progress=count.advance)
            for one, rows in zip(both, encoded, strict=True)
        )
    metric = before.metric
    changed = _changed(held_out, before, after)
    found = {
        "metric": metric.name,
        "before": score_interval(metric, before.statistics(metric)).as_record(),
        "after": score_interval(metric, after.statistics(metric)).as_record(),
        "loss_in_points": points_lost(before, after).as_record(),
        "scores": [one.scores for one in (before, after)],
        "knows": after.knowing,
        "bytes_on_disk": list(on_disk),
        "parameters": [one.parameters for one in both],
        **_speeds(both, encoded, watch),
        # After passes: what is made of packed weights when they are first needed is there then.
        "bytes_in_memory": [bytes_in(one.model) for one in both],
        "flips": _counted(before, after),
    }
    if packed is not None:
        found["packed_bytes"] = list(packed)
    return found, changed


def points_lost(before: Answers, after: Answers) -> Estimate:
    """The loss in points, paired. Its bounds allow for changed answers that were not seen."""
    metric = before.metric
    found = paired_bootstrap(metric, before.statistics(metric), after.statistics(metric)[None])
    value, low, high = (
        -100 * float(end[0]) + 0.0
        for end in (found.difference, found.simultaneous_high, found.simultaneous_low)
    )
    return Estimate(value, low, high, found.n, found.level)


def bytes_in(model: torch.nn.Module) -> int:
    """What the weights of a model take in memory now; shared ones count once."""
    tensors = [*model.parameters(), *model.buffers()]
    products = 0
    for module in model.modules():
        if isinstance(module, Quantised):
            tensors += [] if module._made is None else [module._made]
            # On a CPU a product in whole numbers holds a copy of them in an order of its own.
            whole = isinstance(module, QuantisedLinear) and module.activations is not None
            whole = whole and module._made is None and next(module.buffers()).device.type == "cpu"
            products += module.numbers * whole
    seen = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}
    return sum(seen.values()) + products


def bytes_on(folder: Path) -> int:
    """What the weights of a saved model take on the disk."""
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))


def packed_on(folder: Path) -> int:
    """The same with gzip, at its quickest level: of the files, whatever numbers are in them."""
    squeeze, size = zlib.compressobj(level=1), 0
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb") as file:
            while part := file.read(_READ):
                size += len(squeeze.compress(part))
    return size + len(squeeze.flush())


def _speeds(
    both: Sequence[Encoder], encoded: Sequence[Encoded], watch: StageWatch
) -> dict[str, Any]:
    """On the CPU, and on the GPU where the models are on one."""
    places = {"cpu": [_on_cpu(one) for one in both]}
    peaks: dict[str, list[int]] = {}
    if both[0].device.type == "cuda":
        name = torch.cuda.get_device_name(both[0].device)
        places[name] = list(both)
        peaks[name] = [_peak(one, rows) for one, rows in zip(both, encoded, strict=True)]
    speeds: dict[str, dict[str, list[float]]] = {name: {} for name in places}
    with watch.counted("measuring speeds", len(places) * len(SIZES)) as count:
        for name, models in places.items():
            for size in SIZES:
                pairs = list(zip(models, encoded, strict=True))
                speeds[name][str(size)] = measure_batches(pairs, size=size)
                count.advance(1)
    found: dict[str, Any] = {"texts_per_second": speeds, "threads": torch.get_num_threads()}
    return found | ({"peak_bytes": peaks} if peaks else {})


def _on_cpu(encoder: Encoder) -> Encoder:
    if encoder.device.type == "cpu":
        return encoder
    model = copy.deepcopy(encoder.model).to("cpu")
    return Encoder(model, encoder.tokenizer, head=encoder.head, name=encoder.name)


def _peak(encoder: Encoder, encoded: Encoded) -> int:
    """Bytes of a GPU that the weights, and one batch of the 32 longest texts, take at most."""
    longest = sorted(range(len(encoded)), key=lambda i: -encoded.lengths[i])[: SIZES[-1]]
    inputs, _ = encoded.batch(longest, encoder.device)
    with encoder.turn(), torch.no_grad():
        torch.cuda.synchronize(encoder.device)
        torch.cuda.reset_peak_memory_stats(encoder.device)
        already = torch.cuda.memory_allocated(encoder.device)
        encoder.model(**inputs)
        torch.cuda.synchronize(encoder.device)
        passing = torch.cuda.max_memory_allocated(encoder.device) - already
    return bytes_in(encoder.model) + passing


def _counted(before: Answers, after: Answers) -> dict[str, Any]:
    """How many answers changed, and how; of numbers, how far they moved."""
    if before.task.kind == "regression":
        moved = np.abs(after.predictions - before.predictions)
        return {"examples": len(moved), "mean_change": float(moved.mean())}
    one, other = (a.predictions == a.labels for a in (before, after))
    changed = before.predictions != after.predictions
    return {
        "examples": len(changed),
        "changed": int(changed.sum()),
        "lost": int((one & ~other).sum()),  # right before, wrong now
        "won": int((~one & other).sum()),
    }


def _changed(held_out: Corpus, before: Answers, after: Answers) -> list[dict[str, Any]]:
    """Examples whose answer changed, those that are lost first; of numbers, the furthest moved."""
    names = before.task.labels
    if before.task.kind == "regression":
        order = np.argsort(-np.abs(after.predictions - before.predictions), kind="stable")[:_MOVED]
        say: Any = lambda value: round(float(value), 4)  # noqa: E731
    else:
        places = np.flatnonzero(before.predictions != after.predictions)
        kept = after.predictions[places] == after.labels[places]
        lost = before.predictions[places] == before.labels[places]
        order = places[np.lexsort((places, kept, ~lost))]
        say = lambda value: names[int(value)]  # noqa: E731
    rows = []
    for i in order:
        example = held_out[int(i)]
        assert not isinstance(example, Corpus)
        answers = (before.labels[i], before.predictions[i], after.predictions[i])
        rows.append(
            {"id": example.id, "texts": list(example.texts)}
            | dict(zip(("right", "before", "after"), map(say, answers), strict=True))
        )
    return rows
