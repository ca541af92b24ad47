"""Fifty readers of one explorer for a minute: errors, answers that are another's, and memory.

    python benchmarks/explorer_load.py [--clients 50] [--seconds 60]

Every reader has a text of their own and switches other parts off all the time, so few answers are
kept. Each answer is compared with the one that this process computes by itself beforehand.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np
from explorer_server import memory_of, sentences, serving, view_of
from machine import describe

TOKENS = 32
HOWS = ("uniform", "zero", "mean")
VIEWS = 4  # of each reader


@dataclass
class Tally:
    """What came of all questions."""

    times: dict[str, list[float]] = field(default_factory=lambda: {"maps": [], "predict": []})
    statuses: Counter[int] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    wrong: int = 0
    memory: dict[str, float] = field(default_factory=dict)


def views_of(client: int, text: str) -> list[dict[str, Any]]:
    found = [view_of(text, masked=[9])]
    for at in range(1, VIEWS):
        heads = [[(client + at) % 12, (5 * client + at) % 12]]
        off: dict[str, Any] = {"heads": heads, "how": HOWS[(client + at) % 3]}
        if at == 2:
            off |= {"layers": [client % 12], "dimensions": [(11 * client) % 192]}
        found.append(view_of(text, masked=[9], off=off))
    return found


def right_answers(views: Sequence[dict[str, Any]]) -> list[tuple[Any, bytes]]:
    """Predictions and maps of each view, by the same model in this process, one at a time."""
    from bertology.model.encoder import Encoder
    from bertology.server.map_answers import described, maps_at, pack
    from bertology.server.predictions import Predictions
    from bertology.server.reading import ModelReader
    from bertology.server.views import View

    reader = ModelReader(Encoder.load("bertology-mini", head="pretraining", device="cpu"))
    predictions = Predictions(reader)
    found = []
    for view in map(View.model_validate, views):
        reading = reader.read(view.shown)
        maps = pack(described(reading, "pieces"), maps_at(reading, reader.maps(reading), "pieces"))
        found.append((predictions.of(view.shown, 8), maps))
    reader.close()
    return found


def same_predictions(one: Any, two: Any) -> bool:
    """The same tokens, and probabilities that differ by rounding only."""
    for side in ("before", "after"):
        if (one[side] is None) != (two[side] is None):
            return False
        if one[side] is None:
            continue
        (first,), (second,) = one[side]["masked"], two[side]["masked"]
        shares = [{p["id"]: p["probability"] for p in r["predictions"]} for r in (first, second)]
        if shares[0].keys() != shares[1].keys():
            return False
        if any(abs(shares[0][t] - shares[1][t]) > 1e-4 for t in shares[0]):
            return False
    return True


def same_maps(one: bytes, two: bytes) -> bool:
    """The same tokens, and weights that differ by rounding only."""
    if one == two:
        return True
    sizes = [int.from_bytes(x[:4], "little") for x in (one, two)]
    about = [json.loads(x[4 : 4 + size]) for x, size in zip((one, two), sizes, strict=True)]
    peaks = [np.array(a.pop("peaks")) for a in about]
    if about[0] != about[1] or np.abs(peaks[0] - peaks[1]).max() > 1e-4:
        return False
    pairs = zip((one, two), sizes, strict=True)
    steps = [np.frombuffer(x[4 + size :], np.uint8).astype(int) for x, size in pairs]
    return bool(np.abs(steps[0] - steps[1]).max() <= 1)


async def read(
    number: int,
    address: str,
    views: Sequence[Any],
    right: Sequence[Any],
    until: float,
    tally: Tally,
) -> None:
    """One reader, who asks the next question when the last was answered."""
    async with httpx.AsyncClient(base_url=address, timeout=120) as client:
        at = number
        while time.perf_counter() < until:
            view, (told, maps) = views[at % len(views)], right[at % len(views)]
            for what, body in (("predict", {"view": view, "top": 8}), ("maps", {"view": view})):
                started = time.perf_counter()
                try:
                    done = await client.post(f"/api/{what}", json=body)
                except httpx.HTTPError as error:
                    tally.failures[type(error).__name__] += 1
                    continue
                tally.times[what].append(time.perf_counter() - started)
                tally.statuses[done.status_code] += 1
                if done.status_code == 200:
                    same = (
                        same_predictions(done.json(), told)
                        if what == "predict"
                        else same_maps(done.content, maps)
                    )
                    tally.wrong += not same
            at += 1


async def watch(process: int, began: float, moments: Sequence[float], tally: Tally) -> None:
    for moment in moments:
        await asyncio.sleep(max(0.0, began + moment - time.perf_counter()))
        tally.memory[f"{moment:.0f} s"] = memory_of(process)


async def load(address: str, process: int, clients: int, seconds: float) -> Tally:
    texts = sentences(TOKENS, clients, seed=2)
    views = [views_of(client, text) for client, text in enumerate(texts)]
    flat = right_answers([view for own in views for view in own])
    right = [flat[i * VIEWS : (i + 1) * VIEWS] for i in range(clients)]
    tally = Tally()
    began = time.perf_counter()
    moments = [0.0, *(m for m in (10.0, 30.0) if m < seconds), seconds]
    readers = [read(i, address, views[i], right[i], began + seconds, tally) for i in range(clients)]
    await asyncio.gather(watch(process, began, moments, tally), *readers)
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    print(describe())
    with serving() as (address, process):
        httpx.get(f"{address}/api/model", timeout=60).raise_for_status()
        tally = asyncio.run(load(address, process, options.clients, options.seconds))
    asked = sum(tally.statuses.values())
    bad = asked - tally.statuses[200] + sum(tally.failures.values())
    print(f"\n{options.clients} readers, {options.seconds:g} s: {asked} answers\n")
    print("| | |\n|---|---|")
    print(f"| errors | {bad} {dict(tally.failures) or ''} |")
    print(f"| answers that are not the right one | {tally.wrong} |")
    for what, times in tally.times.items():
        half, most, nearly_all = 1000 * np.percentile(times, [50, 95, 99])
        waits = f"{half:.0f} / {most:.0f} / {nearly_all:.0f} ms"
        print(f"| {what}: {len(times)} answers, p50 / p95 / p99 | {waits} |")
    held = ", ".join(f"{moment}: {size:.0f} MiB" for moment, size in tally.memory.items())
    print(f"| memory of the server | {held} |")


if __name__ == "__main__":
    main()
