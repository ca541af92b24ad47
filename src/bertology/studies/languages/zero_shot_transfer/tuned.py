"""Fine-tuned in one language, asked in all: whole, or with the bottom layers as they were."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.data.corpus import Corpus
from bertology.studies.languages.zero_shot_transfer.data import DEV, TEST, TRAIN, Taught

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder
    from bertology.train.finetune import FinetuneSettings


def chosen(taught: Taught, code: int, role: int) -> Corpus:
    """The texts of a language in a role."""
    places = np.flatnonzero(taught.of(code, role))
    examples = [taught.corpus[int(at)] for at in places]
    name = f"{taught.corpus.name} ({taught.codes[code]})"
    return replace(taught.corpus, name=name, examples=examples, origin={}, drawn_from=None)


def settings_for(
    encoder: Encoder, frozen: int | None, *, seed: int, epochs: int, rate: float | None
) -> FinetuneSettings:
    """The usual recipe; with `frozen`, embeddings and so many of the lowest layers stay."""
    from bertology.train.finetune import FinetuneSettings
    from bertology.train.starts import STARTS, default_rate
    from bertology.train.ways import read_ways

    ways = () if frozen is None else read_ways([f"frozen_bottom:layers={frozen}"])
    usual = default_rate(STARTS["pretrained"], encoder.shape.hidden, ways)
    return FinetuneSettings(
        epochs=epochs, learning_rate=rate or usual, seed=seed, max_length=encoder.max_length,
        ways=ways,
    )  # fmt: skip


def tuned_hits(
    encoder: Encoder,
    taught: Taught,
    sources: Sequence[int],
    settings: FinetuneSettings,
    advance: Callable[[], None] = lambda: None,
) -> NDArray[np.float32]:
    """(sources, texts): which texts of all languages the model of each source answers right."""
    from bertology.train.encoded import encode_once, learnable
    from bertology.train.evaluate import predict
    from bertology.train.fit import row_limit
    from bertology.train.starts import STARTS
    from bertology.train.tuning import TuningJob, tune

    hits = np.zeros((len(sources), len(taught.corpus)), np.float32)
    for at, source in enumerate(sources):
        train, dev = (chosen(taught, source, role) for role in (TRAIN, DEV))
        model, _ = tune(TuningJob(encoder, train, dev, STARTS["pretrained"], settings))
        limit = row_limit(model, encoder.tokenizer, settings.max_length)
        for code in range(len(taught.codes)):
            asked = chosen(taught, code, TEST)
            said = predict(model, encode_once(asked, encoder.tokenizer, limit), learnable(asked))
            hits[at, taught.of(code, TEST)] = said == np.array(asked.labels)
        advance()
    return hits
