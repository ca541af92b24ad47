"""The three pre-training studies at a larger scale: many runs on one device, then the verdicts.

Usage: python benchmarks/pretraining_studies.py run --shards FOLDER --tokenizer FOLDER
       --data FOLDER --to parts.jsonl [--study objectives|sweep|positions] [--workers 12]
       python benchmarks/pretraining_studies.py show parts.jsonl --store FOLDER
`run` measures parts of the studies on prepared shards, with every twentieth pair of BLiMP and with
STS-B (`positions`: with neither, but with sentences of the English Web Treebank); one line of JSON
per part, and what is there is not done again. `show` concludes: results in a store, tables and
verdicts as Markdown.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import queue
import time
import traceback
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bertology.studies.study import Context
from bertology.studies.training.architecture_sweep import ArchitectureSweep
from bertology.studies.training.nsp_positions import NspPositions
from bertology.studies.training.pretraining_objectives import PretrainingObjectives

SETTINGS: dict[str, Any] = {
    "layers": 4,
    "heads": 4,
    "hidden": 128,
    "updates": 8000,  # from 2,000 on runs are compiled: a few workers, each with many runs, do best
    "update_tokens": 16384,
    "length": 128,
    "learning_rate": 3e-3,
    "dropout": 0.0,
    "pairs": "blimp",
    "finetune": "sts-b",
    "finetune_examples": 10_000,
    "finetune_rate": 3e-4,
    "seeds": 3,
}
EVERY = 20  # pairs of BLiMP: 50 of each paradigm


class _OnShards:
    """Text and pairs that are not the corpus's."""

    def text(self, encoder: Any, corpus: Any) -> Any:
        return encoder.shards

    def load_pairs(self) -> Any:
        return _pairs()


@cache
def _pairs() -> Any:
    from bertology.data.loading import load_corpus

    corpus = load_corpus("blimp", split="test")
    return corpus[::EVERY]


@dataclass(frozen=True)
class Objectives(_OnShards, PretrainingObjectives):
    """As the study is, on shards."""


@dataclass(frozen=True)
class Sweep(_OnShards, ArchitectureSweep):
    """As the study is, on shards."""


@dataclass(frozen=True)
class Positions(_OnShards, NspPositions):
    """As the study is, on shards; sentences of other text are moved."""

    def load_pairs(self) -> None:
        return None

    def moved_text(self, corpus: Any) -> Any:
        return _moved()


@cache
def _moved() -> Any:
    from bertology.data.loading import load_corpus

    return load_corpus("ud-ewt")


def studies() -> dict[str, Any]:
    plain = {"pairs": "none", "finetune": "none"}
    return {
        "objectives": Objectives(**SETTINGS),
        "sweep": Sweep(**SETTINGS),
        "positions": Positions(**{**SETTINGS, **plain}),
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    commands = arguments.add_subparsers(required=True)
    run = commands.add_parser("run")
    for name in ("--shards", "--tokenizer", "--data"):
        run.add_argument(name, required=True)
    run.add_argument("--to", type=Path, required=True)
    run.add_argument("--study", nargs="*", default=["objectives", "sweep"])
    run.add_argument("--parts", nargs="*", help="only these")
    run.add_argument("--workers", type=int, default=1)
    run.add_argument("--device", default="cuda")
    run.add_argument("--limit-seconds", type=float, default=float("inf"))
    run.set_defaults(do=measure)
    show = commands.add_parser("show")
    show.add_argument("parts", type=Path, nargs="+")
    show.add_argument("--store", required=True)
    show.set_defaults(do=conclude)
    for command in (run, show):
        command.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="settings")
    given = arguments.parse_args()
    for setting in given.set:
        name, _, value = setting.partition("=")
        SETTINGS[name] = type(SETTINGS[name])(value)
    given.do(given)


# -- measuring ---------------------------------------------------------------------------------


def measure(given: argparse.Namespace) -> None:
    os.environ["BERTOLOGY_DATA"] = given.data
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("RAYON_NUM_THREADS", "2")
    done = {(line["study"], line["part"]) for line in _lines([given.to]) if "error" not in line}
    jobs = [
        (name, part)
        for name in given.study
        for part in studies()[name].parts(None, None)
        if (name, part) not in done and (not given.parts or part in given.parts)
    ]
    jobs.sort(key=lambda job: int(job[1].rpartition("-")[2]))  # all of seed 0 first
    print(f"{len(jobs)} parts to do, {len(done)} done before", flush=True)
    spawn = multiprocessing.get_context("spawn")
    following, results = spawn.Value("i", 0), spawn.Queue()
    until = time.time() + given.limit_seconds
    facts = vars(given) | {"do": None, "to": None, "settings": SETTINGS}
    workers = [
        spawn.Process(target=_work, args=(jobs, following, facts, until, results))
        for _ in range(min(given.workers, len(jobs)))
    ]
    for worker in workers:
        worker.start()
    given.to.parent.mkdir(parents=True, exist_ok=True)
    started, told = time.time(), 0
    with given.to.open("a", encoding="utf-8") as out:
        while told < len(jobs):
            alive = any(w.is_alive() for w in workers)
            try:
                line = results.get(timeout=1)
            except queue.Empty:
                if not alive:
                    break
                continue
            out.write(json.dumps(line) + "\n")
            out.flush()
            told += 1
            what = line.get("error") or {k: round(v, 4) for k, v in line["numbers"].items()}
            print(f"{time.time() - started:5.0f} s {told}/{len(jobs)} {line['part']} {what}")
    for worker in workers:
        worker.join()


def _work(jobs: Any, following: Any, facts: dict[str, Any], until: float, results: Any) -> None:
    from transformers import AutoTokenizer

    from bertology.quiet import hush
    from bertology.train.pretrain.shards import open_shards

    hush()
    SETTINGS.update(facts["settings"])  # this process has read the file anew
    encoder = SimpleNamespace(
        tokenizer=AutoTokenizer.from_pretrained(facts["tokenizer"]),
        shards=open_shards(facts["shards"]),
        device=facts["device"],
        name="bertology-mini",
    )
    while time.time() < until:
        with following.get_lock():
            number = following.value
            following.value += 1
        if number >= len(jobs):
            break
        name, part = jobs[number]
        line: dict[str, Any] = {"study": name, "part": part}
        started = time.time()
        try:
            found = studies()[name].measure(encoder, None, part, Context())
            line["dataset"] = found.to_dict()
            line["numbers"] = {str(n): float(v) for n, v in found.data_vars.items() if not v.dims}
        except Exception:  # told, and the rest goes on
            line["error"] = traceback.format_exc()
        line["seconds"] = time.time() - started
        results.put(line)
    results.close()
    results.join_thread()


# -- concluding --------------------------------------------------------------------------------


def conclude(given: argparse.Namespace) -> None:
    import xarray as xr

    from bertology.results.provenance import Provenance
    from bertology.results.store import Store

    lines = [line for line in _lines(given.parts) if "error" not in line]
    store = Store(given.store)
    for name, study in studies().items():
        found = {p["part"]: xr.Dataset.from_dict(p["dataset"]) for p in lines if p["study"] == name}
        wanted = _whole_seeds(study, found)
        if not wanted:
            continue
        named = {
            "objectives": "pretraining-objectives",
            "sweep": "architecture-sweep",
            "positions": "nsp-positions",
        }
        tokens = study.updates * study.update_tokens
        provenance = Provenance(
            study=named[name],
            study_version=study.version,
            parameters=study.parameters,
            model={"name": "bertology-mini", "fingerprint": "its vocabulary"},
            corpus={
                "name": f"{tokens / 1e6:.0f} M tokens of the text of bertology-mini",
                "fingerprint": "see the model's record",
            },
        )
        result = study.conclude({p: found[p] for p in wanted}, provenance)
        store.save(result)
        print(f"\n### {provenance.study}: {len(wanted)} runs\n\n{result.headline()}\n")
        _show(result)


def _whole_seeds(study: Any, found: Any) -> list[str]:
    """Parts of the seeds that all variants were done with: only these can be paired."""
    parts = study.parts(None, None)
    seeds = {part.rpartition("-")[2] for part in parts}
    whole = {s for s in seeds if all(p in found for p in parts if p.endswith(f"-seed-{s}"))}
    return [part for part in parts if part.rpartition("-")[2] in whole]


def _show(result: Any) -> None:
    table = result.table()
    kind = table.columns[0]
    measures = list(dict.fromkeys(table["measure"]))
    print(f"| {kind} | " + " | ".join(measures) + " |")
    print("|---|" + "---|" * len(measures))
    for name in dict.fromkeys(table[kind]):
        cells = []
        for measure_ in measures:
            row = table[(table[kind] == name) & (table["measure"] == measure_)].iloc[0]
            scale, digits = (1, 3) if measure_ == "mlm_loss" else (100, 1)
            mean, low, high = (scale * row[c] for c in ("mean", "low", "high"))
            sure = " *" if row["p_adjusted"] < 0.05 else ""
            cells.append(
                "–"
                if mean != mean
                else f"{mean:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]{sure}"
            )
        print(f"| {name} | " + " | ".join(cells) + " |")
    print("\n| claim | verdict | estimate | interval |\n|---|---|---|---|")
    for verdict in result.verdicts():
        e = verdict.estimate
        shown = ("–", "–") if e is None else (f"{e.value:+.4f}", f"[{e.low:+.4f}, {e.high:+.4f}]")
        print(f"| {verdict.claim.statement} | {verdict.outcome} | {shown[0]} | {shown[1]} |")


def _lines(files: list[Path]) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for file in files
        if file.is_file()
        for line in file.read_text(encoding="utf-8").splitlines()
    ]


if __name__ == "__main__":
    main()
