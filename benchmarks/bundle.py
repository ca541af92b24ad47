"""From a finished pre-training run to a model that comes with the package.

Usage: python benchmarks/bundle.py RUN --to FOLDER [--steps 0,100,1000] [--earlier BUNDLE]
RUN has model/ and checkpoints/step-*/. FOLDER gets the model in float16, its tokenizer, card,
record and log, and the chosen steps, compressed. Sizes and errors are printed; what compression
does to held-out scores is measured by loading FOLDER@STEP.
With --earlier, RUN went on from the model of that bundle: its steps are kept, and the steps, tokens
and seconds of RUN are counted on from its last.
"""

from __future__ import annotations

import argparse
import copy
import json
import shutil
from pathlib import Path
from typing import Any

import torch

from bertology.model.loading.names import steps_in
from bertology.model.loading.steps import restore, save_step
from bertology.quiet import hush
from bertology.train.checkpoint import save_tokenizer

KEPT = ("README.md", "bertology.json")  # what says where the model comes from
LOG_LINES = 1000


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("run", type=Path)
    arguments.add_argument("--to", type=Path, required=True)
    arguments.add_argument("--steps", help="Comma-separated; all earlier ones when not given.")
    arguments.add_argument("--earlier", type=Path)
    given = arguments.parse_args()
    chosen = None if given.steps is None else [int(s) for s in given.steps.split(",") if s]
    hush()
    bundle(given.run, given.to, chosen, given.earlier)


def bundle(
    run: Path, to: Path, chosen: list[int] | None = None, earlier: Path | None = None
) -> None:
    """Write the folder and print what is in it."""
    found = steps_in(run)
    missing = sorted(set(chosen or ()) - set(found))
    if missing:
        raise SystemExit(f"{run} has no steps {missing}; it has {list(found)}.")
    if to.exists() and any(to.iterdir()):
        raise SystemExit(f"{to} is there already; move it away.")
    final = read(run / "model")
    write_model(final, run, to)
    write_log(run / "log.jsonl", to / "log.jsonl")
    before = 0 if earlier is None else count_on(to, earlier)
    last = final.state_dict()
    for step in found if chosen is None else chosen:
        model = read(found[step])
        weights = model.state_dict()
        if chosen is None and same(weights, last):
            print(f"step {step} is the model itself; left out")
            continue
        path = save_step(to, model, before + step)
        print(f"step {step:>8}: {size(path)}, {largest_errors(weights, restore(path))}")
    files = [p for p in to.rglob("*") if p.is_file()]
    print(f"{to}: {sum(p.stat().st_size for p in files) / 1e6:.2f} MB in {len(files)} files")


def read(folder: Path) -> Any:
    """The model with all its heads, in float32."""
    import transformers

    return transformers.AutoModelForPreTraining.from_pretrained(folder, dtype=torch.float32)


def write_model(model: Any, run: Path, to: Path) -> None:
    """The final model in float16, with all that stands beside it."""
    import transformers

    half = copy.deepcopy(model).half()
    for name, tensor in half.state_dict().items():
        if not tensor.isfinite().all():
            raise SystemExit(f"{name} does not fit into float16.")
    half.save_pretrained(to)
    save_tokenizer(transformers.AutoTokenizer.from_pretrained(run / "model"), to)
    for name in KEPT:
        if (run / "model" / name).is_file():
            shutil.copy(run / "model" / name, to / name)
        else:
            print(f"the run has no {name}")
    errors = largest_errors(model.state_dict(), read(to).state_dict())
    print(f"final model: {size(to / 'model.safetensors')}, {errors}")


def write_log(source: Path, to: Path) -> None:
    """The log, thinned when it is long; lines with held-out scores and the last all stay."""
    if not source.is_file():
        print("the run has no log.jsonl")
        return
    lines = source.read_text(encoding="utf-8").splitlines()
    every = -(-len(lines) // LOG_LINES)
    kept = [
        line
        for i, line in enumerate(lines)
        if i % every == 0 or i == len(lines) - 1 or json.loads(line).get("scores")
    ]
    to.write_text("\n".join(kept) + "\n", encoding="utf-8")
    print(f"log: {len(kept)} of {len(lines)} lines, {size(to)}")


def count_on(to: Path, earlier: Path) -> int:
    """Put the earlier steps and the earlier log in front; returns the last earlier step."""
    shutil.copytree(earlier / "steps", to / "steps")
    first = [json.loads(line) for line in (earlier / "log.jsonl").read_text().splitlines()]
    last = first[-1]
    for line in (to / "log.jsonl").read_text().splitlines():
        entry = json.loads(line)
        for name in ("step", "tokens", "seconds", "total"):
            entry[name] += last[name]
        first.append(entry)
    (to / "log.jsonl").write_text("".join(json.dumps(e) + "\n" for e in first), encoding="utf-8")
    file = to / "bertology.json"
    record = json.loads(file.read_text(encoding="utf-8"))
    record["step"] += last["step"]  # as the steps beside it are counted
    file.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return int(last["step"])


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)


def largest_errors(before: dict[str, torch.Tensor], after: dict[str, torch.Tensor]) -> str:
    """The tensors that lost most: by their largest entry, and by their norm."""
    off, lost = {}, {}
    for name, tensor in after.items():
        error = before[name] - tensor.float()
        if before[name].any():
            off[name] = float(error.abs().max() / before[name].abs().max())
            lost[name] = float(error.norm() / before[name].norm())
    worst = (max(table, key=lambda name: table[name]) for table in (off, lost))
    first, second = worst
    return (
        f"largest error {off[first]:.2e} of the largest entry ({first}), "
        f"{lost[second]:.2e} of the norm ({second})"
    )


def size(path: Path) -> str:
    return f"{path.stat().st_size / 1e6:.2f} MB"


if __name__ == "__main__":
    main()
