"""Pre-train by a recipe on shards that are there already, in the time there is.

Usage: python benchmarks/mini_pretrain.py --recipe recipes/bertology-mini.yaml --shards FOLDER
       --tokenizer FOLDER --to RUN [--seconds 480] [--batches 32768,65536]
`bertology pretrain` does all of it from the text on; this is for a machine that is lent for
minutes. With --seconds, the speed is measured first and the number of steps follows from it; with
--batches, the smallest batch is taken that is at least 0.8 times as quick as the quickest. What
was chosen is kept in RUN/recipe.json, so the same command goes on after it was cut.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from bertology.train.pretrain.config import Phase, Pretraining
from bertology.train.pretrain.config_files import read_recipe
from bertology.train.pretrain.log import StepReport
from bertology.train.pretrain.loop import pretrain
from bertology.train.pretrain.shards import Shards, open_shards

PROBE = 250  # updates


def main() -> None:
    from transformers import AutoTokenizer

    given = _arguments()
    recipe = read_recipe(given.recipe)
    shards, tokenizer = open_shards(given.shards), AutoTokenizer.from_pretrained(given.tokenizer)
    training = _planned(recipe.training, shards, tokenizer, given)
    sources = [{k: v for k, v in vars(s).items() if v is not None} for s in recipe.text.sources]
    started = time.time()
    trained = pretrain(
        training,
        shards,
        tokenizer,
        folder=given.to,
        progress=lambda report: _tell(report, started),
        origin={"sources": sources, "card": vars(recipe.card)},
    )
    print("done", trained.scores, f"{trained.tokens:,} tokens", f"{trained.seconds:.0f} s")


def _arguments() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    add = arguments.add_argument
    add("--recipe", required=True)
    add("--shards", required=True)
    add("--tokenizer", required=True)
    add("--to", type=Path, required=True)
    add("--seconds", type=float)
    add("--batches", default="")
    return arguments.parse_args()


def _planned(
    recipe: Pretraining, shards: Shards, tokenizer: Any, given: argparse.Namespace
) -> Pretraining:
    kept = given.to / "recipe.json"
    if kept.is_file():
        return replace(recipe, **json.loads(kept.read_text()))
    chosen: dict[str, Any] = {"steps": recipe.steps, "batch_tokens": recipe.batch_tokens}
    if given.seconds:
        batches = [int(b) for b in given.batches.split(",") if b] or [recipe.batch_tokens]
        speed = {b: _speed(replace(recipe, batch_tokens=b), shards, tokenizer) for b in batches}
        quick = max(sum(1 / s for s in v.values()) ** -1 for v in speed.values())
        for batch in sorted(batches):
            if sum(1 / s for s in speed[batch].values()) ** -1 >= 0.8 * quick:
                break
        seconds = sum(p.share * batch / speed[batch][p.length] for p in recipe.phases)
        steps = int(given.seconds / seconds) // 100 * 100
        chosen = {"steps": steps, "batch_tokens": batch}
        print("chosen", chosen, {b: {k: round(s) for k, s in v.items()} for b, v in speed.items()})
    given.to.mkdir(parents=True, exist_ok=True)
    kept.write_text(json.dumps(chosen))
    return replace(recipe, **chosen)


def _speed(recipe: Pretraining, shards: Shards, tokenizer: Any) -> dict[int, float]:
    """Tokens per second at each length."""
    found = {}
    for length in sorted({p.length for p in recipe.phases}):
        steps = PROBE if length <= 128 else PROBE // 3
        probe = replace(
            recipe,
            steps=steps,
            phases=(Phase(length),),
            log_every=steps // 3,
            evaluate_every=10**9,
            save_every=10**9,
            milestones=0,
        )
        log = pretrain(probe, shards, tokenizer).log
        found[length] = log[1]["tokens_per_second"]
        losses = [round(e["losses"]["mlm"], 3) for e in log]
        print(f"probe {recipe.batch_tokens} x {length}: {found[length]:,.0f} tokens/s", losses)
    return found


def _tell(report: StepReport, started: float) -> None:
    if report.scores is None and report.step % 1000:
        return
    losses = {k: round(v, 3) for k, v in report.losses.items()}
    scores = {k: round(v, 4) for k, v in (report.scores or {}).items()}
    print(
        f"{time.time() - started:5.0f} s  {report.step}/{report.total} {losses} "
        f"{report.tokens_per_second / 1e6:.2f} M/s |g| {report.grad_norm:.2f} {scores}",
        flush=True,
    )


if __name__ == "__main__":
    main()
