"""SentEval's probing tasks: one file for each, with the label of a sentence on every line.

    tr	PAST	`` He went home . ''
    te	PRES	He goes home .

The part (`tr`, `va` or `te`), the label and the sentence, its words separated by spaces. The name
of the file says which task it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers import Request
from bertology.data.readers.files import numbered_lines, read_text
from bertology.errors import DataError

_FIELDS = frozenset({Field.TEXT, Field.WORDS, Field.OFFSETS, Field.SENTENCE_LABELS})
_PARTS = {"tr": "train", "va": "validation", "te": "test"}
_TASKS: Mapping[str, str] = {
    "sentence_length": "length",
    "word_content": "word-content",
    "tree_depth": "depth",
    "top_constituents": "top-constituents",
    "bigram_shift": "bigram-shift",
    "past_present": "tense",
    "subj_number": "subject-number",
    "obj_number": "object-number",
    "odd_man_out": "odd-word",
    "coordination_inversion": "coordination",
}


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The sentences of a file that are of the part that is asked for; without one, all."""
    path, request = Path(source), Request.of(source, request)
    if path.stem not in _TASKS:
        raise DataError(
            f"{path.name}: this is no name of a task of SentEval.",
            hint=f"Files are called {', '.join(_TASKS)}, with .txt at the end.",
        )
    wanted = request.split if request.split in _PARTS.values() else None
    examples = [one for part, one in _examples(path) if wanted in (None, part)]
    if not examples:
        raise DataError(f"{path.name} has no sentence of the part {wanted!r}.")
    return Corpus(request.name, examples, _FIELDS, split=request.split)


def _examples(path: Path) -> Iterator[tuple[str, Example]]:
    """With the part that each belongs to."""
    task = _TASKS[path.stem]
    for number, line in numbered_lines(read_text(path)):
        if not line.strip():
            continue
        at = f"{path.name}, line {number}"
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != 3 or not all(cells):
            raise DataError(
                f"{at}: part, label and sentence are wanted, with tabs between, not {line[:60]!r}.",
                hint="Expected: tr, va or te, a tab, the label, a tab, the sentence.",
            )
        part, label, sentence = cells
        if part not in _PARTS:
            raise DataError(f"{at}: the part must be tr, va or te, not {part[:20]!r}.")
        words, offsets, end = sentence.split(), list[tuple[int, int]](), -1
        for word in words:
            start = end + 1
            end = start + len(word)
            offsets.append((start, end))
        about = {"words": words, "offsets": offsets, "sentence_labels": {task: label}}
        yield _PARTS[part], Example(f"{path.stem}-{number}", " ".join(words), annotations=about)
