"""Scores of small models: BLiMP, fine-tuning and held-out text, many jobs on one device.

Usage: python benchmarks/mini_scores.py --model NAME=FOLDER [--model …] [--random-like NAME]
       --data FOLDER --to scores.jsonl [--workers 12] [--limit-seconds 500]
One line of JSON per job; what is in the file already is not done again. `mini_table.py` makes a
table of it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import queue
import tempfile
import time
import traceback
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

# task -> batch size, epochs, and about how long it takes, in steps of a small model
FINETUNING = {
    "sst-2": (128, 2, 1050),
    "cola": (32, 3, 800),
    "sts-b": (32, 3, 540),
    "mrpc": (32, 3, 345),
    "rte": (32, 3, 235),
}
BLIMP_COST, HELD_OUT_COST = 2000, 500
TOKENS_PER_BATCH = {"cuda": 65536, "cpu": 4096}


@dataclass(frozen=True)
class Job:
    """One score to find. All of it but the folders says whether two jobs are the same."""

    model: str
    folder: str
    task: str  # blimp, held-out, or one of FINETUNING
    random: bool = False  # a random start of the model's shape, in place of its weights
    seed: int = 0
    rate: float | None = None
    pairs: int | None = None
    examples: int | None = None
    source: str | None = None  # of held-out text: a folder of shards, or a file

    @property
    def key(self) -> str:
        apart = {"folder": None, "source": self.source and Path(self.source).name}
        return json.dumps(asdict(self) | apart, sort_keys=True)

    @property
    def cost(self) -> int:
        if self.task in FINETUNING:
            return FINETUNING[self.task][2]
        return BLIMP_COST if self.task == "blimp" else HELD_OUT_COST


@dataclass(frozen=True)
class Place:
    """Where jobs are done, and until when new ones are begun."""

    data: str | None
    device: str
    until: float
    recorded: bool = False
    keep: str | None = None  # where models fine-tuned with seed 0 go


def main() -> None:
    given = _arguments()
    done = _done(given.to)
    jobs = sorted((j for j in _jobs(given) if j.key not in done), key=lambda j: -j.cost)
    print(f"{len(jobs)} jobs to do, {len(done)} done before", flush=True)
    workers = min(given.workers, len(jobs))
    if workers:
        # Each worker tokenizes with its share of the cores.
        threads = max(1, (os.cpu_count() or 1) // workers)
        os.environ.setdefault("RAYON_NUM_THREADS", str(threads))
        os.environ.setdefault("OMP_NUM_THREADS", str(threads))
        until = time.time() + given.limit_seconds
        place = Place(given.data, given.device, until, given.recorded, given.keep)
        _run(jobs, place, workers, given.to)


def _arguments() -> argparse.Namespace:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    add = arguments.add_argument
    add("--model", action="append", required=True, metavar="NAME=FOLDER")
    add("--random-like", action="append", default=[], metavar="NAME")
    add("--rate", action="append", default=[], metavar="NAME=RATE", help="default: 1e-4")
    add("--data", help="the folder that holds blimp/ and glue/")
    add("--shards", action="append", default=[], metavar="NAME=FOLDER", help="of its own tokenizer")
    add("--held-out-text", help="a file of sentences and documents, for every model")
    add("--tasks", nargs="*", default=["blimp", *FINETUNING], help="without held-out text")
    add("--pairs", type=int, default=1000, help="of each paradigm of BLiMP")
    add("--seeds", type=int, default=5)
    add("--examples", type=int, help="to learn from; for trying things out")
    add("--workers", type=int, default=1)
    add("--device", default="auto")
    add("--recorded", action="store_true", help="replay steps on a GPU; then few workers do best")
    add("--keep", help="a folder for the models fine-tuned with seed 0, in half precision")
    add("--limit-seconds", type=float, default=float("inf"))
    add("--to", type=Path, required=True)
    given = arguments.parse_args()
    unknown = set(given.tasks) - {"blimp", *FINETUNING}
    names = {m.partition("=")[0] for m in given.model}
    if unknown or set(given.random_like) - names:
        arguments.error(f"unknown: {', '.join(unknown | (set(given.random_like) - names))}")
    if given.tasks and not given.data:
        arguments.error("--data is needed for BLiMP and fine-tuning")
    return given


def _pairs(values: list[str]) -> dict[str, str]:
    return {name: value for name, _, value in (v.partition("=") for v in values)}


def _jobs(given: argparse.Namespace) -> list[Job]:
    rates, shards = _pairs(given.rate), _pairs(given.shards)
    jobs: list[Job] = []
    for name, folder in _pairs(given.model).items():
        forms = [Job(name, folder, "")]
        if name in given.random_like:
            forms.append(Job(f"random-{name}", folder, "", random=True))
        for form in forms:
            rate = float(rates.get(form.model, rates.get(name, 1e-4)))
            for task in given.tasks:
                if task == "blimp":
                    jobs.append(replace(form, task=task, pairs=given.pairs))
                    continue
                jobs += [
                    replace(form, task=task, seed=seed, rate=rate, examples=given.examples)
                    for seed in range(given.seeds)
                ]
            sources = [s for s in (shards.get(name), given.held_out_text) if s]
            jobs += [replace(form, task="held-out", source=s) for s in sources]
    return jobs


def _done(file: Path) -> set[str]:
    if not file.is_file():
        return set()
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return {line["key"] for line in lines if "error" not in line}


# -- processes ---------------------------------------------------------------------------------


def _run(jobs: list[Job], place: Place, workers: int, file: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    following = spawn.Value("i", 0)
    results: Any = spawn.Queue()
    processes = [
        spawn.Process(target=_work, args=(jobs, following, place, results)) for _ in range(workers)
    ]
    for process in processes:
        process.start()
    started, told = time.time(), 0
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as out:
        while True:
            alive = any(p.is_alive() for p in processes)
            try:
                line = results.get(timeout=1)
            except queue.Empty:
                if not alive:
                    break
                continue
            out.write(json.dumps(line) + "\n")
            out.flush()
            told += 1
            print(f"{time.time() - started:6.0f} s  {told}/{len(jobs)}  {_short(line)}", flush=True)
    for process in processes:
        process.join()
    if told < len(jobs):
        print(f"{len(jobs) - told} jobs are left; the same command goes on with them")


def _short(line: dict[str, Any]) -> str:
    job = line["job"]
    what = line.get("error") or line.get("accuracy") or line.get("scores")
    return f"{job['model']} {job['task']} seed {job['seed']} ({line['seconds']:.0f} s): {what}"


def _work(jobs: list[Job], following: Any, place: Place, results: Any) -> None:
    """Take one job after the other until none is left, or time is up."""
    from bertology.quiet import hush

    hush()
    while time.time() < place.until:
        with following.get_lock():
            number = following.value
            following.value += 1
        if number >= len(jobs):
            break
        job = jobs[number]
        started = time.time()
        try:
            found = _do(job, place)
        except Exception as error:  # told, and the rest goes on
            what = f"{type(error).__name__}: {error}"
            found = {"error": what, "traceback": traceback.format_exc()}
        took = time.time() - started
        results.put({"key": job.key, "job": asdict(job), "seconds": took, **found})
    results.close()
    results.join_thread()


# -- the jobs ----------------------------------------------------------------------------------


def _do(job: Job, place: Place) -> dict[str, Any]:
    if job.task == "blimp":
        return _blimp(job, place)
    return _held_out(job, place) if job.task == "held-out" else _finetuned(job, place)


def _encoder(job: Job, place: Place, head: str, labels: int | None = None) -> Any:
    """The model of a job; new weights (a classifier, or all of them) are drawn by its seed."""
    import torch

    from bertology.model.encoder import Encoder

    torch.manual_seed(job.seed)
    encoder = Encoder.load(job.folder, head=head, num_labels=labels, device=place.device)
    if job.random:
        torch.manual_seed(job.seed)
        fresh = type(encoder.model)(encoder.model.config).to(encoder.device).eval()
        encoder = Encoder(fresh, encoder.tokenizer, head=head, name=job.model)
    return encoder


@cache
def _corpus(name: str, split: str, root: str | None, limit: int | None = None) -> Any:
    from bertology.data.loading import load_corpus

    # BLiMP's own word for a phenomenon; a paradigm is a file, whose name opens every id.
    options = {"group": "linguistics_term"} if name == "blimp" else {}
    return load_corpus(name, split=split, root=root, limit=limit, **options)


def _blimp(job: Job, place: Place) -> dict[str, Any]:
    import numpy as np

    from bertology.model.masked_lm.scoring import compare_pairs

    paradigms: dict[str, list[Any]] = {}
    for example in _corpus("blimp", "test", place.data):
        paradigms.setdefault(example.id.partition("/")[0], []).append(example)
    paradigms = {name: found[: job.pairs] for name, found in paradigms.items()}
    examples = [e for found in paradigms.values() for e in found]
    encoder = _encoder(job, place, "mlm")
    ahead = compare_pairs(
        encoder,
        [e.text for e in examples],
        [e.get("contrast") for e in examples],
        tokens_per_batch=TOKENS_PER_BATCH.get(encoder.device.type, 4096),
    )
    ends = np.cumsum([len(found) for found in paradigms.values()])[:-1]
    by_paradigm, by_phenomenon = {}, {}
    for (name, found), right in zip(paradigms.items(), np.split(ahead > 0, ends), strict=True):
        phenomenon = str(found[0].get("group"))
        by_phenomenon.setdefault(phenomenon, []).append(float(right.mean()))
        by_paradigm[name] = {
            "phenomenon": phenomenon,
            "accuracy": float(right.mean()),
            "pairs": len(right),
            "right": np.packbits(right).tobytes().hex(),  # each pair, for paired comparisons
        }
    return {
        "accuracy": float(np.mean(ahead > 0)),
        "phenomena": {k: float(np.mean(v)) for k, v in sorted(by_phenomenon.items())},
        "paradigms": by_paradigm,
    }


def _finetuned(job: Job, place: Place) -> dict[str, Any]:
    from bertology.train.finetune import FinetuneSettings, finetune

    train = _corpus(job.task, "train", place.data, job.examples)
    dev = _corpus(job.task, "validation", place.data)
    batch, epochs, _ = FINETUNING[job.task]
    settings = FinetuneSettings(
        epochs=epochs,
        batch_size=batch,
        learning_rate=job.rate or 1e-4,
        seed=job.seed,
        recorded=place.recorded,
    )
    assert train.task is not None
    encoder = _encoder(job, place, "classification", len(train.task.labels) or 1)
    history = finetune(encoder.model, encoder.tokenizer, train, dev, settings=settings)
    if place.keep and job.seed == 0:
        kept = Path(place.keep) / f"{job.model}-{job.task}"
        encoder.model.half().save_pretrained(kept)
        encoder.tokenizer.save_pretrained(kept)
    return {
        "scores": history.scores,
        "epochs": [asdict(epoch) for epoch in history.epochs],
        "settings": asdict(settings),
    }


def _held_out(job: Job, place: Place) -> dict[str, Any]:
    from bertology.train.pretrain.evaluate import evaluate_mlm
    from bertology.train.pretrain.shards import open_shards

    assert job.source is not None
    encoder = _encoder(job, place, "pretraining")
    with tempfile.TemporaryDirectory() as made:
        source = Path(job.source)
        shards = open_shards(source) if source.is_dir() else _prepared(source, made, encoder)
        if shards.vocab_size != encoder.model.config.vocab_size:
            raise ValueError(f"{source} was tokenized by another tokenizer than {job.model}'s")
        scores = evaluate_mlm(encoder.model, shards)
        if not encoder.new_weights:  # the checkpoint has a head for pairs of sentences
            pairs = evaluate_mlm(encoder.model, shards, pairing="nsp")
            scores["sentence_accuracy"] = pairs["sentence_accuracy"]
        return {"scores": scores, "tokens": shards.held_out_tokens}


def _prepared(text: Path, folder: str, encoder: Any) -> Any:
    """Shards of a text for one tokenizer. Which documents are held out depends on none."""
    from bertology.train.pretrain.shards import Dealing, prepare
    from bertology.train.pretrain.text import read_documents

    # Shards to train on may not be empty, so a twentieth goes there and is not used.
    documents = read_documents([text])
    return prepare(
        Path(folder) / "shards", documents, encoder.tokenizer, dealing=Dealing(held_out=0.95)
    )


if __name__ == "__main__":
    main()
