"""What a masked language model would fill in: its own best guesses, or given candidates.

A blank is written `{mask}`, or as the tokenizer's own mask token. A candidate is scored as the
pieces it has in its place, filled from left to right. The work is that of the cloze engine
(`clozes.py`), which also does more: other ways to score, priors, layers, streams of questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bertology.errors import DataError, ParameterError
from bertology.model.batch import WithTexts, texts_of
from bertology.model.encoder import Encoder
from bertology.model.masked_lm.clozes import Clozes
from bertology.model.masked_lm.masking import OnScored
from bertology.model.masked_lm.predictions import Prediction
from bertology.model.masked_lm.questions import Question, blanks_in

Blanks = tuple[tuple[Prediction, ...], ...]


@dataclass(frozen=True)
class Cloze:
    """A text with its blanks, each with predictions from the likeliest on."""

    text: str
    blanks: Blanks

    @property
    def predictions(self) -> tuple[Prediction, ...]:
        """The predictions of a text's only blank."""
        if len(self.blanks) != 1:
            raise DataError(
                f"{self.text!r} has {len(self.blanks)} blanks, so its predictions are in `blanks`."
            )
        return self.blanks[0]

    def log_probability(self, word: str) -> float:
        """Of one of the words predicted for the only blank."""
        for found in self.predictions:
            if found.word == word:
                return found.log_probability
        raise DataError(f"{word!r} is not among the predictions for {self.text!r}.")


def cloze(
    encoder: Encoder,
    texts: str | Sequence[str] | WithTexts,
    *,
    candidates: Sequence[str] | Sequence[Sequence[str]] | None = None,
    top_k: int = 10,
    tokens_per_batch: int = 4096,
    progress: OnScored | None = None,
) -> list[Cloze]:
    """Fill the blanks of texts.

    Without candidates, every blank gets the `top_k` likeliest pieces of the vocabulary. With
    candidates (for all texts, or one list for each), every text must have one blank, and all of
    its candidates come back in the order of their log-probability.
    """
    many = [text for text in texts_of(texts) if isinstance(text, str)]
    if len(many) < len(texts_of(texts)):
        raise DataError("Blanks are filled in single texts, not in pairs of texts.")
    if not many:
        raise DataError("There is no text to score.")
    asked = 1 if candidates is not None else top_k
    engine = Clozes(encoder, top_k=asked, tokens_per_batch=tokens_per_batch)
    if candidates is None:
        counts = [max(1, blanks_in(text, encoder.tokenizer.mask_token)) for text in many]
        questions = [
            Question(text, blank=i) for text, n in zip(many, counts, strict=True) for i in range(n)
        ]
        found = (answer.top[0] for answer in engine.answers(questions, progress=progress))
        return [
            Cloze(text, tuple(next(found) for _ in range(n)))
            for text, n in zip(many, counts, strict=True)
        ]
    lists = _lists(candidates, many)
    questions = [Question(t, tuple(words)) for t, words in zip(many, lists, strict=True)]
    return [
        Cloze(answer.question.text, (_ranked(answer.question, answer.scores[0], answer.pieces),))
        for answer in engine.answers(questions, progress=progress)
    ]


def _ranked(
    question: Question, scores: Sequence[float], pieces: Sequence[tuple[str, ...]]
) -> tuple[Prediction, ...]:
    """Candidates from the likeliest on."""
    found = [
        Prediction(word.strip(), float(score), own)
        for word, score, own in zip(question.candidates, scores, pieces, strict=True)
    ]
    return tuple(sorted(found, key=lambda p: -p.log_probability))


def _lists(
    candidates: Sequence[str] | Sequence[Sequence[str]], texts: list[str]
) -> list[list[str]]:
    """The candidates of each text."""
    if isinstance(candidates, str):
        raise ParameterError("candidates", "cloze", "be a list of words", candidates)
    shared = [c for c in candidates if isinstance(c, str)]
    alike = len(shared) == len(candidates)  # one list for all texts
    lists = [shared] * len(texts) if alike else [list(c) for c in candidates]
    if len(lists) != len(texts):
        raise DataError(f"There are {len(texts)} texts and {len(lists)} lists of candidates.")
    for text, words in zip(texts, lists, strict=True):
        if not words:
            raise DataError(f"There are no candidates for {text!r}.")
    return lists
