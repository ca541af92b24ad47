"""A student with a small vocabulary, which its teacher learns to read too (Zhao et al. 2019).

The embeddings of a small model are most of it. The student's WordPieces are made anew from the
task's texts. In dual training the teacher reads each word cut by either vocabulary, at random: so
the vectors of the small pieces come to lie in the teacher's own space, and the student begins with
them. The paper does this in pre-training, with student and teacher in one run and projections of
all weights between them; here the teacher is trained on the task, and teaches by soft labels after.

    small = small_tokenizer(train, tokenizer, pieces=2000)
    dual = dual_teacher(model, tokenizer, small, train, validation, settings=settings)
    student = small_student(dual, tokenizer, small, StudentShape(layers=3))
    way = SoftLabels(Teacher(dual, tokenizer))
    finetune(student, small, train, validation, settings=FinetuneSettings(ways=(way,)))
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from bertology.data.corpus import Corpus
from bertology.errors import CapabilityError
from bertology.parameters import parameter
from bertology.train.distil.students import StudentShape, make_student
from bertology.train.finetune import FinetuneSettings, finetune
from bertology.train.fit import row_limit
from bertology.train.history import OnStep
from bertology.train.memory import Memory
from bertology.train.protocols import Tokenizer
from bertology.train.vocabulary import wordpieces
from bertology.train.ways.way import Lesson, Way

_CHECKED = 100  # texts


def small_tokenizer(corpus: Corpus, like: Tokenizer, *, pieces: int) -> Tokenizer:
    """At most so many WordPieces of the corpus's texts, in the case of another tokenizer."""
    settings = json.loads(like.backend_tokenizer.to_str()).get("normalizer") or {}
    lines = [text for example in corpus for text in example.texts]
    return wordpieces(
        lambda: lines,
        vocab_size=pieces,
        max_length=like.model_max_length,
        lowercase=bool(settings.get("lowercase", False)),
    )


def dual_teacher(
    model: Any,
    tokenizer: Tokenizer,
    small: Tokenizer,
    train: Corpus,
    validation: Corpus,
    *,
    settings: FinetuneSettings | None = None,
    share: float = 0.5,
    memory: Memory | None = None,
    progress: OnStep = lambda step: None,
) -> Any:
    """A copy of a fine-tuned model that was trained on with both vocabularies.

    Its table has a row for each small piece after its own, which `small_student` takes; with its
    own tokenizer it is read as before.
    """
    found = copy.deepcopy(model)
    found.requires_grad_(True)
    own = len(found.get_input_embeddings().weight)
    _add_rows(found, tokenizer, small)
    chosen = settings or FinetuneSettings()
    ways = (*chosen.ways, SmallVocabulary(small, own, share=share))
    finetune(
        found,
        tokenizer,
        train,
        validation,
        settings=replace(chosen, ways=ways, recorded=False),
        memory=memory,
        progress=progress,
    )
    return found


def small_student(
    dual: Any,
    tokenizer: Tokenizer,
    small: Tokenizer,
    shape: StudentShape | None = None,
    *,
    start: str = "layers",
    which: str = "even",
    seed: int = 0,
) -> Any:
    """A student that reads small pieces, whose vectors the dual teacher learnt."""
    own = len(dual.get_input_embeddings().weight) - len(small)
    rows = {i: own + i for i in range(len(small))}
    # Marks of rows are those that the teacher always reads.
    there, special = tokenizer.get_vocab(), set(small.all_special_ids)
    rows |= {i: there[p] for p, i in small.get_vocab().items() if i in special and p in there}
    return make_student(
        dual, shape, start=start, which=which, seed=seed, tokenizer=small, rows=rows
    )


@dataclass(frozen=True)
class SmallVocabulary(Way):
    """Trained: everything, on rows whose words are cut by one of two vocabularies at random."""

    recordable: ClassVar[bool] = False  # rows are as long as their words happen to be cut
    order: ClassVar[int] = 3

    small: Tokenizer = field(repr=False, compare=False)
    first: int
    """The row of the first small piece in the model's table."""
    share: float = parameter(0.5, "Share of words cut by the small one.", minimum=0, maximum=1)

    @property
    def text(self) -> str:
        """As it is written."""
        return f"{self.name}:first={self.first},share={self.share:g}"

    def ingredients(self, train: Corpus) -> dict[str, str]:
        """The small vocabulary."""
        pieces = json.dumps(sorted(self.small.get_vocab().items()))
        return {"small vocabulary": sha256(pieces.encode()).hexdigest()[:16]}

    def prepare(self, lesson: Lesson) -> None:
        """Cut all words by both."""
        limit = row_limit(lesson.model, lesson.tokenizer, lesson.max_length)
        lesson.kept[self.name] = _Words(lesson, self, limit)

    def inputs(self, lesson: Lesson, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """The same texts, cut anew."""
        words: _Words = lesson.kept[self.name]
        found = words.rows(lesson.moment.chosen)
        where = inputs["input_ids"].device
        return {name: value.to(where) for name, value in found.items() if name in inputs}

    def finish(self, lesson: Lesson) -> None:
        """Let go of the words."""
        lesson.kept.pop(self.name, None)


class _Words:
    """The texts of a corpus as words, each cut by both vocabularies."""

    def __init__(self, lesson: Lesson, way: SmallVocabulary, limit: int | None) -> None:
        self.way, self.limit, self.tokenizer = way, limit, lesson.tokenizer
        self.cuts: dict[str, tuple[list[int], list[int]]] = {}
        self.texts = [
            [list(self._words(text)) for text in example.texts] for example in lesson.train
        ]
        self._check(lesson.train)

    def _words(self, text: str) -> Iterator[str]:
        backend: Any = self.tokenizer.backend_tokenizer
        plain = backend.normalizer.normalize_str(text) if backend.normalizer else text
        for word, _ in backend.pre_tokenizer.pre_tokenize_str(plain):
            if word not in self.cuts:
                own, small = (_pieces(t, word) for t in (self.tokenizer, self.way.small))
                self.cuts[word] = (own, [self.way.first + i for i in small])
            yield word

    def _check(self, corpus: Corpus) -> None:
        """Words that are cut alone must be cut as they are in their text."""
        for example, parts in zip(corpus[:_CHECKED], self.texts, strict=False):
            for text, words in zip(example.texts, parts, strict=True):
                if _pieces(self.tokenizer, text) == [i for w in words for i in self.cuts[w][0]]:
                    continue
                raise CapabilityError(
                    "The teacher's tokenizer does not cut words by themselves, so that they cannot "
                    "be cut by either of two vocabularies.",
                    hint="A WordPiece tokenizer, such as BERT's, does.",
                )

    def rows(self, chosen: Sequence[int]) -> dict[str, Tensor]:
        """Rows of these examples, drawn anew, padded on the right."""
        tokens: Any = self.tokenizer
        made = []
        for i in chosen:
            parts = [self._cut(words) for words in self.texts[i]]
            # The longer of two texts loses its end first
            most = None if self.limit is None else self.limit - 1 - len(parts)
            while most is not None and sum(map(len, parts)) > most:
                max(parts, key=len).pop()
            row, kinds = [tokens.cls_token_id], [0]
            for kind, part in enumerate(parts):
                row += [*part, tokens.sep_token_id]
                kinds += [kind] * (len(part) + 1)
            made.append((row, kinds))
        longest = max(len(row) for row, _ in made)
        ids = torch.full((len(made), longest), tokens.pad_token_id)
        types, mask = torch.zeros_like(ids), torch.zeros_like(ids)
        for b, (row, kinds) in enumerate(made):
            ids[b, : len(row)], types[b, : len(row)] = torch.tensor(row), torch.tensor(kinds)
            mask[b, : len(row)] = 1
        return {"input_ids": ids, "token_type_ids": types, "attention_mask": mask}

    def _cut(self, words: Sequence[str]) -> list[int]:
        by_small = (torch.rand(len(words)) < self.way.share).tolist()
        return [
            i for word, small in zip(words, by_small, strict=True) for i in self.cuts[word][small]
        ]


def _pieces(tokenizer: Any, text: str) -> list[int]:
    """The pieces of a text, without marks, and whole."""
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def _add_rows(model: Any, tokenizer: Tokenizer, small: Tokenizer) -> None:
    """A row for each small piece: that of the same piece, or the mean of those it is cut into."""
    table: nn.Embedding = model.get_input_embeddings()
    there = tokenizer.get_vocab()
    with torch.no_grad():
        new = []
        for piece, _ in sorted(small.get_vocab().items(), key=lambda pair: pair[1]):
            if piece in there:
                new.append(table.weight[there[piece]])
                continue
            rows = _pieces(tokenizer, piece.removeprefix("##")) or [there[tokenizer.unk_token]]
            new.append(table.weight[rows].mean(0))
        whole = torch.cat([table.weight, torch.stack(new)])
    larger = nn.Embedding(len(whole), whole.shape[1], table.padding_idx)
    larger.weight = nn.Parameter(whole)
    model.set_input_embeddings(larger.to(table.weight.device))
    model.config.vocab_size = len(whole)
