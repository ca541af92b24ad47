"""What a study of fragments reads: the old task, the fragments, and what decides between models.

No text that is scored is learnt from or decides. All corpora have the labels of one task: three,
or two where one of them has two (`data/tasks.py`). What is asked again and again is
tokenized once for all seeds.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from bertology.errors import DataError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from bertology.data.corpus import Corpus, Example, Task
    from bertology.model.encoder import Encoder
    from bertology.train.history import OnStep
    from bertology.train.lessons import Exam
    from bertology.train.token_rows import Encoded
    from bertology.train.tuning import TuningJob

FEWEST = 10  # scored examples of a fragment; those with fewer are left out


@dataclass(frozen=True)
class Source:
    """Where the old task is read from."""

    name: str
    train: str  # splits
    scored: str
    examples: int | None  # to learn from
    scored_examples: int | None


@dataclass(frozen=True)
class FragmentData:
    """Corpora with the labels of one task."""

    fragments: tuple[str, ...]
    scored: Corpus  # examples of all fragments
    old_train: Corpus
    old_deciding: Corpus
    old_scored: Corpus
    pools: Mapping[str, Corpus] = field(default_factory=dict)  # to teach from, by fragment
    deciding: Mapping[str, Corpus] = field(default_factory=dict)

    @property
    def task(self) -> Task:
        """The task that all share."""
        assert self.scored.task is not None
        return self.scored.task

    def scored_of(self, fragment: str) -> Corpus:
        """The scored examples of one fragment, in their order."""
        kept = [e for e in self.scored if str(e.get("group")) == fragment]
        return replace(self.scored, examples=kept)

    def lesson(self, fragment: str, amount: int, seed: int) -> Corpus:
        """The first examples of a draw: a larger amount holds the smaller ones."""
        pool = self.pools[fragment]
        return replace(pool, examples=_shuffled(pool.examples, f"{fragment}-{seed}")[:amount])

    def to_mix(self, seed: int) -> Corpus:
        """Old examples, in the order in which they are mixed in."""
        return replace(self.old_train, examples=_shuffled(self.old_train.examples, f"mixed-{seed}"))


def found_fragments(corpus: Corpus, wanted: Collection[str] = ()) -> tuple[str, ...]:
    """The groups of a corpus that have enough examples; those that are wanted, in their order."""
    counts = Counter(str(e.get("group")) for e in corpus)
    known = sorted(name for name, count in counts.items() if count >= FEWEST)
    for name in wanted:
        if name not in counts:
            raise UnknownNameError(f"fragment of {corpus.name}", name, known)
        if name not in known:
            raise DataError(
                f"Fragment {name!r} of {corpus.name!r} has {counts[name]} examples; at least "
                f"{FEWEST} are needed."
            )
    if not known:
        raise DataError(
            f"No fragment of {corpus.name!r} has {FEWEST} examples.",
            hint="Give more examples (--limit).",
        )
    return tuple(wanted) or tuple(known)


def read_data(
    corpus: Corpus,
    old: Source,
    *,
    fragments: Collection[str] = (),
    most: int = 0,
    deciding: int = 100,
    train: str = "",
    train_split: str = "train",
) -> FragmentData:
    """All that is needed to teach at most `most` examples of each fragment; 0: none is taught."""
    from bertology.data.loading import load_corpus
    from bertology.data.tasks import has_neutral, inference_corpus

    chosen = found_fragments(corpus, fragments)
    root = corpus.origin.get("root")
    learnt = load_corpus(old.name, split=old.train, limit=old.examples, root=root)
    asked = load_corpus(old.name, split=old.scored, limit=old.scored_examples, root=root)
    three_way = all(has_neutral(one) for one in (corpus, learnt, asked))

    def in_labels(one: Corpus) -> Corpus:
        return inference_corpus(one, three_way=three_way)

    kept = [e for e in corpus if str(e.get("group")) in chosen]
    scored, old_scored = in_labels(replace(corpus, examples=kept)), in_labels(asked)
    old_deciding, old_train = _apart(in_labels(learnt), old_scored, deciding, 2)
    data = FragmentData(chosen, scored, old_train, old_deciding, old_scored)
    if not most:
        return data
    rows = in_labels(_teaching(corpus, most + deciding, train, train_split))
    pools, dev = dict[str, "Corpus"](), dict[str, "Corpus"]()
    for name in chosen:
        own = [e for e in rows if str(e.get("group")) == name]
        if not own:
            raise UnknownNameError(
                f"fragment of {rows.name} ({train_split})", name,
                sorted({str(e.get("group")) for e in rows}),
            )  # fmt: skip
        of = replace(rows, examples=own)
        dev[name], pools[name] = _apart(of, scored, deciding, most, what=f"fragment {name!r}")
    return replace(data, pools=pools, deciding=dev)


def _teaching(corpus: Corpus, each: int, train: str, split: str) -> Corpus:
    """What fragments are taught from; generated corpora are made as large as it needs."""
    from bertology.data.corpus import Field
    from bertology.data.grammar.corpora import CORPUS_NAMES
    from bertology.data.grammar.fragments import FRAGMENTS
    from bertology.data.loading import load_split

    made = (train or corpus.origin.get("name_or_path")) in CORPUS_NAMES
    limit = len(FRAGMENTS) * (each + 3) if made else None
    try:
        found = load_split(corpus, split, other=train, limit=limit)
    except UnknownNameError as error:
        raise DataError(
            f"{corpus.name!r} has no split {split!r} to teach its fragments from.",
            hint="Ask without teaching (--amounts 0), or name other data (--train, --train-split).",
        ) from error
    found.require(Field.GROUP)
    return found


def _apart(
    train: Corpus, scored: Corpus, deciding: int, needed: int, what: str = ""
) -> tuple[Corpus, Corpus]:
    """Training data in two, what decides and what is learnt from; nothing that is scored."""
    unseen = {e.texts for e in scored}
    usable = _shuffled([e for e in train if e.texts not in unseen], "deciding")
    if len(usable) < deciding + needed:
        raise DataError(
            f"{what or 'The old task'} has {len(usable)} examples to learn from in {train.name!r} "
            f"that are not scored; {deciding + needed} are needed, of which {deciding} decide.",
            hint="Teach less (--amounts), decide by less (--deciding), or name other data.",
        )
    return replace(train, examples=usable[:deciding]), replace(train, examples=usable[deciding:])


def _shuffled(examples: Sequence[Example], seed: str) -> list[Example]:
    found = list(examples)
    random.Random(seed).shuffle(found)
    return found


def hypotheses(corpus: Corpus) -> Corpus:
    """The second texts alone, with their labels."""
    from bertology.data.corpus import Field

    assert corpus.task is not None
    examples = [replace(e, text=str(e.get("text_b")), text_b=None) for e in corpus]
    fields = corpus.fields - {Field.TEXT_B}
    return replace(corpus, examples=examples, fields=fields, task=replace(corpus.task, pair=False))


class Classroom:
    """The data in tokens, and the model that learnt the old task with the last seed asked for."""

    def __init__(self, data: FragmentData, encoder: Encoder, limit: int | None) -> None:
        self.data, self.encoder, self._limit = data, encoder, limit
        self._exams: dict[str, tuple[Encoded, Encoded]] = {}
        self._whole: tuple[str, Encoder] | None = None

    def old_model(self, job: TuningJob, folder: Path | None, progress: OnStep) -> Encoder:
        """The model that knows the old task: from the folder, or trained into it."""
        from bertology.train.iterative_pruning import tuned_encoder

        if self._whole is None or self._whole[0] != job.identity:
            self._whole = job.identity, tuned_encoder(job, folder, progress=progress)
        return self._whole[1]

    def exam(self, fragment: str) -> Exam:
        """What is asked of a model that was taught a fragment."""
        from bertology.train.lessons import Exam

        if fragment not in self._exams:
            decides = self.encoded(self.data.deciding[fragment])
            self._exams[fragment] = decides, self.encoded(self.data.scored_of(fragment))
        decides, scored = self._exams[fragment]
        return Exam(self.data.task, decides, self._old[0], scored, self._old[1])

    @cached_property
    def scored(self) -> Encoded:
        """All fragments."""
        return self.encoded(self.data.scored)

    @cached_property
    def _old(self) -> tuple[Encoded, Encoded]:
        return self.encoded(self.data.old_deciding), self.encoded(self.data.old_scored)

    @property
    def old_scored(self) -> Encoded:
        """The old task."""
        return self._old[1]

    def encoded(self, corpus: Corpus) -> Encoded:
        """A corpus in this model's tokens."""
        from bertology.train.encoded import encode

        return encode(corpus, self.encoder.tokenizer, self._limit)
