"""Words in sentences, and what each means there: WiC, CoarseWSD-20, SemCor."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from html import unescape
from pathlib import Path
from typing import Any

from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.data.readers import MissingSplitError, Request
from bertology.data.readers.csv import tab_separated
from bertology.data.readers.files import numbered_lines, read_text
from bertology.data.readers.jsonl import objects, whole
from bertology.data.readers.labels import parse_label
from bertology.data.readers.mentions import spaced, words_at
from bertology.data.words.alignment import Span
from bertology.data.words.inflections import find_word
from bertology.data.words.targets import TARGETED, targeted_pair
from bertology.data.words.treebank_words import treebank_text, treebank_words
from bertology.errors import DataError, UnknownNameError

_TASK = Task("wic", "classification", ("false", "true"), ("accuracy",), pair=True)
_PROMPT = re.compile(r"Word:\s*(\S.*?)\.\s+Sentence 1:\s*(\S.*?)\s+Sentence 2:\s*(\S.*)", re.DOTALL)


def read_wic(source: str | Path, request: Request | None = None) -> Corpus:
    """WiC, the word in context: does a word mean the same in two sentences?

    Objects on lines, in one of two forms:

        {"word": "bed", "sentence1": "…", "sentence2": "…", "start1": 3, "end1": 6, "start2": 0,
         "end2": 4, "label": true, "idx": 0}                                      (as in SuperGLUE)
        {"text": "Word: bed. Sentence 1: … Sentence 2: …", "label": 1}

    TARGETS are the words at those characters. The second form has no characters: there the target
    is the first word that is the lemma, or else the first that may be a form of it, and the
    sentences, which are cut into words, are written as plain text. GROUP is the word that is asked
    about.

    The pairs of a .jsonl file; without labels where none of its lines has one.
    """
    path, request = Path(source), Request.of(source, request)
    rows = objects(path)
    labelled = any("label" in row.values for row in rows)
    task = request.task or _TASK
    examples = []
    for i, row in enumerate(rows):
        at = f"{path.name}, line {row.line}"
        label = parse_label(row.values.get("label"), task, at) if labelled else None
        make = _of_prompt if "text" in row.values else _of_characters
        examples.append(make(str(i), row.values, label, at))
    fields = TARGETED | {Field.GROUP} | ({Field.LABEL} if labelled else set())
    return Corpus(request.name, examples, fields, task if labelled else None, request.split)


def _of_characters(
    name: str, row: Mapping[str, Any], label: int | float | None, at: str
) -> Example:
    for key in ("word", "sentence1", "sentence2"):
        if not isinstance(row.get(key), str) or not row[key].strip():
            raise DataError(
                f"{at}: there is no {key}.",
                hint="Expected word, sentence1, sentence2, start1, end1, start2, end2, label; or "
                "label and text: “Word: … Sentence 1: … Sentence 2: …”.",
            )
    texts = (row["sentence1"], row["sentence2"])
    words = [treebank_words(text) for text in texts]
    targets = [
        words_at(spans, _span(row, which, len(text), at), at)
        for which, text, spans in zip("12", texts, words, strict=True)
    ]
    return targeted_pair(name, texts, words, targets, label=label, more={"group": row["word"]})


def _span(row: Mapping[str, Any], which: str, length: int, at: str) -> Span:
    start, end = row.get(f"start{which}"), row.get(f"end{which}")
    whole = all(isinstance(n, int) and not isinstance(n, bool) for n in (start, end))
    if not whole or start is None or end is None or not 0 <= start < end <= length:
        raise DataError(
            f"{at}: start{which} and end{which} must be the characters of the word in sentence "
            f"{which}, not {start!r:.20} and {end!r:.20}."
        )
    return start, end


def _of_prompt(name: str, row: Mapping[str, Any], label: int | float | None, at: str) -> Example:
    found = _PROMPT.fullmatch(row["text"].strip()) if isinstance(row["text"], str) else None
    if found is None:
        raise DataError(
            f"{at}: the text is {row['text']!r:.60}.",
            hint="Expected: “Word: bed. Sentence 1: … Sentence 2: …”.",
        )
    lemma = found[1]
    texts, words, targets = list[str](), list[list[Span]](), list[Span]()
    for number in (2, 3):
        text, spans = treebank_text(found[number].split())
        place = find_word(lemma, [text[a:b] for a, b in spans])
        if place is None:
            raise DataError(
                f"{at}: no form of {lemma!r:.40} is found in sentence {number - 1}.",
                hint="Say where it is: sentence1, start1, end1, … as in SuperGLUE.",
            )
        texts.append(text)
        words.append(spans)
        targets.append((place, place + 1))
    both = (texts[0], texts[1])
    return targeted_pair(name, both, words, targets, label=label, more={"group": lemma})


_COARSEWSD_FIELDS = frozenset({Field.TEXT, Field.WORDS, Field.OFFSETS, Field.SENSES, Field.GROUP})
_MAP = "classes_map.txt"


def read_coarsewsd(source: str | Path, request: Request | None = None) -> Corpus:
    """CoarseWSD-20 (Loureiro et al. 2021): 20 nouns in sentences of Wikipedia, with coarse senses.

    A folder has a folder for each noun: `classes_map.txt` names the senses by number,
    `train.data.txt` has a sentence on each line after the position of the noun and a tab,
    `train.gold.txt` the number of its sense; `test` likewise. The out-of-domain sentences are one
    file:

        club	club_club	5	Could an employee 's garden club take over … ?

    In it, four sentences have "president" for the noun "chair". SENSES have the noun ("club.n") and
    the name of its sense ("club", "nightclub", "club_(weapon)"), GROUP is the noun.

    One split of a folder of nouns, of one of them, or the sentences of a .tsv file.
    """
    path, request = Path(source), Request.of(source, request)
    if path.is_file():
        examples = list(_of_table(path))
    else:
        examples = list(_of_folder(path, request.split or "train"))
    return Corpus(request.name, examples, _COARSEWSD_FIELDS, split=request.split)


def _of_folder(path: Path, split: str) -> Iterator[Example]:
    nouns = [path] if (path / _MAP).is_file() else sorted(f.parent for f in path.glob(f"*/{_MAP}"))
    if not nouns:
        raise DataError(
            f"{path} has no folder with a {_MAP}.",
            hint="Expected a folder for each noun, as in CoarseWSD-20.",
        )
    for noun in nouns:
        data, gold = (noun / f"{split}.{kind}.txt" for kind in ("data", "gold"))
        for file in (data, gold):
            if not file.is_file():
                raise MissingSplitError(f"{noun} has no file {file.name} (split {split!r}).")
        yield from _of_noun(noun, data, gold)


def _of_noun(noun: Path, data: Path, gold: Path) -> Iterator[Example]:
    senses = whole(noun / _MAP)
    if not isinstance(senses, dict) or not all(isinstance(name, str) for name in senses.values()):
        raise DataError(f"{noun.name}/{_MAP} must map numbers to the names of senses.")
    lines, numbers = (_lines(file) for file in (data, gold))
    if len(lines) != len(numbers):
        raise DataError(
            f"{noun.name}: {data.name} has {len(lines)} sentences and {gold.name} {len(numbers)}."
        )
    for i, (line, number) in enumerate(zip(lines, numbers, strict=True), start=1):
        at = f"{noun.name}/{data.name}, line {i}"
        place, _, text = line.partition("\t")
        if number.strip() not in senses:
            raise DataError(f"{at}: its sense {number.strip()!r:.20} is not in {_MAP}.")
        sense = senses[number.strip()]
        yield _coarsewsd_example(f"{noun.name}-{i - 1}", noun.name, sense, place, text, at)


def _lines(file: Path) -> list[str]:
    found = [line for _, line in numbered_lines(read_text(file))]
    return found if found[-1].strip() else found[:-1]


def _of_table(path: Path) -> Iterator[Example]:
    for i, (line, cells) in enumerate(tab_separated(path)):
        at = f"{path.name}, line {line}"
        if len(cells) != 4:
            raise DataError(
                f"{at}: {len(cells)} cells where 4 are wanted.",
                hint="Expected, with tabs between: noun, sense, position of the noun, sentence.",
            )
        noun, sense, place, text = cells
        yield _coarsewsd_example(f"{noun}-{i}", noun, sense, place, text, at)


def _coarsewsd_example(name: str, noun: str, sense: str, place: str, text: str, at: str) -> Example:
    # Positions count what any white space separates; a few sentences have two spaces, or others.
    words = text.split()
    target = int(place) if place.isascii() and place.isdigit() and len(place) < 9 else -1
    if not 0 <= target < len(words):
        raise DataError(
            f"{at}: {place!r:.20} is no position of a word, and there are {len(words)} words.",
            hint="Expected: the position from 0, a tab, the sentence.",
        )
    written, offsets = spaced(words)
    short = sense.removeprefix(f"{noun}_")
    if not noun or not short:
        raise DataError(f"{at}: the sense is {sense!r:.40}, which has no name.")
    about = {
        "words": words,
        "offsets": offsets,
        "senses": [[target, target + 1, f"{noun}.n", short]],
        "group": noun,
    }
    return Example(name, written, annotations=about)


_SEMCOR_FIELDS = frozenset({Field.TEXT, Field.WORDS, Field.OFFSETS, Field.SENSES, Field.GROUP})
_SPLITS = ("train", "test")
_HELD_OUT = 5  # one document of so many
_WORD = re.compile(r"<(wf|punc)((?:\s[^<>]*)?)>([^<>]*)</\1>")
_ATTRIBUTE = re.compile(r"""(\w+)=(?:"([^"]*)"|([^\s">]+))""")
_FRAME = re.compile(r"</?(?:contextfile|context|p)(?:\s[^<>]*)?>")
_SENTENCE = re.compile(r"<s(?:\s[^<>]*)?>")
# The first number of WordNet's keys; 5 are adjectives that go with another one.
_PARTS_OF_SPEECH = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}
_KEY = re.compile(r"([1-5]):\d\d:\d\d:[^\s:]*:(?:\d\d)?")


def read_semcor(source: str | Path, request: Request | None = None) -> Corpus:
    """SemCor in its own format: a file for each document, a word on each line, with its sense.

        <s snum="1">
        <wf cmd="ignore" pos="DT">The</wf>
        <wf cmd="done" pos="NN" lemma="grand_jury" wnsn="1" lexsn="1:14:00::">grand_jury</wf>
        <punc>.</punc>
        </s>

    Older copies have no quotes around values. A sentence is an example, its document is the GROUP.
    SENSES have lemma and part of speech ("grand_jury.n") and WordNet's key
    ("grand_jury%1:14:00::"); of several keys, the first. What is joined by "_" is several words
    with one sense. Names that stand for a kind of thing (pn="person") have that kind as their
    lemma, not themselves, so they have no sense here. In the documents brownv only verbs have
    senses.

    The split "test" has a fifth of the documents, by a hash of their names; "train" has the others.

    The sentences of a document, or of the documents of one split in a folder.
    """
    path, request = Path(source), Request.of(source, request)
    files = _documents(path, request.split) if path.is_dir() else [path]
    examples = [example for file in files for example in _sentences(file)]
    if not examples:
        raise DataError(f"{path} has no sentence in SemCor's format.")
    return Corpus(request.name, examples, _SEMCOR_FIELDS, split=request.split)


def split_of_document(name: str) -> str:
    """The split of a document, by its file's name, whatever other documents there are."""
    return _SPLITS[zlib.crc32(name.encode()) % _HELD_OUT == 0]


def _documents(folder: Path, split: str | None) -> list[Path]:
    if split not in (None, "all", *_SPLITS):
        raise UnknownNameError("split of SemCor", split, ("all", *_SPLITS))
    files = [f for f in sorted(folder.iterdir()) if f.is_file() and not f.name.startswith(".")]
    # The published folder has two documents without a byte.
    there = [f for f in files if f.stat().st_size]
    return [f for f in there if split in (None, "all", split_of_document(f.name))]


def _sentences(path: Path) -> Iterator[Example]:
    words, senses, begun = list[str](), list[list[object]](), 0
    count = 0
    for number, line in numbered_lines(read_text(path)):
        at, line = f"{path.name}, line {number}", line.strip()
        if found := _WORD.fullmatch(line):  # first, as nearly all lines are words
            if not begun:
                raise DataError(f"{at}: a word stands outside of all sentences.")
            _add(words, senses, found, at)
        elif _SENTENCE.fullmatch(line):
            if begun:
                raise DataError(f"{at}: a sentence begins inside the one of line {begun}.")
            words, senses, begun = [], [], number
        elif line == "</s>":
            if not begun:
                raise DataError(f"{at}: a sentence ends here and begins nowhere.")
            if words:
                yield _semcor_example(f"{path.name}-{count}", words, senses, path.name)
                count += 1
            begun = 0
        elif line and not _FRAME.fullmatch(line):
            raise DataError(
                f"{at}: {line[:60]!r} is no line of SemCor.",
                hint='Expected: a word in <wf …>, or one of <punc>, <s snum="1">, </s>, <p …>, '
                "</p>, <context …>, <contextfile …>.",
            )
    if begun:
        raise DataError(f"{path.name}: the sentence of line {begun} never ends.")


def _add(words: list[str], senses: list[list[object]], found: re.Match[str], at: str) -> None:
    kind, given, written = found.groups()
    parts = [part for part in unescape(written).split("_") if part.strip()]
    if not parts:
        raise DataError(f"{at}: the word is empty.")
    first = len(words)
    words += parts
    if "lexsn" not in given:
        return
    about = {name: quoted or bare for name, quoted, bare in _ATTRIBUTE.findall(given)}
    lemma, key = (about.get(name) for name in ("lemma", "lexsn"))
    if kind == "punc" or "pn" in about or not lemma or not key:
        return
    key = key.partition(";")[0]
    number = _KEY.fullmatch(key)
    if number is None:
        raise DataError(
            f"{at}: lexsn is {key[:40]!r}, which is no sense of WordNet.",
            hint="Expected the part of its key after %, such as 1:04:00::.",
        )
    name = unescape(lemma)
    of_speech = _PARTS_OF_SPEECH[number[1]]
    senses.append([first, len(words), f"{name}.{of_speech}", f"{name}%{key}"])


def _semcor_example(
    name: str, words: list[str], senses: list[list[object]], document: str
) -> Example:
    text, offsets = treebank_text(words)
    about = {
        "words": [text[a:b] for a, b in offsets],
        "offsets": offsets,
        "senses": senses,
        "group": document,
    }
    return Example(name, text, annotations=about)
