"""Markdown tables of what `mini_scores.py` wrote.

Usage: python benchmarks/mini_table.py scores.jsonl [more.jsonl …] [--reference NAME]
Fine-tuning: median over seeds, lowest and highest in parentheses, and a 95 % bootstrap interval of
the median. BLiMP: a 95 % bootstrap interval over paradigms, and over pairs within each.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

DRAWS = 10_000
# As percentages; a loss is shown as it is.
MAIN = {
    "mrpc": "f1",
    "rte": "accuracy",
    "sst-2": "accuracy",
    "cola": "matthews",
    "sts-b": "spearman",
}
HELD_OUT = ("mlm_loss", "mlm_accuracy", "sentence_accuracy")

Floats = NDArray[np.float64]
Lines = dict[str, dict[str, list[dict[str, Any]]]]  # model -> task -> lines


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("files", type=Path, nargs="+")
    arguments.add_argument("--reference", help="the model others are compared with on BLiMP")
    arguments.add_argument("--all-metrics", action="store_true")
    arguments.add_argument("--paradigms", action="store_true", help="BLiMP by paradigm too")
    given = arguments.parse_args()
    lines = _read(given.files)
    if given.reference is not None and given.reference not in lines:
        arguments.error(f"there is no model {given.reference!r} among {', '.join(lines)}")
    parts = [_scores(lines, given.all_metrics), _phenomena(lines)]
    if given.reference is not None:
        parts.append(_differences(lines, given.reference))
    if given.paradigms:
        parts.append(_paradigms(lines))
    print("\n\n".join(part for part in parts if part))


def _read(files: list[Path]) -> Lines:
    """The last line of every model, task and seed."""
    last: dict[tuple[str, str, int], dict[str, Any]] = {}
    for file in files:
        for text in file.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            job = line["job"]
            if "error" not in line:
                last[job["model"], job["task"], job["seed"]] = line
    found: Lines = {}
    for line in last.values():
        job = line["job"]
        found.setdefault(job["model"], {}).setdefault(job["task"], []).append(line)
    return dict(sorted(found.items(), key=lambda item: item[0].startswith("random-")))


# -- tables ------------------------------------------------------------------------------------


def _scores(lines: Lines, all_metrics: bool) -> str:
    rows = [["BLiMP", *(_blimp_cell(t.get("blimp"), None) for t in lines.values())]]
    for task, main_metric in MAIN.items():
        metrics = [main_metric]
        if all_metrics:
            told = [line["scores"] for t in lines.values() for line in t.get(task, [])]
            metrics += [m for m in (told[0] if told else {}) if m != main_metric]
        rows += [
            [f"{task} {metric}", *(_seeds_cell(t.get(task), metric) for t in lines.values())]
            for metric in metrics
        ]
    rows.append(["learning rate", *(_rates(tasks) for tasks in lines.values())])
    for metric in HELD_OUT:
        name = f"held-out {metric.replace('_', ' ')}"
        rows.append([name, *(_held_out_cell(t.get("held-out"), metric) for t in lines.values())])
    return _table(["", *lines], [row for row in rows if set(row[1:]) != {"–"}])


def _phenomena(lines: Lines) -> str:
    scored = {name: t["blimp"] for name, t in lines.items() if "blimp" in t}
    if not scored:
        return ""
    names = sorted({p for told in scored.values() for p in told[-1]["phenomena"]})
    rows = []
    for phenomenon in names:
        count = len(_outcomes(next(iter(scored.values())), phenomenon))
        cells = [_blimp_cell(told, phenomenon) for told in scored.values()]
        rows.append([f"{phenomenon.replace('_', ' ')} ({count})", *cells])
    few = "Intervals over two paradigms are too short: they cannot know how paradigms differ."
    return _table(["phenomenon (paradigms)", *scored], rows) + f"\n\n{few}"


def _differences(lines: Lines, reference: str) -> str:
    """The same pairs, model against reference: what is hard for both does not widen this."""
    base = lines[reference].get("blimp")
    rows = []
    for name, tasks in lines.items():
        if name == reference or base is None or "blimp" not in tasks:
            continue
        ours, theirs = _outcomes(tasks["blimp"]), _outcomes(base)
        shared = [p for p in ours if p in theirs and len(ours[p]) == len(theirs[p])]
        rows.append([name, _interval([ours[p] - theirs[p] for p in shared], sign=True)])
    return _table([f"BLiMP against {reference}", "difference in points"], rows) if rows else ""


def _paradigms(lines: Lines) -> str:
    scored = {name: t["blimp"][-1]["paradigms"] for name, t in lines.items() if "blimp" in t}
    if not scored:
        return ""
    names = next(iter(scored.values()))
    rows = [
        [p, *(f"{100 * told[p]['accuracy']:.1f}" if p in told else "–" for told in scored.values())]
        for p in names
    ]
    return _table(["paradigm", *scored], rows)


def _table(header: list[str], rows: list[list[str]]) -> str:
    made = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in made)


# -- cells -------------------------------------------------------------------------------------


def _outcomes(told: list[dict[str, Any]], phenomenon: str | None = None) -> dict[str, Floats]:
    """Paradigm -> 1 or 0 for each of its pairs."""
    found = {}
    for name, paradigm in told[-1]["paradigms"].items():
        if phenomenon in (None, paradigm["phenomenon"]):
            bits = np.frombuffer(bytes.fromhex(paradigm["right"]), np.uint8)
            found[name] = np.unpackbits(bits)[: paradigm["pairs"]].astype(float)
    return found


def _blimp_cell(told: list[dict[str, Any]] | None, phenomenon: str | None) -> str:
    return "–" if told is None else _interval(list(_outcomes(told, phenomenon).values()))


def _interval(groups: list[Floats], *, sign: bool = False) -> str:
    """The mean of the groups' means, with its bootstrap interval, in points."""
    draw = np.random.default_rng(0)
    values = np.array([-1.0, 0.0, 1.0])
    means = np.empty((DRAWS, len(groups)))
    chosen = draw.integers(0, len(groups), (DRAWS, len(groups)))
    for i, group in enumerate(groups):
        # Pairs drawn anew are a multinomial of the three outcomes: no need to draw each.
        shares = np.array([(group == v).mean() for v in values])
        where = chosen == i
        counts = draw.multinomial(len(group), shares, size=int(where.sum()))
        means[where] = counts @ values / len(group)
    low, high = 100 * np.quantile(means.mean(1), [0.025, 0.975])
    middle = 100 * np.mean([group.mean() for group in groups])
    plus = "+" if sign else ""
    return f"{middle:{plus}.1f} [{low:{plus}.1f}, {high:{plus}.1f}]"


def _seeds_cell(told: list[dict[str, Any]] | None, metric: str) -> str:
    values = 100 * np.array([line["scores"].get(metric, np.nan) for line in told or []])
    if not len(values) or np.isnan(values).any():
        return "–"
    middle = np.median(values)
    if len(values) == 1:
        return f"{middle:.1f}"
    draw = np.random.default_rng(0)
    medians = np.median(draw.choice(values, (DRAWS, len(values))), axis=1)
    low, high = np.quantile(medians, [0.025, 0.975])
    return f"{middle:.1f} ({values.min():.1f}–{values.max():.1f}) [{low:.1f}, {high:.1f}]"


def _rates(tasks: dict[str, list[dict[str, Any]]]) -> str:
    used = {line["job"]["rate"] for task in MAIN for line in tasks.get(task, [])}
    return ", ".join(f"{rate:g}" for rate in sorted(used)) or "–"


def _held_out_cell(told: list[dict[str, Any]] | None, metric: str) -> str:
    found = [line["scores"][metric] for line in told or [] if metric in line["scores"]]
    if not found:
        return "–"
    return f"{found[-1]:.3f}" if metric.endswith("loss") else f"{100 * found[-1]:.1f}"


if __name__ == "__main__":
    main()
