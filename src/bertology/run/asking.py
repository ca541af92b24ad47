"""`bertology.ask`: what a masked language model puts into a blank, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.errors import ParameterError, UnknownNameError
from bertology.model.loading.names import DEFAULT_MODEL
from bertology.quiet import hush
from bertology.report.reply import Reply
from bertology.run.loading import Data, ModelSource, resolve_corpus

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder
    from bertology.model.masked_lm.clozes import Answer
    from bertology.model.masked_lm.lenses import Lens
    from bertology.results.store import Store

LENS_TEXT = "grammar-sentences"
"""What an affine lens is fitted to where no text is named: always at hand."""
_LENSES = ("none", "logit", "affine")
_TEXTS = 2000  # that an affine lens is fitted to


def ask(
    text: str,
    model: Encoder | ModelSource | str | Path = DEFAULT_MODEL,
    *,
    candidates: Sequence[str] = (),
    top: int = 5,
    lens: str = "logit",
    method: str = "left-to-right",
    subject: str | None = None,
    prior: str = "{mask}",
    lens_text: Data = LENS_TEXT,
    store: Store | str | None = None,
    device: str = "auto",
) -> Reply:
    """Ask a masked language model what fills a blank, and how the answer comes about.

    Args:
        text: A text with one blank, written `{mask}` or as the model's own mask token.
        model: A loaded encoder, or a name or folder; by default the bundled `bertology-mini`.
        candidates: Words to choose among, of any number of pieces; else all of the vocabulary.
        top: How many answers.
        lens: How layers are read: `"logit"` (the head on their states), `"affine"` (through a map
            that is fitted to text once and kept in the store), or `"none"` for the model alone.
        method: How candidates of several pieces are scored: `"left-to-right"`, `"joint"`,
            `"single"` or `"sentence"`.
        subject: What the text is about. Then candidates are compared by how much likelier they
            are than with `prior` in its place.
        prior: What stands in place of the subject: a mask, or a word without content.
        lens_text: What an affine lens is fitted to: a corpus, its name or path, or texts.
        store: Where an affine lens is kept: a store or its URL; by default the folder `results`.
        device: Where a named model is loaded: `"cpu"`, `"cuda"`, …

    Returns:
        A `Reply`; print it, or ask for its `table()` or `plot()`.

    Example:
        >>> print(bt.ask("The capital of France is {mask}."))  # doctest: +SKIP
    """
    hush()
    if isinstance(candidates, str):
        raise ParameterError("candidates", "ask", "be a list of words", candidates)
    if subject is not None and not candidates:
        must = "be left out without candidates, which are what a prior is taken of"
        raise ParameterError("subject", "ask", must, subject)
    if lens not in _LENSES:
        raise UnknownNameError("lens", lens, _LENSES)
    if isinstance(model, str | Path):
        model = ModelSource(str(model), device=device)
    encoder = model.load("mlm") if isinstance(model, ModelSource) else model
    read = _lens(lens, encoder, lens_text, store)
    if candidates:
        return _closed(encoder, text, candidates, top, (lens, read), method, subject, prior)
    return _open(encoder, text, top, lens, read)


def _lens(kind: str, encoder: Encoder, texts: Data, store: Store | str | None) -> Lens | None:
    from bertology.model.masked_lm.lenses import LogitLens

    if kind != "affine":
        return LogitLens() if kind == "logit" else None
    from bertology.results.store import Store
    from bertology.train.lenses import fit_lens

    kept = store if isinstance(store, Store) else Store() if store is None else Store(store)
    corpus = resolve_corpus(texts, must_have_task=False, limit=_TEXTS)
    return fit_lens(encoder, corpus.texts, folder=kept.folder_of_trained())


def _open(encoder: Encoder, text: str, top: int, kind: str, lens: Lens | None) -> Reply:
    from bertology.model.masked_lm.clozes import Clozes
    from bertology.model.masked_lm.questions import Question

    (own,) = Clozes(encoder, top_k=top).answers([Question(text)])
    found, answers = own.top[0], own
    shares = np.exp([[p.log_probability for p in found]])
    if lens is not None:
        ids = tuple(encoder.tokenizer.convert_tokens_to_ids([p.pieces[0] for p in found]))
        (answers,) = Clozes(encoder, top_k=top, lens=lens).answers([Question(text, answers=ids)])
        shares = np.exp(answers.log_probabilities)
    return Reply(
        encoder.name,
        text,
        tuple(p.word for p in found),
        tuple(p.log_probability for p in found),
        shares,
        tuple(tuple((p.word, p.probability) for p in row) for row in answers.top),
        lens=None if lens is None else kind,
    )


def _closed(
    encoder: Encoder,
    text: str,
    candidates: Sequence[str],
    top: int,
    lens: tuple[str, Lens | None],
    method: str,
    subject: str | None,
    prior: str,
) -> Reply:
    from bertology.model.masked_lm.clozes import Clozes
    from bertology.model.masked_lm.questions import Question

    engine = Clozes(
        encoder, method=method, prior=None if subject is None else prior, lens=lens[1], top_k=1
    )
    words = tuple(dict.fromkeys(word.strip() for word in candidates))
    (found,) = engine.answers([Question(text, words, subject=subject)])
    shares = _among(found)  # (R, C)
    order = np.argsort(-shares[-1], kind="stable")[:top]
    best = tuple(
        tuple((words[c], float(row[c])) for c in np.argsort(-row, kind="stable")[:top])
        for row in shares
    )
    return Reply(
        encoder.name,
        text,
        tuple(words[c] for c in order),
        tuple(float(found.scores[-1, c]) for c in order),
        shares[:, order],
        best,
        lens=None if lens[1] is None else lens[0],
        closed=True,
        prior=None if subject is None else prior,
    )


def _among(answer: Answer) -> NDArray[np.float64]:
    """Shares among the candidates (R, C), by scores or by what they exceed the prior by."""
    scores = answer.scores if answer.prior is None else answer.calibrated
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: NDArray[np.float64] = weights / weights.sum(axis=1, keepdims=True)
    return shares
