"""A trained model as an ordinary Hugging Face folder, with a record of how it was made."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bertology.drafts import draft_folder, put_in_place
from bertology.errors import ModelError, StoreError
from bertology.plain_files import local_path, read_json
from bertology.results.provenance import library_versions

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus
    from bertology.train.finetune import FinetuneSettings
    from bertology.train.history import History
    from bertology.train.protocols import Savable
    from bertology.train.records import CorpusRecord, TrainingRecord

RECORD = "bertology.json"
CARD = "README.md"
SCHEMA = 1
_PARTS = ("base", "train", "validation", "settings", "scores", "versions")  # mappings
_CONFIG = "tokenizer_config.json"
_ONLY_IN_5 = "TokenizersBackend"  # the class of a fast tokenizer in version 5
_IN_BOTH = "PreTrainedTokenizerFast"  # its name in version 4, which version 5 still knows
_OF_THE_SESSION = ("backend", "is_local", "local_files_only")  # how it was loaded, not what it is


def record_of(
    train: Corpus, validation: Corpus, settings: FinetuneSettings, history: History
) -> TrainingRecord:
    """What a fine-tuned model's record says: data, settings, scores and versions."""
    import torch

    return {
        "schema": SCHEMA,
        "method": "finetune",
        "task": train.task.name if train.task else None,
        "train": described(train),
        "validation": described(validation),
        "settings": settings.as_record(),
        "scores": history.scores,
        "history": [epoch.as_record() for epoch in history.epochs],
        "kept_epoch": history.kept.number,
        "trained_parameters": history.trained,
        "seconds": history.seconds,
        "truncated": history.truncated,
        "truncated_validation": history.truncated_validation,
        "threads": torch.get_num_threads(),
        "versions": library_versions(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def described(corpus: Corpus) -> CorpusRecord:
    """What a record says of a corpus."""
    return {
        "name": corpus.name,
        "split": corpus.split,
        "size": len(corpus),
        "fingerprint": corpus.fingerprint,
        "origin": dict(corpus.origin),
    }


def check_folder(folder: str | Path) -> Path:
    """Refuse, before any work, a folder that no model can be saved to."""
    place = Path(folder)
    ours = (place / RECORD).is_file()
    if place.exists() and not ours and (not place.is_dir() or any(place.iterdir())):
        raise StoreError(
            f"{place} exists already and is not a model that bertology made.",
            hint="Choose another folder, or move that one away.",
        )
    above = next(p for p in place.absolute().parents if p.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        raise StoreError(
            f"The model cannot be written to {place}: {above} is not a folder you may write to.",
            hint="Choose another folder.",
        )
    return place


def save_checkpoint(
    folder: str | Path,
    model: Savable,
    tokenizer: Savable,
    *,
    record: Mapping[str, object],
    card: str | None = None,
    more: Mapping[str, str] | None = None,
) -> Path:
    """Write safetensors, config, tokenizer, record and model card to `folder`, all or nothing.

    `more` are other texts by the names of their files.

    A checkpoint that was there before is replaced only when the new one is complete; any other
    folder that is not empty is left alone.
    """
    from bertology.model.loading.own_type import mark_changed
    from bertology.model.loading.pruning import loads_elsewhere

    place = check_folder(folder)
    # Beside its place, so that moving it there is one step on one disk.
    try:
        with draft_folder(place) as draft:
            model.save_pretrained(draft)
            if (config := getattr(model, "config", None)) and not loads_elsewhere(config):
                mark_changed(draft)
            save_tokenizer(tokenizer, draft)
            text = json.dumps(record, indent=2, ensure_ascii=False, default=str)
            (draft / RECORD).write_text(text + "\n", encoding="utf-8")
            if card is not None:
                (draft / CARD).write_text(card, encoding="utf-8")
            for name, other in (more or {}).items():
                (draft / name).write_text(other, encoding="utf-8")
            put_in_place(draft, place)
    except OSError as error:
        raise StoreError(
            f"The model cannot be written to {place}: {error.strerror or error}.",
            hint="Choose a folder you may write to, on a disk with space.",
        ) from error
    return place


def read_record(model: str | Path) -> TrainingRecord | None:
    """The record of a model that bertology made, by its folder; None where there is none."""
    path = local_path(model, error=ModelError) / RECORD
    if not path.exists():
        return None
    try:
        record: TrainingRecord = read_json(path, error=ModelError)
    except ModelError as error:
        raise ModelError(error.problem, hint="Move that folder away and train again.") from None
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        raise ModelError(
            f"{path} is not of schema {SCHEMA}, which this version reads.",
            hint="Move that folder away and train again.",
        )
    for name in _PARTS:
        if not isinstance(record.get(name, {}), dict | None):
            raise ModelError(
                f"{path} is damaged: its field {name!r} is no mapping.",
                hint="Move that folder away and train again.",
            )
    return record


def save_tokenizer(tokenizer: Savable, folder: Path) -> None:
    """Write the files of a tokenizer to `folder`; they give the same tokens in both versions."""
    tokenizer.save_pretrained(folder)
    file = folder / _CONFIG
    if not file.is_file():
        return
    config = json.loads(file.read_text(encoding="utf-8"))
    if config.get("tokenizer_class") == _ONLY_IN_5:
        config["tokenizer_class"] = _IN_BOTH
    kept = {name: value for name, value in config.items() if name not in _OF_THE_SESSION}
    file.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
