"""From a model to a smaller one: methods one after the other, measured, and saved with a card.

Every finished method's model is kept beside the folder until all are done, and every training keeps
its finished epochs: a process that is killed goes on where it was, to the same numbers. What is
measured is the saved model, opened again.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bertology.data.corpus import Corpus
from bertology.drafts import draft_folder, put_in_place
from bertology.errors import CapabilityError, DataError, ModelError, StoreError
from bertology.model.encoder import Encoder
from bertology.model.loading.pruning import loads_elsewhere
from bertology.results.provenance import library_versions
from bertology.train.answers import encode_for, in_order
from bertology.train.checkpoint import (
    RECORD,
    SCHEMA,
    check_folder,
    described,
    read_record,
    save_checkpoint,
)
from bertology.train.compress.compressed import Compressed, compressed_card
from bertology.train.compress.measuring import bytes_on, measure, packed_on
from bertology.train.compress.method import WRITTEN, ZEROS, Method
from bertology.train.compress.settings import CompressSettings
from bertology.train.compress.work import CompressWatch, Work
from bertology.train.distil.teacher import Teacher
from bertology.train.encoded import task_of
from bertology.train.fit import check_fit
from bertology.train.records import TrainingRecord

_UNFINISHED = "-unfinished"
_FLIPS = "flips.json"
_FEWEST = 10  # training examples


@dataclass(frozen=True)
class CompressJob:
    """Everything that decides what the smaller model will be."""

    original: Encoder  # with a head that was fine-tuned on the task
    train: Corpus
    held_out: Corpus  # looked at once, at the end
    methods: tuple[Method, ...]
    settings: CompressSettings = field(default_factory=CompressSettings)
    base: Encoder | None = None  # the model before it was fine-tuned, where it is known
    answers: Teacher | None = None  # the original as a teacher, where several jobs share it
    batch_tokens: int = 4096  # in one batch where nothing is learnt; decides nothing

    def __post_init__(self) -> None:
        if self.original.head != "classification":
            raise CapabilityError(
                f"{self.original.name!r} was loaded without a head for a task.",
                hint='Load it with head="classification".',
            )
        check_fit(self.original.model, task_of(self.train), self.held_out)
        encode_for(self.original, self.held_out)  # refused before any work, if at all

    def identity(self, methods: Sequence[Method]) -> str:
        """A hash of the first methods of the job; names, paths and devices are left out."""
        asked = {
            "model": self.original.fingerprint,
            "train": self.train.fingerprint,
            "held_out": self.held_out.fingerprint,
            "settings": self.settings.as_record(),
            "methods": [method.hashed for method in methods],
        }
        if more := {k: v for method in methods for k, v in method.ingredients().items()}:
            asked["ingredients"] = more
        if self.base is not None and any(method.uses_base for method in methods):
            asked["base"] = self.base.fingerprint
        return sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]

    def unseen(self) -> Corpus:
        """Training data without any text that scores."""
        unseen = {e.texts for e in self.held_out}
        kept = [e for e in self.train if e.texts not in unseen]
        if len(kept) < _FEWEST:
            raise DataError(
                f"{len(kept)} training examples of {self.train.name!r} are not in the held-out "
                f"data; compression needs {_FEWEST}.",
                hint="Name other data (--validation) or splits (--train-split, --split).",
            )
        part = self.train
        if len(kept) < len(part):
            part = replace(part, examples=kept, origin={}, drawn_from=None)
        return part

    def learning(self) -> Corpus:
        """The same with labels numbered as the outputs are."""
        return in_order(self.original, self.unseen())


def compress_to(
    folder: str | Path,
    job: CompressJob,
    *,
    force: bool = False,
    watch: CompressWatch | None = None,
) -> Compressed:
    """Apply the methods of a job, score the model once on held-out data, and save it to `folder`.

    A run that was stopped goes on where it was. A finished model of the same job is found again;
    one of another job, finished or not, is replaced only by `force`.
    """
    place, told = check_folder(folder), watch or CompressWatch()
    identity = job.identity(job.methods)
    unfinished = _Unfinished(place.with_name(place.name + _UNFINISHED), identity)
    if force:
        unfinished.forget_other()
    elif made := _found(place, identity):
        told.tell(f"{place} was made on {made['created'][:10]} (--force makes it again).")
        _tell_missing(job, told)
        return Compressed(place, made)
    now, steps = _all_applied(job, unfinished, told)
    told.tell("measuring both models")
    found = _saved(place, job, now, steps, identity, unfinished, told)
    unfinished.forget()
    return found


def _tell_missing(job: CompressJob, told: CompressWatch) -> None:
    """What methods write beside the model is written while it is made, and not afterwards."""
    for method in job.methods:
        for name, place in method.places(WRITTEN).items():
            if not Path(place).expanduser().exists():
                told.tell(f"{place} ({name} of {method.name}) is not there; --force makes it, too.")


def made_smaller(
    folder: str | Path,
    job: CompressJob,
    *,
    begun: Sequence[Path] = (),
    watch: CompressWatch | None = None,
) -> tuple[Encoder, Path, list[dict[str, Any]]]:
    """Apply the methods of a job without measuring the model; for whoever measures many of them.

    The model, the folder inside `folder` that holds it, and what was done. After a stop, the same
    call goes on; a finished model is found again. `begun` are folders of jobs with the first of the
    methods: what they made of the same model is taken from the first of them that is there.
    """
    kept = _Unfinished(Path(folder), job.identity(job.methods))
    if not kept.folder.exists():
        kept.take_from(begun)
    now, steps = _all_applied(job, kept, watch or CompressWatch())
    return now, kept.model(len(steps) - 1, job.methods[-1]), steps


def _all_applied(
    job: CompressJob, unfinished: _Unfinished, watch: CompressWatch
) -> tuple[Encoder, list[dict[str, Any]]]:
    train = job.learning()
    watch.tell(
        f"{len(train):,} training examples are there; {len(job.held_out):,} held-out ones are "
        "scored at the end. Where a step trains, scores of epochs are those of training examples."
    )
    steps: list[dict[str, Any]] = []
    now = job.original
    with unfinished.begun(), _flags_kept(job.original.model):
        for number in range(len(job.methods)):
            now, step = _applied(job, number, now, train, unfinished, watch)
            steps.append(step)
    return now, steps


@contextmanager
def _flags_kept(model: Any) -> Iterator[None]:
    """A teacher's weights are frozen; afterwards they are as free as before."""
    free = [weight.requires_grad for weight in model.parameters()]
    try:
        yield
    finally:
        for weight, was in zip(model.parameters(), free, strict=True):
            weight.requires_grad_(was)


def _applied(
    job: CompressJob,
    number: int,
    now: Encoder,
    train: Corpus,
    unfinished: _Unfinished,
    watch: CompressWatch,
) -> tuple[Encoder, dict[str, Any]]:
    """The model after one more method, as it is opened again; and what was done."""
    method, of = job.methods[number], len(job.methods)
    kept = unfinished.model(number, method)
    identity = job.identity(job.methods[: number + 1])
    record = _kept_record(kept, identity)
    title = f"{method.text}" if of == 1 else f"{number + 1} of {of}: {method.text}"
    if record is None:
        watch.tell(title)
        started = time.monotonic()
        work = Work(
            encoder=now,
            teacher=job.original,
            train=train,
            data=job.unseen(),
            settings=job.settings,
            base=job.base,
            answers=job.answers,
            folder=unfinished.trainings(number, method),
            identity=identity,
            watch=watch,
            number=method.name,
            batch_tokens=job.batch_tokens,
        )
        work.encoder = work.copy()
        made = method.apply(work)
        record = {
            "schema": SCHEMA,
            "method": "compress",
            "identity": identity,
            "compression": {
                "method": method.text,
                "summary": method.summary,
                "source": method.source,
                "notes": work.notes,
                "epochs": work.epochs,
                "trainings": work.trainings,
                "examples": work.examples,
                "seconds": time.monotonic() - started,
                **({"found": work.found} if work.found else {}),
            },
        }
        save_checkpoint(kept, made.model, made.tokenizer, record=record)
        shutil.rmtree(unfinished.trainings(number, method), ignore_errors=True)
    else:
        watch.tell(f"{title}: done before the stop")
    return _opened(kept, job.original), record["compression"]


def _opened(folder: Path, original: Encoder) -> Encoder:
    """A saved model, on the device of the original and under its name."""
    trusted = bool((original.spec or {}).get("trust_remote_code"))
    found = Encoder.load(
        str(folder),
        head="classification",
        device=str(original.device),
        trust_remote_code=trusted,
    )
    tokens = original.tokenizer if found.tokenizer is None else found.tokenizer
    return Encoder(found.model, tokens, head="classification", name=original.name)


def _saved(
    place: Path,
    job: CompressJob,
    now: Encoder,
    steps: list[dict[str, Any]],
    identity: str,
    unfinished: _Unfinished,
    watch: CompressWatch,
) -> Compressed:
    last = unfinished.model(len(steps) - 1, job.methods[-1])
    sizes, packed = _sizes(job, last)
    numbers, flips = measure(
        job.original, now, job.held_out, on_disk=sizes, packed=packed, watch=watch,
        batch_tokens=job.batch_tokens,
    )  # fmt: skip
    record: TrainingRecord = {
        "schema": SCHEMA,
        "method": "compress",
        "identity": identity,
        "task": task_of(job.held_out).name,
        "compressed_from": {"name": job.original.name, "fingerprint": job.original.fingerprint},
        "train": described(job.train),
        "validation": described(job.held_out),
        "settings": job.settings.as_record(),
        "scores": numbers["scores"][1],
        "compression": {
            "steps": steps,
            **numbers,
            "plain": loads_elsewhere(now.config),
        },
        "device": str(job.original.device),
        "versions": library_versions(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    if base := _base_of(job):
        record["base"] = base  # what it was fine-tuned from is still so
    if watch.command:
        record["command"] = watch.command
    found = Compressed(place, record)
    _put(last, place, now.tokenizer, found, flips)
    return found


def _put(
    kept: Path, place: Path, tokenizer: Any, found: Compressed, flips: list[dict[str, Any]]
) -> None:
    """Copy the files of the last model, which are what was measured, and write the rest beside."""
    save_checkpoint(
        place,
        _Files(kept),
        tokenizer,
        record=found.record,
        card=compressed_card(found, flips, name=place.name),
        more={_FLIPS: json.dumps(flips, indent=1, ensure_ascii=False) + "\n"},
    )


@dataclass(frozen=True)
class _Files:
    """A saved model that is saved again as it is."""

    folder: Path

    def save_pretrained(self, save_directory: Any) -> None:
        for path in self.folder.iterdir():
            if path.is_file() and path.name != RECORD:
                shutil.copy2(path, save_directory)


def _sizes(job: CompressJob, made: Path) -> tuple[tuple[int, int], tuple[int, int] | None]:
    """Bytes of both models' weights on the disk; and packed, where there are zeros to be packed."""
    zeros = any(method.kind == ZEROS for method in job.methods)
    with TemporaryDirectory(prefix="bertology-size-") as folder:
        job.original.model.save_pretrained(folder)
        before = Path(folder)
        sizes = bytes_on(before), bytes_on(made)
        return sizes, (packed_on(before), packed_on(made)) if zeros else None


def _base_of(job: CompressJob) -> Any:
    if job.base is not None:
        return {"name": job.base.name, "fingerprint": job.base.fingerprint}
    try:
        earlier = read_record(job.original.name) or {}
    except ModelError:
        return None  # a damaged record is no reason to refuse the model
    return earlier.get("base")


def _found(place: Path, identity: str) -> TrainingRecord | None:
    """The record of the finished model; raises an error if the folder holds another one."""
    try:
        record = read_record(place)
    except ModelError as error:
        raise StoreError(error.problem, hint="Make it again with --force.") from error
    if record is None:
        return None
    if record.get("identity") != identity:
        steps = (record.get("compression") or {}).get("steps", ())
        how = ", ".join(step["method"] for step in steps) or str(record.get("method"))
        raise StoreError(
            f"{place} holds a model of other methods, settings, data or another original ({how}).",
            hint="Choose another folder (--to), or replace it with --force.",
        )
    return record


def _kept_record(kept: Path, identity: str) -> Any:
    try:
        record = read_record(kept)
    except ModelError:
        return None  # what cannot be read is made again
    return record if record is not None and record.get("identity") == identity else None


@dataclass(frozen=True)
class _Unfinished:
    """What is kept beside the folder until the model is made, for one job."""

    folder: Path
    identity: str

    @property
    def _mark(self) -> Path:
        return self.folder / "job"

    @property
    def _others(self) -> bool:
        """Whether something of another job is in the folder."""
        mark = self._mark.read_text(encoding="utf-8") if self._mark.is_file() else self.identity
        return mark != self.identity and self._kept

    @property
    def _kept(self) -> bool:
        return any(path.is_file() and path != self._mark for path in self.folder.rglob("*"))

    @contextmanager
    def begun(self) -> Iterator[None]:
        """The folder is there for this job; refused where another one left something in it."""
        if self._others:
            raise StoreError(
                f"{self.folder} holds an unfinished run with other methods, settings, data or "
                "another original.",
                hint="Choose another folder (--to), or start again here with --force.",
            )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._mark.write_text(self.identity, encoding="utf-8")
        except OSError as error:
            raise StoreError(
                f"Nothing can be kept in {self.folder}: {error.strerror or error}.",
                hint="Choose a folder you may write to, on a disk with space.",
            ) from error
        try:
            yield
        except BaseException:
            if not self._kept:  # there is nothing to go on with
                self.forget()
            raise

    def forget_other(self) -> None:
        """Delete what another job left."""
        if self._others:
            self.forget()

    def model(self, number: int, method: Method) -> Path:
        """Where the model after a method is kept."""
        return self.folder / f"{number + 1}-{method.name}"

    def trainings(self, number: int, method: Method) -> Path:
        """Where its trainings keep their epochs."""
        return self.folder / f"{number + 1}-{method.name}-trainings"

    def take_from(self, others: Sequence[Path]) -> None:
        """Copy finished models of another job; what it is in the middle of stays there."""
        there = [other for other in others if other.is_dir()]
        if there:
            with draft_folder(self.folder) as draft:
                ignored = shutil.ignore_patterns(self._mark.name, "*-trainings")
                shutil.copytree(there[0], draft, ignore=ignored, dirs_exist_ok=True)
                put_in_place(draft, self.folder)

    def forget(self) -> None:
        """Delete all of it; it is no longer needed."""
        shutil.rmtree(self.folder, ignore_errors=True)
