"""What is kept of a run: an ordinary model, its tokenizer, and a record of how it was made."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from datetime import UTC, datetime

import torch
from torch import Tensor

from bertology.results.provenance import library_versions
from bertology.train.fresh import Architecture, fresh_bert
from bertology.train.pretrain.config import Pretraining
from bertology.train.pretrain.processes import Processes
from bertology.train.pretrain.shards import Shards
from bertology.train.pretrain.start import fingerprint
from bertology.train.protocols import PretrainingBert, SizedVocabulary, Tokenizer
from bertology.train.records import TrainingRecord

_SCHEMA = 1


def bert_of(
    size: Architecture, tokenizer: SizedVocabulary, *, labels: int = 0, seed: int = 0
) -> PretrainingBert:
    """A fresh BertForPreTraining; `labels` of documents take the place of its segments."""
    return fresh_bert(
        "BertForPreTraining", size, tokenizer, seed=seed, type_vocab_size=max(2, labels)
    )


def model_of(
    weights: Mapping[str, Tensor],
    size: Architecture,
    tokenizer: SizedVocabulary,
    *,
    labels: int = 0,
) -> PretrainingBert:
    """The model with the weights that learn, in float32, apart from the one that is trained."""
    model = bert_of(size, tokenizer, labels=labels)
    prefix = "model."
    own = {n.removeprefix(prefix): w.cpu() for n, w in weights.items() if n.startswith(prefix)}
    model.load_state_dict(own, strict=False)  # tied weights have one name only
    model.tie_weights()
    return model


def tokenizer_of(recipe: Pretraining, tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer; its mask is [UNK] where that is what the model was trained with."""
    if any(s.objective.masking.token == "mask" for s in recipe.stages):
        return tokenizer
    changed = deepcopy(tokenizer)
    changed.mask_token = changed.unk_token
    return changed


def run_record(recipe: Pretraining, shards: Shards, processes: Processes) -> TrainingRecord:
    """What stays the same all through a run."""
    # The hash of the first model, not its path: paths of this machine do not belong in a record.
    started = None if recipe.start is None else fingerprint(recipe.start)
    device = processes.device
    gpu = device.type == "cuda"
    return {
        "schema": _SCHEMA,
        "method": "pretrain",
        "recipe": recipe.as_dict() | {"start": started},
        "text": {
            "fingerprint": shards.fingerprint,
            "tokens": shards.tokens,
            "documents": shards.documents,
            "sentences": shards.sentences,
            "held_out_tokens": shards.held_out_tokens,
            "sources": list(shards.sources),
        },
        "device": torch.cuda.get_device_name(device) if gpu else device.type,
        "processes": processes.count,
        "versions": library_versions(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
