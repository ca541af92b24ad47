"""Studies that ask a masked language model what fills a blank.

`ClozeStudy` brings the lens (which layers are read, and how) and makes the engine
(`model/masked_lm/clozes.py`). `pair_blank` finds the blank in a minimal pair; `question_of` turns
an example of a cloze corpus (TEXT with [MASK], and CANDIDATES, ANSWER, ENTITY where it has them)
into a question. Readings are the layers, the last of which is the model itself; without a lens the
model alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertology.errors import CapabilityError
from bertology.parameters import parameter
from bertology.results.drawing import Drawing
from bertology.results.result import Result
from bertology.studies.designs.blocks import Resampled
from bertology.studies.designs.layer_lines import Line, lines_drawn

if TYPE_CHECKING:
    from bertology.data.corpus import Corpus, Example
    from bertology.model.encoder import Encoder
    from bertology.model.masked_lm.clozes import Clozes
    from bertology.model.masked_lm.questions import Question
    from bertology.studies.study import Context


@dataclass(frozen=True)
class ClozeStudy(Resampled):
    """Asks questions, by layer where a lens is chosen."""

    lens: str = parameter(
        "logit",
        "How layers are read: the head on their states (logit), the same after a map fitted to "
        "the corpus's own texts (affine), or only the model itself (none).",
        choices=("logit", "affine", "none"),
    )

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse lenses for models whose head reads no layer of the encoder."""
        super().check(encoder, corpus)
        if self.lens != "none" and len(encoder.family.stacks) > 1:
            raise CapabilityError(
                f"The head of {encoder.family.title} reads a decoder, so that layers of its "
                "encoder cannot be asked.",
                hint="Ask the model itself only: --lens none.",
            )

    def engine(
        self,
        encoder: Encoder,
        corpus: Corpus,
        context: Context,
        *,
        prior: str | None = None,
        top_k: int = 1,
        vocabulary: Sequence[str] | None = None,
    ) -> Clozes:
        """The engine for a study's questions; an affine lens is fitted once and kept."""
        from bertology.model.masked_lm.clozes import Clozes
        from bertology.model.masked_lm.lenses import Lens, LogitLens

        lens: Lens | None = LogitLens() if self.lens == "logit" else None
        if self.lens == "affine":
            from bertology.train.lenses import fit_lens

            lens = fit_lens(
                encoder,
                self.shown(corpus).texts,
                seed=self.seed,
                folder=context.trained,
                tokens_per_batch=context.batch_tokens,
            )
        return Clozes(
            encoder,
            prior=prior,
            lens=lens,
            top_k=top_k,
            vocabulary=vocabulary,
            tokens_per_batch=context.batch_tokens,
        )

    def readings(self, encoder: Encoder) -> int:
        """How many readings an answer has."""
        return 1 if self.lens == "none" else encoder.shape.layers


def too_long(encoder: Encoder, texts: Sequence[str]) -> frozenset[int]:
    """Which of the texts the model cannot take whole; the engine would refuse them."""
    return encoder.tokenize(list(texts)).cut if texts else frozenset()


def question_of(example: Example) -> Question:
    """The question that an example of a cloze corpus asks."""
    from bertology.model.masked_lm.questions import Question

    about = example.annotations
    return Question(
        example.text,
        candidates=tuple(about.get("candidates") or ()),
        answers=tuple(about.get("answer") or ()),
        subject=about.get("entity"),
    )


@dataclass(frozen=True)
class PairBlank:
    """The words in which the sentences of a minimal pair differ; mostly one."""

    start: int  # characters in the good sentence
    end: int
    good: str
    bad: str


def pair_blank(good: str, bad: str, *, most: int = 1) -> PairBlank | None:
    """Where two sentences differ; None where they differ in more than `most` words, or in none."""
    ours, theirs = good.split(), bad.split()
    first = _shared(ours, theirs)
    last = _shared(ours[first:][::-1], theirs[first:][::-1])
    runs = [words[first : len(words) - last] for words in (ours, theirs)]
    if not all(1 <= len(run) <= most for run in runs):
        return None
    at = 0
    for before in ours[:first]:
        at = good.index(before, at) + len(before)
    start = end = good.index(runs[0][0], at)
    for one in runs[0]:
        end = good.index(one, end) + len(one)
    word, other = good[start:end], " ".join(runs[1])
    while word and other and word[-1] == other[-1] and not word[-1].isalnum():
        word, other = word[:-1], other[:-1]  # the same full stop after both
    while word and other and word[0] == other[0] and not word[0].isalnum():
        word, other, start = word[1:], other[1:], start + 1
    return PairBlank(start, start + len(word), word, other) if word and other else None


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words both begin with."""
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def read_by_a_lens(result: Result, lines: Mapping[str, Line], subject: str) -> list[Drawing]:
    """The figure of layers; none where only the model itself was asked."""
    shown = result.measures()
    if not shown:
        return []
    return [
        lines_drawn(
            shown,
            lines,
            result.about,
            title=f"{subject}, read from each layer",
            reading="Layers are read by a lens, so that a low line says only that the head cannot "
            "read it there.",
        )
    ]
