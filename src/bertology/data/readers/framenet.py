"""FrameNet: example sentences with the words that evoke a frame and the elements it has there.

Releases 1.5 and 1.7 are read through NLTK, from a folder that has `frameIndex.xml`, from NLTK's own
data, or (with `download`) fetched by NLTK. A file of one sentence per line is read as well:

    {"sent_id": …, "lu": "copy.v", "frame": "Duplication", "text": "He copied it .",
     "target": [[3, 8]], "fe": [["Creator", 0, 1, "Core"], ["Original", 10, 11, "Core"]]}

with inclusive characters, as in FrameNet's XML. Texts are cut into words at white space, which is
how FrameNet writes them; only core elements that stand in the text are kept as roles. Examples
without a target, or without a core element, are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

from bertology.data.corpus import Corpus, Example, Field
from bertology.data.readers import Request
from bertology.data.readers.jsonl import objects
from bertology.data.words.alignment import Span, split_words
from bertology.errors import DataError

_FIELDS = frozenset(
    {
        Field.TEXT, Field.WORDS, Field.OFFSETS, Field.FRAME, Field.PREDICATE, Field.ROLES,
        Field.GROUP,
    }
)  # fmt: skip
_INDEX = "frameIndex.xml"
_FILES = ["frRelation.xml", _INDEX, "fulltextIndex.xml", "luIndex.xml", "semTypes.xml"]
_CORE = "Core"
Elements = list[tuple[str, Span]]


def read(source: str | Path, request: Request | None = None) -> Corpus:
    """The example sentences of a FrameNet folder, of NLTK's copy, or of a .jsonl file."""
    request = Request.of(source, request)
    path = _locate(Path(source), request)
    found = _lines(path) if path.is_file() else _release(path)
    examples = list(_numbered(example for example in found if example is not None))
    if not examples:
        raise DataError(f"{path} has no sentence with a predicate and a core element.")
    return Corpus(request.name, examples, _FIELDS, split=request.split)


def _numbered(examples: Iterable[Example]) -> Iterator[Example]:
    """A few sentences are annotated twice for the same unit; the second gets its own id."""
    seen: Counter[str] = Counter()
    for example in examples:
        seen[example.id] += 1
        again = seen[example.id]
        yield example if again == 1 else replace(example, id=f"{example.id}/{again}")


def _locate(path: Path, request: Request) -> Path:
    """The file or release that `path` means; NLTK's copy where there is nothing."""
    if path.is_file() or (path / _INDEX).is_file():
        return path
    if path.is_dir():
        lines = sorted(path.glob("*.jsonl"))
        inside = lines or sorted(index.parent for index in path.glob(f"*/{_INDEX}"))
        if len(inside) != 1:
            what = "several of these" if inside else "neither"
            raise DataError(
                f"{path} is no FrameNet folder: it should hold {_INDEX} or one .jsonl file, and "
                f"has {what}.",
                hint="Give the folder of the release itself (it holds frame, lu and luIndex.xml).",
            )
        return inside[0]
    package = str(request.options.get("nltk", "framenet_v17"))
    return _from_nltk(package, path, download=bool(request.options.get("download", False)))


def _from_nltk(package: str, wanted: Path, *, download: bool) -> Path:
    import nltk

    for allowed in (False, True):
        if allowed and not (download and nltk.download(package, quiet=True)):
            break
        try:
            return Path(str(nltk.data.find(f"corpora/{package}")))
        except LookupError:
            continue
    raise DataError(
        f"FrameNet is not on this machine: there is no folder {wanted}, and NLTK's data have no "
        f"{package}.",
        hint=f"Get it with: python -m nltk.downloader {package} (or download=True), or unpack a "
        "release there.",
    )


# A file of sentences --------------------------------------------------------------------------


def _lines(path: Path) -> Iterator[Example | None]:
    for row in objects(path):
        where = f"{path.name}, line {row.line}"
        try:
            text, frame = str(row.values["text"]), str(row.values["frame"])
            target = [(int(a), int(b) + 1) for a, b in row.values["target"]]
            core = [
                (str(name), (int(first), int(last) + 1))
                for name, first, last, kind in row.values["fe"]
                if kind == _CORE
            ]
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"{where}: not a FrameNet sentence ({type(error).__name__}: {error}).",
                hint="Needed: text, frame, target [[first, last]], fe [[name, first, last, kind]].",
            ) from None
        labels = {"id": row.values.get("sent_id", row.line), "lu": row.values.get("lu", "")}
        yield _example(text, {**labels, "frame": frame}, target, core, where)


# A release --------------------------------------------------------------------------------------


def _release(folder: Path) -> Iterator[Example | None]:
    missing = [name for name in (*_FILES, "frame", "lu") if not (folder / name).exists()]
    missing = [name for name in missing if name != "fulltextIndex.xml"]
    if missing:
        raise DataError(
            f"{folder} is not a whole FrameNet release: {', '.join(missing)} is missing.",
            hint="Unpack the release again.",
        )
    with _allowed(folder):
        yield from _lexical_units(folder)


@contextmanager
def _allowed(folder: Path) -> Iterator[None]:
    """NLTK reads only below its data path, so the user's folder is added to it for a while."""
    import nltk

    nltk.data.path.append(str(folder.resolve()))
    try:
        yield
    finally:
        nltk.data.path.remove(str(folder.resolve()))


def _lexical_units(folder: Path) -> Iterator[Example | None]:
    from nltk.corpus.reader.framenet import FramenetCorpusReader

    present = {int(f.stem[2:]) for f in (folder / "lu").glob("lu*.xml") if f.stem[2:].isdigit()}
    try:
        reader = FramenetCorpusReader(str(folder.resolve()), _FILES)
        # The index also names units without sentences, which have no file.
        for number in [n for n in reader.lu_ids_and_names() if n in present]:
            yield from _sentences(reader, number)
    except (OSError, ParseError, ValueError) as error:
        raise DataError(
            f"{folder} cannot be read as FrameNet ({type(error).__name__}: {error}).",
            hint="Unpack the release again.",
        ) from None


def _sentences(reader: Any, number: int) -> Iterator[Example | None]:
    from nltk.corpus.reader.framenet import FramenetError

    try:
        unit = reader.lu(number)
        core = {name for name, element in unit.frame.FE.items() if element.coreType == _CORE}
        sentences = unit.exemplars
    except (AssertionError, FramenetError, KeyError):
        return  # NLTK refuses a unit whose data contradict each other
    for sentence in sentences:
        annotated = sentence.get("frameAnnotation")
        if annotated is None or "Target" not in annotated:
            continue
        elements = [(name, (a, b)) for a, b, name in annotated["FE"][0] if name in core]
        labels = {"id": sentence.ID, "lu": unit.name, "frame": unit.frame.name}
        where = f"sentence {sentence.ID} of {unit.name}"
        yield _example(sentence.text, labels, list(annotated["Target"]), elements, where)


# What both have in common ---------------------------------------------------------------------


def _example(
    text: str, labels: Mapping[str, object], target: list[Span], core: Elements, where: str
) -> Example | None:
    """One sentence; None where it has no predicate or no core element."""
    spans = split_words(text)
    for start, end in [*target, *(span for _, span in core)]:
        if not 0 <= start < end <= len(text):
            raise DataError(f"{where}: characters {start} to {end} are not in its text.")
    predicate = sorted({w for span in target for w in _words(span, spans)})
    roles: dict[str, Span] = {}
    for name, span in sorted(core, key=lambda element: element[1]):
        words = _words(span, spans)
        if words:
            # An element in two pieces has its name twice.
            same = sum(known.split("#")[0] == name for known in roles)
            roles[f"{name}#{same + 1}" if same else name] = (words[0], words[-1] + 1)
    if not predicate or not roles:
        return None
    annotations = {
        "words": [text[a:b] for a, b in spans],
        "offsets": spans,
        "frame": labels["frame"],
        "group": labels["frame"],
        "predicate": predicate,
        "roles": roles,
    }
    return Example(f"{labels['lu']}/{labels['id']}", text, annotations=annotations)


def _words(characters: Span, words: list[Span]) -> list[int]:
    start, end = characters
    return [i for i, (a, b) in enumerate(words) if a < end and start < b]
