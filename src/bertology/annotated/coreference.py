"""Documents as a model reads them: windows whose mentions are asked for their antecedents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bertology.annotated.tagged_batches import annotated
from bertology.annotated.words import word_batches
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.words.antecedents import Question, mentions_of, questions_of
from bertology.data.words.classes import BY_CORPUS
from bertology.data.words.windows import sentence_texts, windows_of

if TYPE_CHECKING:
    from bertology.model.batch import Batch
    from bertology.model.encoder import Encoder
    from bertology.model.reducers.choices import MostAttendedChoice

READINGS = ("mentions", "words")
"""Among what the most attended word is looked for: heads of earlier mentions, all earlier words."""
_KEPT = frozenset({
    Field.TEXT, Field.WORDS, Field.OFFSETS, Field.COREFERENCE, Field.LEMMAS, Field.POS,
    Field.HEADS, Field.RELATIONS,
})  # fmt: skip


@dataclass(frozen=True)
class Windows:
    """The windows of some documents, and of which of them each is."""

    corpus: Corpus
    documents: Sequence[int]
    tagger: str


def cut_documents(encoder: Encoder, corpus: Corpus, longest: int, tagger: str) -> Windows:
    """Windows of at most `longest` tokens, special ones counted; tagged where there are no tags."""
    sentences = [sentence_texts(example) for example in corpus]
    texts = [text for of in sentences for text in of]
    encodings = (encoder.tokenize(texts).encodings or ()) if texts else ()
    pieces = [[s is not None for s in e.sequence_ids] for e in encodings]
    special = max((len(of) - sum(of) for of in pieces), default=0)
    lengths = iter(sum(of) for of in pieces)
    limit = min(longest, encoder.max_length or longest) - special
    found = [
        (window, number)
        for number, example in enumerate(corpus)
        for window in windows_of(example, [next(lengths) for _ in sentences[number]], limit)
    ]
    examples = [example for example, _ in found]
    cut = replace(corpus, examples=examples, fields=corpus.fields & _KEPT, origin={})
    if tagger in ("auto", "gold") and Field.POS in cut.fields:
        return Windows(cut, [number for _, number in found], BY_CORPUS)
    tagged, who = annotated(cut, tagger)
    return Windows(tagged, [number for _, number in found], who)


def linked(example: Example) -> int:
    """How many mentions corefer with one before them."""
    clusters = example.get(Field.COREFERENCE) or ()
    return sum(len(cluster) - 1 for cluster in clusters if cluster)


@dataclass(frozen=True)
class AskedBatch:
    """A batch of windows with their questions, and what will see which are answered."""

    batch: Batch
    documents: Sequence[int]
    examples: Sequence[Example]
    questions: Sequence[Sequence[Question]]
    reducer: MostAttendedChoice


def asked_batches(
    encoder: Encoder, windows: Windows, *, tokens_per_batch: int
) -> Iterator[AskedBatch]:
    """Those of the windows in which something is asked; what truncation cut off is not."""
    from bertology.model.reducers.choices import Choice, MostAttendedChoice

    asked = [i for i, e in enumerate(windows.corpus) if questions_of(mentions_of(e))]
    some = [windows.corpus[i] for i in asked]
    if not some:
        return
    for read in word_batches(encoder, some, tokens_per_batch=tokens_per_batch):
        words, questions, choices = [], [], []
        for one in read.examples:
            pieces = [one.alignment.pieces_of(word) for word in range(len(one.alignment))]
            there = [m for m in mentions_of(one.example) if pieces[m.head]]
            found = questions_of(there)
            words.append(pieces)
            questions.append(found)
            choices.append(
                [Choice(q.mention.head, _among(q, pieces), tuple(sorted(q.targets))) for q in found]
            )
        yield AskedBatch(
            read.batch,
            [windows.documents[asked[i]] for i in read.batch.indices],
            [one.example for one in read.examples],
            questions,
            MostAttendedChoice(read.batch, words, choices),
        )


def _among(question: Question, pieces: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """The heads of the candidates; all words before the mention's head but its own."""
    own = question.mention
    heads = tuple(sorted({c.head for c in question.candidates}))
    earlier = tuple(w for w in range(min(own.first, own.head)) if pieces[w])
    return heads, earlier
