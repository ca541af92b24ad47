"""`bertology.compress`: a smaller model for a task by any methods, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertology.data.corpus import Corpus
from bertology.errors import BertologyError, CapabilityError, ModelError, StoreError
from bertology.quiet import hush
from bertology.run.loading import Asked, ModelSource, seen_and_unseen

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder
    from bertology.train.compress import Method
    from bertology.train.compress.compressed import Compressed
    from bertology.train.compress.settings import CompressSettings
    from bertology.train.compress.work import CompressWatch

_ORIGINAL = "-original"


def compress(
    model: Encoder | ModelSource | str | Path,
    task: Corpus | str | Path,
    validation: Corpus | str | Path | None = None,
    *,
    method: str | Method | Sequence[str | Method],
    to: str | Path,
    epochs: int = 3,
    batch_size: int = 32,
    rate: float | None = None,
    max_length: int | None = None,
    precision: str = "float32",
    seed: int = 0,
    limit: int | None = None,
    validation_limit: int | None = None,
    train_split: str = "train",
    split: str = "validation",
    finetune: bool = False,
    force: bool = False,
    watch: CompressWatch | None = None,
    **reading: Any,
) -> Compressed:
    """Compress a model for a task by one method, or by several one after the other.

    Args:
        model: A loaded encoder, or a name or folder. One without a head for a task is fine-tuned
            on it first, and that model is kept beside `to` (`FOLDER-original`).
        task: The training data: a name (`"mrpc"`), a file, a folder, a hub id, or a corpus.
        validation: The held-out data that both models are scored on once; by default another split
            of `task`.
        method: Methods with their options, in the order in which they are applied:
            `"layer_choice:layers=6,int8"`, or a list of them (`docs/how-to/compress.md`).
        to: The folder for the smaller model.
        epochs: Passes over the training data, of each training whose method says nothing else.
        batch_size: Examples in one update.
        rate: The highest learning rate; by default one that suits the model's size.
        max_length: Cut texts to so many tokens in training; by default to what the model can read.
        precision: `"bfloat16"`: mixed precision in training, on a GPU.
        seed: Of new weights, the order of examples, dropout, and of what is chosen by.
        limit: Learn from so many examples, drawn at random; all if not given.
        validation_limit: Score on so many examples; all if not given.
        train_split: The split to learn from.
        split: The split to score on.
        finetune: Fine-tune the model on the task first, even if it already has a head for one.
        force: Replace a model that is already in the folder.
        watch: Is told what is done, and each step of each training.
        **reading: How named data are read, as `load_corpus` takes it: `root`, `columns`, `labels`.

    Returns:
        What it saves and costs; print it. After a stop, the same call goes on.

    Example:
        >>> print(bt.compress("my-model", "mrpc", method="int8", to="small"))  # doctest: +SKIP
    """
    hush()
    from bertology.train.checkpoint import check_folder
    from bertology.train.compress import Method, read_methods
    from bertology.train.compress.compressing import CompressJob, compress_to
    from bertology.train.compress.settings import CompressSettings
    from bertology.train.compress.work import CompressWatch

    methods = read_methods([method] if isinstance(method, str | Method) else method)
    settings = CompressSettings(
        epochs=epochs,
        batch_size=batch_size,
        rate=rate,
        max_length=max_length,
        precision=precision,
        seed=seed,
    )
    place, told = check_folder(to), watch or CompressWatch()
    _refuse_itself(model, place)
    train, held_out = seen_and_unseen(
        Asked(task, train_split, limit), Asked(validation, split, validation_limit), **reading
    )
    has_head = not finetune and _has_head(model)
    original, base = (
        _headed(model, methods)
        if has_head
        else _made_original(model, train, held_out, methods, settings, place, told)
    )
    try:
        job = CompressJob(original, train, held_out, methods, settings, base)
    except (ModelError, CapabilityError) as error:
        anew = "Where it was fine-tuned on another task, finetune=True (--finetune) does it anew."
        raise type(error)(error.problem, hint=f"{anew} {error.hint or ''}".strip()) from error
    return compress_to(place, job, force=force, watch=told)


def _has_head(model: Encoder | ModelSource | str | Path) -> bool:
    """Whether the model knows a task already."""
    from bertology.model.encoder import Encoder
    from bertology.model.loading.saved_head import saved_head

    if isinstance(model, Encoder):
        return model.head == "classification" and not model.new_weights
    return saved_head(_source(model).name) == "classification"


def _source(model: ModelSource | str | Path) -> ModelSource:
    return model if isinstance(model, ModelSource) else ModelSource(str(model))


def _headed(
    model: Encoder | ModelSource | str | Path, methods: Sequence[Method]
) -> tuple[Encoder, Encoder | None]:
    """The model that was fine-tuned elsewhere, and the one before, where it is known."""
    from bertology.model.encoder import Encoder

    found = model if isinstance(model, Encoder) else _source(model).load("classification")
    _check(methods, found)
    return found, _before(found)


def _made_original(
    model: Encoder | ModelSource | str | Path,
    train: Corpus,
    held_out: Corpus,
    methods: Sequence[Method],
    settings: CompressSettings,
    place: Path,
    watch: CompressWatch,
) -> tuple[Encoder, Encoder]:
    """The model fine-tuned on the task, and the one before."""
    from bertology.model.encoder import Encoder
    from bertology.run.loading import body_of

    body = body_of(model) if isinstance(model, Encoder) else _source(model).load()
    body.require_tokenizer()
    _check(methods, body)
    made = _tuned(body, train, held_out, settings, place.with_name(place.name + _ORIGINAL), watch)
    encoder = Encoder.load(str(made), head="classification", device=str(body.device))
    return encoder, body


def _refuse_itself(model: Encoder | ModelSource | str | Path, place: Path) -> None:
    """Not even by force is the original replaced by what is made of it."""
    name = str(model) if isinstance(model, str | Path) else model.name
    given = Path(name).expanduser()
    if given.is_dir() and place.exists() and given.samefile(place):
        raise StoreError(
            f"{place} is the folder of the model that is to be compressed.",
            hint="Choose another folder (--to).",
        )


def _check(methods: Sequence[Method], encoder: Encoder) -> None:
    """Refuse what does not fit the model, before it is fine-tuned or anything is applied."""
    from bertology.train.checkpoint import read_record
    from bertology.train.compress import check_again
    from bertology.train.compress.method import SHAPE

    try:
        record = read_record(encoder.name) or {}
    except BertologyError:
        record = {}  # a damaged record is no reason to refuse the model
    steps = (record.get("compression") or {}).get("steps", ())
    check_again(methods, encoder.name, (step["method"] for step in steps))
    for method in methods:
        method.check_fit(encoder)
        if method.kind == SHAPE:
            break  # those after it are given another model, and look at it when it is there


def _tuned(
    body: Encoder,
    train: Corpus,
    held_out: Corpus,
    settings: CompressSettings,
    folder: Path,
    watch: CompressWatch,
) -> Path:
    """Fine-tune a pre-trained model on the task, or find it; it is kept."""
    from bertology.train.finetune import FinetuneSettings
    from bertology.train.starts import default_rate, find_start
    from bertology.train.tuning import TuningJob, make_tuned

    start = find_start("pretrained")
    recipe = FinetuneSettings(
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        learning_rate=settings.rate or default_rate(start, body.shape.hidden),
        seed=settings.seed,
        max_length=settings.max_length,
        precision=settings.precision,
    )
    watch.tell(f"{body.name} has no head for the task: fine-tuned first, it is kept in {folder}")
    line = watch.training("the original", recipe.epochs)
    try:
        # The last epoch is kept, so the held-out data choose nothing.
        job = TuningJob(body, train, held_out, start, recipe)
        again = "move it away to make it again"  # other methods may have been applied to it
        make_tuned(folder, job, progress=line.step, tell=watch.tell, again=again)
    except StoreError as error:
        raise StoreError(
            error.problem, hint="Choose another folder (--to), or move that one away."
        ) from error
    finally:
        line.stop()
    return folder


def _before(encoder: Encoder) -> Encoder | None:
    """The model that this one was fine-tuned from, where its record tells it and it is here."""
    from bertology.model.encoder import Encoder
    from bertology.train.checkpoint import read_record

    try:
        record = read_record(encoder.name) or {}
        base = record.get("base")
        if base is None or record.get("start") == "random":
            return None
        found = Encoder.load(base["name"], device=str(encoder.device))
    except (BertologyError, OSError):
        return None
    return found if found.fingerprint == base["fingerprint"] else None
