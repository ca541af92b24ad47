"""Taggers for corpora without annotation: words in, parts of speech and subjects/objects out.

The bundled one is a linear probe on a middle layer of `bertology-mini`, trained on the English Web
Treebank by `benchmarks/train_tagger.py`; it needs nothing from outside. spaCy and stanza are used
where they are asked for and installed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Protocol, TypedDict

from bertology.annotated.words import word_batches
from bertology.data.corpus import Corpus, Example, Field
from bertology.data.words.classes import OBJECT, SUBJECT
from bertology.data.words.piece_words import word_spans
from bertology.data.words.treebank_words import treebank_words
from bertology.errors import DataError, MissingExtraError, ModelError, UnknownNameError

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.model.encoder import Encoder

BUNDLED = Path(__file__).parents[1] / "checkpoints" / "tagger"
SPACY_PIPELINE = "en_core_web_sm"
RECORD, WEIGHTS = "tagger.json", "tagger.safetensors"
ROLES = ("", SUBJECT, OBJECT)
ADDED = frozenset({Field.WORDS, Field.POS, Field.TAGS})
"""What every example carries after it was tagged."""


@dataclass(frozen=True)
class Tags:
    """What a tagger says of one sentence, an entry for each word."""

    pos: tuple[str, ...]  # universal part-of-speech tags
    roles: tuple[str, ...]  # of ROLES


class Tagger(Protocol):
    """Anything that can tag sentences that are given as words."""

    @property
    def name(self) -> str:
        """Who tagged, with the version; kept in results."""

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[Tags]:
        """Tags of each sentence."""


def word_states(
    encoder: Encoder, sentences: Sequence[Sequence[str]], layer: int, *, batch_tokens: int = 4096
) -> list[Tensor]:
    """The state (words, hidden) after `layer` at the first piece of each word, by sentence.

    A word that truncation cut off, or that has no piece at all, has a state of zeros.
    """
    import torch

    site = f"layer.{layer}.residual"
    corpus = [
        Example(str(i), " ".join(words), annotations={Field.WORDS: words})
        for i, words in enumerate(sentences)
    ]
    found: list[Tensor] = [torch.empty(0)] * len(corpus)
    for read in word_batches(encoder, corpus, tokens_per_batch=batch_tokens):
        states = encoder.run(read.batch, record=site)[site].float().cpu()
        real = read.batch.real.cpu()
        for row, (index, one) in enumerate(zip(read.batch.indices, read.examples, strict=True)):
            kept, alignment = states[row][real[row]], one.alignment
            out = torch.zeros(len(alignment), kept.shape[-1])
            for word in range(len(alignment)):
                if pieces := alignment.overlapping(word):
                    out[word] = kept[pieces[0]]
            found[index] = out
    return found


class _Record(TypedDict):
    """What we read of a tagger's record."""

    model: str
    fingerprint: str
    layer: int
    tags: list[str]
    roles: list[str]


class ProbeTagger:
    """Two linear probes on one layer of one model: 17 universal tags, and subject/object/neither.

    It works only for the model it was trained on; its record has the fingerprint of that model.
    """

    def __init__(self, folder: str | Path = BUNDLED, encoder: Encoder | None = None) -> None:
        from safetensors.torch import load_file

        from bertology.model.encoder import Encoder

        where = Path(folder)
        if not (where / RECORD).is_file() or not (where / WEIGHTS).is_file():
            raise ModelError(
                f"There is no tagger in {where.name!r}: it needs {RECORD} and {WEIGHTS}.",
                hint="Train one with: python benchmarks/train_tagger.py --data FOLDER",
            )
        self.record: _Record = json.loads((where / RECORD).read_text(encoding="utf-8"))
        self.encoder = encoder or Encoder.load(self.record["model"], device="cpu")
        if self.encoder.fingerprint != self.record["fingerprint"]:
            raise ModelError(
                f"The tagger was trained on other weights ({self.record['fingerprint']}) than "
                f"{self.encoder.name!r} has ({self.encoder.fingerprint}).",
                hint="Train it again for this model: python benchmarks/train_tagger.py "
                "--data FOLDER",
            )
        self._weights: dict[str, Tensor] = load_file(where / WEIGHTS)

    @property
    def name(self) -> str:
        """Which probe it is, by the weights it was made for."""
        return f"probe on {self.record['model']} ({self.record['fingerprint']})"

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[Tags]:
        """Tags of each sentence."""
        states = word_states(self.encoder, sentences, int(self.record["layer"]))
        return [
            Tags(
                tuple(self.record["tags"][i] for i in self._answers(x, "pos")),
                tuple(self.record["roles"][i] for i in self._answers(x, "role")),
            )
            for x in states
        ]

    def _answers(self, states: Tensor, probe: str) -> list[int]:
        scores = states @ self._weights[f"{probe}.weight"].T + self._weights[f"{probe}.bias"]
        answers: list[int] = scores.argmax(-1).tolist()
        return answers


class SpacyTagger:
    """spaCy's tagger and parser, on words that are already split."""

    def __init__(self, pipeline: str = SPACY_PIPELINE) -> None:
        self._spacy = _optional("spacy")
        self._run = self._spacy.load(pipeline)
        self.name = f"spaCy {self._spacy.__version__}, {pipeline}"

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[Tags]:
        """Tags of each sentence."""
        doc = import_module("spacy.tokens").Doc
        done = [self._run(doc(self._run.vocab, words=list(words))) for words in sentences]
        return [Tags(tuple(t.pos_ for t in one), tuple(_role(t.dep_) for t in one)) for one in done]


class StanzaTagger:
    """Stanza's tagger and parser, on words that are already split."""

    def __init__(self, language: str = "en") -> None:
        stanza = _optional("stanza")
        steps = "tokenize,pos,lemma,depparse"
        self._run = stanza.Pipeline(
            language, processors=steps, tokenize_pretokenized=True, verbose=False
        )
        self.name = f"stanza {stanza.__version__}, {language}"

    def tag(self, sentences: Sequence[Sequence[str]]) -> list[Tags]:
        """Tags of each sentence."""
        done = [self._run([list(words)]).sentences[0].words for words in sentences]
        return [
            Tags(tuple(w.upos for w in one), tuple(_role(w.deprel) for w in one)) for one in done
        ]


def _role(relation: str) -> str:
    """Universal Dependencies and spaCy's older names for the same."""
    if relation.partition(":")[0] in ("nsubj", "nsubjpass"):
        return SUBJECT
    return OBJECT if relation in ("obj", "dobj") else ""


def _optional(library: str) -> ModuleType:
    try:
        return import_module(library)
    except ImportError:
        raise MissingExtraError(library, needed_for=f"Tagging with {library}") from None


TAGGERS: dict[str, Callable[[], Tagger]] = {
    "bundled": ProbeTagger,
    "spacy": SpacyTagger,
    "stanza": StanzaTagger,
}


@cache
def find_tagger(name: str = "bundled") -> Tagger:
    """The tagger called `name`; each is loaded once."""
    if name not in TAGGERS:
        raise UnknownNameError("tagger", name, TAGGERS)
    return TAGGERS[name]()


def annotate(corpus: Corpus, tagger: Tagger | None = None) -> Corpus:
    """The corpus with words, offsets, parts of speech and subject/object labels (TAGS) added.

    Its origin is gone, because loading it again would give it without them; `keep` writes it to a
    file that workers can load.
    """
    tagger = tagger or find_tagger()
    examples = [_split(example) for example in corpus]
    # Each text of a pair is a sentence of its own: a tagger knows nothing of [SEP].
    cuts = [_texts_in_words(example) for example in examples]
    tagged = iter(tagger.tag([words for texts in cuts for words in texts]))
    done = []
    for example, texts in zip(examples, cuts, strict=True):
        found = [next(tagged) for _ in texts]
        about = {
            **example.annotations,
            Field.POS.value: [tag for one in found for tag in one.pos],
            Field.TAGS.value: [role for one in found for role in one.roles],
        }
        if len(about[Field.POS.value]) != len(about[Field.WORDS.value]):
            raise DataError(f"{tagger.name} gave example {example.id!r} another number of words.")
        done.append(replace(example, annotations=about))
    offsets = {Field.OFFSETS} if all(Field.OFFSETS in e.annotations for e in done) else set()
    fields = corpus.fields | ADDED | offsets
    return replace(corpus, examples=done, fields=fields, origin={})


def _split(example: Example) -> Example:
    """The example with its words and where they stand; a pair's are counted through.

    Words that an example has stay as they are: its other annotation counts by them.
    """
    if Field.WORDS in example.annotations:
        return example
    words, offsets, shift = [], [], 0
    for text in example.texts:
        for start, end in treebank_words(text):
            words.append(_form(text[start:end]))
            offsets.append([shift + start, shift + end])
        shift += len(text) + 1
    about = {**example.annotations, Field.WORDS.value: words, Field.OFFSETS.value: offsets}
    return replace(example, annotations=about)


def _texts_in_words(example: Example) -> list[list[str]]:
    return [
        [_form(text[a:b]) for a, b in of_text]
        for text, of_text in zip(example.texts, word_spans(example), strict=True)
    ]


def _form(written: str) -> str:
    """A word without the spaces that a corpus put into it (n 't)."""
    return "".join(written.split())


def keep(corpus: Corpus, path: str | Path) -> Corpus:
    """Write an annotated corpus as JSON Lines and load it from there, so that workers can too."""
    from bertology.data.loading import load_corpus

    where = Path(path)
    for example in corpus:
        if any(text != text.strip() for text in example.texts):
            raise DataError(
                f"The text of example {example.id!r} begins or ends with white space, which "
                "JSON Lines of examples do not keep.",
                hint="Strip the texts before they are annotated.",
            )
    where.parent.mkdir(parents=True, exist_ok=True)
    where.write_text("".join(_line(e) for e in corpus), encoding="utf-8")
    return load_corpus(where)


def _line(example: Example) -> str:
    values: dict[str, object] = {"id": example.id, "text": example.text}
    values |= {} if example.text_b is None else {"text_b": example.text_b}
    values |= {} if example.label is None else {"label": example.label}
    return json.dumps(values | dict(example.annotations), ensure_ascii=False) + "\n"
