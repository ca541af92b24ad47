"""Loads every corpus: by a name of the catalogue, a path, or an id on the Hugging Face hub."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from bertology.data import catalog
from bertology.data.catalog import CatalogEntry
from bertology.data.corpus import Corpus, Field
from bertology.data.readers import OPTIONS, READERS, MissingSplitError, Request, glue, hub
from bertology.data.tasks import get_task
from bertology.errors import CapabilityError, DataError, ParameterError, UnknownNameError
from bertology.plain_files import local_path, read_bytes, read_utf8

_COLUMNS = {*(f.value for f in Field), "id"}
_OWN = {"task", "reader", "only", "languages"}
_DEFAULT_SPLIT = "validation"
_GRAMMAR = "grammar"


@dataclass(frozen=True)
class Description:
    """An entry of the catalogue, and whether its files are on this machine."""

    entry: CatalogEntry
    folder: Path | None  # where its files are or belong; None for what is generated
    present: bool
    how_to_get: str


def load_corpus(
    name_or_path: str | Path,
    *,
    split: str = _DEFAULT_SPLIT,
    limit: int | None = None,
    seed: int = 0,
    root: str | Path | None = None,
    **columns: object,
) -> Corpus:
    """Load a corpus.

    `name_or_path`: a name of the catalogue ("mrpc"; see `bertology datasets`), a file or folder,
    a catalogue entry of your own (a .yaml file), or a hub id ("owner/name:configuration").
    `split`: an entry that has one split only gives it for the default "validation" too.
    `limit`: so many examples are drawn at random, the same ones for the same `seed` (all, if there
    are no more); for generated corpora, how many to make.
    `root`: the folder with the files of catalogue entries (default: $BERTOLOGY_DATA, else the
    cache folder of the platform).
    `columns`: which column holds a field (`text="sentence1"`, `label="gold"`, …); further
    `task`, `labels` (class names in order, or a mapping of labels to the names that a model has
    for them), `reader`, `only` (one group), `languages` (of a corpus in several, by their codes:
    "de,fr"), `header`, `config`, …; for the grammar's corpora: its switches.
    """
    source = str(name_or_path)
    if limit is not None and (isinstance(limit, bool) or limit < 1):
        raise ParameterError("limit", "load_corpus", "be at least 1", limit)
    given = {k: v for k, v in columns.items() if v is not None}
    renamed = given.get("labels")
    if isinstance(renamed, Mapping):
        rest = {k: v for k, v in columns.items() if k != "labels"}
        whole = load_corpus(source, split=split, limit=limit, seed=seed, root=root, **rest)
        return whole.relabelled({str(k): str(v) for k, v in renamed.items()})
    only, chosen = given.pop("only", None), _codes(given.pop("languages", None))
    # Also where the corpus itself is no entry: studies look there for other data by name.
    where = {} if root is None else {"root": str(local_path(root).resolve())}
    origin: dict[str, object] = {"name_or_path": source, "split": split, **columns, **where}
    entry = _entry_of(source)
    if entry is not None and entry.reader == _GRAMMAR:
        corpus = _generated(entry, split, {"size": limit, "seed": seed, **given})
        if only is not None:
            corpus, where = _of_group(corpus, str(only)), {**where, "only": str(only)}
        if chosen:
            corpus = _in_languages(corpus, chosen)
        # The grammar itself says how to make the same again.
        return replace(corpus, origin={**corpus.origin, **where})
    _check_arguments(given)
    if entry is not None:
        base = _own_root(source) if root is None else local_path(root)
        corpus = _load_entry(entry, split, base, given, chosen)
        origin |= {"root": str(base.resolve()), "split": corpus.split or split}
        if source.endswith((".yaml", ".yml")):
            origin["name_or_path"] = str(local_path(source).resolve())
    else:
        corpus, origin["name_or_path"] = _load_path(source, split, given)
    if only is not None:
        corpus = _of_group(corpus, str(only))
    if chosen:
        corpus = _in_languages(corpus, chosen)
    return replace(corpus, origin=origin).take(limit, seed=seed)


def load_split(corpus: Corpus, split: str, *, other: str = "", limit: int | None = None) -> Corpus:
    """Another split of what a corpus was loaded from; with `other`, of other data read alike."""
    origin = dict(corpus.origin)
    if other:
        kept = {n: v for n, v in origin.items() if n not in ("name_or_path", "only")}
        origin = {**kept, "name_or_path": other}
    elif "name_or_path" not in origin:
        raise CapabilityError(
            f"Corpus {corpus.name!r} does not say where its split {split!r} is.",
            hint="Load it with load_corpus and a limit, not by slicing; or name the data to learn "
            "from (--train).",
        )
    return load_corpus(**(origin | {"split": split, "limit": limit, "seed": 0}))


def describe(name: str, *, root: str | Path | None = None) -> Description:
    """What the catalogue knows about `name`, and whether its files are here."""
    entry = catalog.get(name)
    if entry.reader == _GRAMMAR:
        return Description(entry, None, True, entry.get)
    base = data_root() if root is None else local_path(root)
    folder = _folder(entry, base)
    return Description(entry, folder, folder.is_dir(), entry.get.replace("{folder}", str(folder)))


def data_root() -> Path:
    """The folder of datasets: $BERTOLOGY_DATA, else the platform's cache folder."""
    if given := os.environ.get("BERTOLOGY_DATA"):
        return local_path(given)
    home = Path.home()
    if sys.platform == "win32":
        cache = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        cache = home / "Library" / "Caches"
    else:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return cache / "bertology" / "data"


def _entry_of(source: str) -> CatalogEntry | None:
    """The catalogue's entry for `source`, or None when it is a path or a hub id."""
    path = local_path(source)
    if path.suffix in (".yaml", ".yml") and path.exists():
        return catalog.read_entry(read_utf8(path), where=source)
    try:
        return catalog.get(source)
    except UnknownNameError:
        if path.exists() or _is_hub_id(source) or _is_path(source):
            return None
        raise


def _own_root(source: str) -> Path:
    # An entry given as a file finds its data beside itself.
    return local_path(source).parent if source.endswith((".yaml", ".yml")) else data_root()


def _is_hub_id(source: str) -> bool:
    name = source.removeprefix("hub:")
    owner, _, rest = name.partition("/")
    ending = Path(name.partition(":")[0]).suffix.lower()
    plain = bool(owner) and not owner.startswith((".", "~")) and "\\" not in name
    return source.startswith("hub:") or (
        plain and bool(rest) and "/" not in rest and ending not in EXTENSIONS
    )


def _is_path(source: str) -> bool:
    return "/" in source or os.sep in source or Path(source).suffix.lower() in EXTENSIONS


def _check_arguments(given: Mapping[str, object]) -> None:
    known = _COLUMNS | _OWN | set(OPTIONS)
    for name in given:
        if name not in known:
            raise UnknownNameError(
                "field or option of a corpus",
                name,
                known,
                hint="The texts of a pair are text and text_b, what is known of it is label: "
                "text='first' (--columns text=first) if the column is called first.",
            )


def _request(name: str, split: str | None, given: Mapping[str, object]) -> Request:
    return Request(
        name=name,
        split=split,
        task=get_task(str(given["task"])) if "task" in given else None,
        columns={k: str(v) for k, v in given.items() if k in _COLUMNS},
        options={k: v for k, v in given.items() if k in OPTIONS},
    )


def _load_path(source: str, split: str, given: Mapping[str, object]) -> tuple[Corpus, str]:
    path = local_path(source)
    if not path.exists() and _is_hub_id(source):
        name = source.removeprefix("hub:")
        return READERS.get("hub")(name, _request(name, split, given)), source
    asked = given.get("reader")
    reader, found = choose(path, split, None if asked is None else str(asked))
    # A single file is no other split than its own name says.
    name, own = named_after(path) if path.is_file() else (path.name, split)
    request = _request(name, own, given)
    return READERS.get(reader)(found, request), str(path.resolve())


def _generated(entry: CatalogEntry, split: str, options: Mapping[str, object]) -> Corpus:
    split = _own_split(entry, split)
    if split not in entry.splits:
        raise UnknownNameError(f"split of {entry.name}", split, entry.splits)
    options = {**entry.options, **options}
    return READERS.get(entry.reader)(entry.name, Request(entry.name, split, options=options))


def _load_entry(
    entry: CatalogEntry,
    split: str,
    base: Path,
    given: Mapping[str, object],
    chosen: Sequence[str] = (),
) -> Corpus:
    names = list(entry.splits)
    split = _own_split(entry, split)
    folder = _folder(entry, base)
    if not folder.is_dir() and "nltk" not in entry.options:  # which its reader may have elsewhere
        raise _missing(entry, folder, f"its folder {folder} is not there")
    asked = _request(entry.name, split, given)
    request = Request(
        name=entry.name,
        split=split,
        task=asked.task or entry.task,
        columns={**entry.columns, **asked.columns},
        options={**entry.options, **asked.options},
    )
    read = READERS.get(str(given.get("reader") or entry.reader))
    if not any(entry.splits.values()):
        try:
            return read(folder, request)  # the reader knows the layout, and what splits are there
        except MissingSplitError as error:
            hint = f"{error.hint or ''} To get it: {_how(entry, folder)}".strip()
            raise DataError(error.problem, hint=hint) from None
    if split not in entry.splits:
        raise UnknownNameError(f"split of {entry.name}", split, names)
    files = _files(entry, folder, split)
    languages = [_language_of(file, folder, entry.splits[split]) for file in files]
    if None not in languages:
        known = [str(code) for code in languages]
        _check_languages(entry.name, chosen, known)
        by_code = sorted(range(len(known)), key=lambda i: known[i])
        wanted = [i for i in by_code if not chosen or known[i] in chosen]
        return _of_languages(
            [read(files[i], request) for i in wanted],
            [known[i] for i in wanted],
            [files[i] for i in wanted],
            parallel=entry.parallel,
        )
    parts = [read(file, request) for file in files]
    return parts[0] if len(parts) == 1 else _joined(parts, files)


_LANGUAGE = "{language}"


def _language_of(file: Path, folder: Path, patterns: Sequence[str]) -> str | None:
    """What stands for {language} in the pattern that a file was found by."""
    path = file.relative_to(folder).as_posix()
    for pattern in patterns:
        before, marked, after = pattern.partition(_LANGUAGE)
        if marked:
            parts = (re.escape(part).replace(r"\*", "[^/]*") for part in (before, after))
            found = re.fullmatch("([a-z]{2,3})".join(parts), path)
            if found:
                return found[1]
    return None


def _of_languages(
    parts: list[Corpus], codes: list[str], files: list[Path], *, parallel: bool
) -> Corpus:
    """Files in several languages as one corpus; an example's id begins with its language."""
    several = len(set(codes)) < len(codes)
    examples = []
    for part, code, file in zip(parts, codes, files, strict=True):
        for example in part:
            about = {**example.annotations, "language": code}
            if parallel:
                about["item"] = example.id
            own = f"{file.stem}/{example.id}" if several else example.id
            examples.append(replace(example, id=f"{code}/{own}", annotations=about))
    shared = frozenset.intersection(*(part.fields for part in parts)) | {Field.LANGUAGE}
    if parallel:
        shared |= {Field.ITEM}
    return replace(parts[0], examples=examples, fields=shared)


def _codes(given: object) -> tuple[str, ...]:
    """`"de,fr"` or a list of codes."""
    if given is None:
        return ()
    parts = given.split(",") if isinstance(given, str) else given
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        raise ParameterError("languages", "load_corpus", "be codes such as 'de,fr'", given)
    return tuple(dict.fromkeys(part.strip() for part in parts if part.strip()))


def _check_languages(name: str, chosen: Sequence[str], known: Sequence[str]) -> None:
    for code in chosen:
        if code not in known:
            raise UnknownNameError(f"language of {name}", code, sorted(set(known)))


def _in_languages(corpus: Corpus, chosen: Sequence[str]) -> Corpus:
    corpus.require(Field.LANGUAGE)
    _check_languages(corpus.name, chosen, [str(e.get(Field.LANGUAGE)) for e in corpus])
    kept = [example for example in corpus if example.get(Field.LANGUAGE) in chosen]
    if len(chosen) > 1 and Field.ITEM in corpus.fields:
        # An item that is in two languages, one of them not chosen, is parallel to nothing here.
        before, after = (Counter(e.get(Field.ITEM) for e in of) for of in (corpus, kept))
        lost = {item for item, count in after.items() if count == 1 < before[item]}
        kept = [example for example in kept if example.get(Field.ITEM) not in lost]
    if not kept:
        raise DataError(f"No item of {corpus.name!r} is in several of {', '.join(chosen)}.")
    return replace(corpus, examples=kept)


def _own_split(entry: CatalogEntry, split: str) -> str:
    """Where an entry has one split only, the default is that."""
    return next(iter(entry.splits)) if split == _DEFAULT_SPLIT and len(entry.splits) == 1 else split


def _folder(entry: CatalogEntry, base: Path) -> Path:
    """Below the root by its full name, or (a root that is the collection itself) by its last."""
    full = base / entry.folder
    last = base / Path(entry.folder).name
    return last if entry.folder and not full.is_dir() and last.is_dir() else full


def _files(entry: CatalogEntry, folder: Path, split: str) -> list[Path]:
    files: list[Path] = []
    for pattern in entry.splits[split]:
        found = folder.glob(pattern.replace(_LANGUAGE, "*"))
        named = _LANGUAGE in pattern
        matching = sorted(f for f in found if not named or _language_of(f, folder, [pattern]))
        if not matching:
            raise _missing(entry, folder, f"{folder} has no file {pattern} (split {split!r})")
        files += matching
    for name, wanted in entry.checksums.items():
        file = folder / name
        # Files that go with the split's own, such as gold columns, are checked as well.
        if file in files or any(file.stem == f.stem for f in files if f.parent == file.parent):
            _verify(file, wanted, entry)
    return files


def _verify(file: Path, wanted: str, entry: CatalogEntry) -> None:
    if not file.is_file():
        raise _missing(entry, file.parent, f"{file} is not there")
    found = sha256(read_bytes(file)).hexdigest()
    if found != wanted:
        raise DataError(
            f"{file} is not the file that {entry.name!r} means: its SHA-256 is {found[:12]}…, "
            f"not {wanted[:12]}….",
            hint=f"Get it again: {_how(entry, file.parent)} To use yours as it is, load it by "
            "its path.",
        )


def _missing(entry: CatalogEntry, folder: Path, what: str) -> DataError:
    return DataError(
        f"The data of {entry.name!r} are not on this machine: {what}.",
        hint=f"{_how(entry, folder)}\nSource: {entry.source} (licence: {entry.licence}). Another "
        "place for data: set BERTOLOGY_DATA, or name it with --root (in Python: root=…).",
    )


def _how(entry: CatalogEntry, folder: Path) -> str:
    return entry.get.replace("{folder}", str(folder))


def _joined(parts: list[Corpus], files: list[Path]) -> Corpus:
    """Several files as one corpus; an example's id begins with the name of its file.

    Of files with the same name it begins with that of their folder.
    """
    names = [file.stem for file in files]
    if len(set(names)) < len(names):
        names = [f"{file.parent.name}/{file.stem}" for file in files]
    examples = [
        replace(example, id=f"{name}/{example.id}")
        for part, name in zip(parts, names, strict=True)
        for example in part
    ]
    shared = frozenset.intersection(*(part.fields for part in parts))
    return replace(parts[0], examples=examples, fields=shared)


def _of_group(corpus: Corpus, group: str) -> Corpus:
    corpus.require(Field.GROUP)
    kept = [example for example in corpus if example.get(Field.GROUP) == group]
    if not kept:
        groups = {str(example.get(Field.GROUP)) for example in corpus}
        raise UnknownNameError(f"group of {corpus.name}", group, groups)
    return replace(corpus, examples=kept)


# Which reader a path asks for: told by its extension, or by what lies in the folder.

EXTENSIONS = {
    ".conll": "conll", ".v4_gold_conll": "conll", ".v4_auto_conll": "conll", ".conllu": "conllu",
    ".csv": "csv", ".tsv": "csv", ".json": "jsonl", ".jsonl": "jsonl",
    ".mrg": "brackets", ".ndjson": "jsonl", ".txt": "text", ".tokens": "text", ".text": "text",
}  # fmt: skip
_SPLIT_NAMES = {
    "train": ("train",),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test",),
}


def choose(path: Path, split: str, reader: str | None = None) -> tuple[str, Path]:
    """The reader's name and the file or folder it is to read for `split`."""
    if not path.exists():
        raise DataError(f"There is no file or folder {path}.")
    if not path.is_file() and not path.is_dir():
        raise DataError(f"{path} is a pipe or a device, not a file or a folder.")
    if reader is not None:
        READERS.get(reader)  # an unknown name is refused before anything is looked at
        return reader, path
    if glue.recognises(path):
        return "glue", path
    if path.is_file():
        return _by_extension(path), path
    if hub.is_saved(path):
        return "hub", path
    return _split_file(path, split)


def _by_extension(path: Path) -> str:
    extension = path.suffix.lower()
    if extension in EXTENSIONS:
        return EXTENSIONS[extension]
    if extension.removeprefix(".") in READERS:
        return extension.removeprefix(".")
    raise DataError(
        f"No reader is known for {path.name}.",
        hint=f"Known endings: {', '.join(sorted(EXTENSIONS))}; or say reader=… "
        f"({', '.join(READERS)}).",
    )


def named_after(file: Path) -> tuple[str, str | None]:
    """The name of the data in a file, and which split they are, if the file's name says it.

    `reviews/test.csv` and `reviews-test.csv` are the split test of `reviews`.
    """
    pieces = re.split(r"[-_.]", file.stem)
    last = pieces[-1].lower()
    split = next((n for n, spellings in _SPLIT_NAMES.items() if last in spellings), None)
    if split is None:
        return file.stem, None
    rest = file.stem[: -len(last)].rstrip("-_.")
    return rest or file.absolute().parent.name or file.stem, split


def _split_file(folder: Path, split: str) -> tuple[str, Path]:
    """`dev.jsonl`, `validation.csv`, `en_ewt-ud-dev.conllu` …: one file per split."""
    files = sorted(f for f in folder.iterdir() if f.suffix.lower() in EXTENSIONS)
    by_split: dict[str, list[Path]] = {}
    for file in files:
        if name := named_after(file)[1]:
            by_split.setdefault(name, []).append(file)
    wanted = next((n for n, spellings in _SPLIT_NAMES.items() if split in spellings), split)
    if not by_split:
        raise _no_layout(folder, files)
    if wanted not in by_split:
        raise DataError(
            f"{folder} has no file for the split {split!r}.",
            hint=f"Splits that are there: {', '.join(by_split)}.",
        )
    if len(by_split[wanted]) > 1:
        names = ", ".join(f.name for f in by_split[wanted])
        raise DataError(
            f"{folder} has several files for {split!r}: {names}.", hint="Give one path."
        )
    file = by_split[wanted][0]
    return _by_extension(file), file


def _no_layout(folder: Path, files: list[Path]) -> DataError:
    tasks = sorted(f.name for f in folder.iterdir() if f.is_dir() and glue.recognises(f))
    if tasks:
        hint = (
            f"It holds GLUE tasks; give one of them: {', '.join(str(folder / t) for t in tasks)}."
        )
    elif files:
        hint = f"Give one of its files: {', '.join(f.name for f in files[:5])}."
    else:
        hint = (
            "Known: a GLUE task (train.tsv, dev.tsv), one file per split (train.csv, dev.csv …), "
            "a dataset saved by Hugging Face datasets."
        )
    return DataError(f"The folder {folder} has no layout that is known.", hint=hint)
