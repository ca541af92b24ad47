"""The catalogue: every entry is whole, a wrong one is refused, missing data say how to get them."""

from __future__ import annotations

import hashlib
import json
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from bertology.data import catalog, describe, load_corpus
from bertology.data.catalog import read_entry
from bertology.data.loading import data_root
from bertology.data.readers.glue import GLUE
from bertology.errors import DataError, UnknownNameError

GOOD = """
name: tiny
title: A tiny corpus
source: https://example.org/tiny
licence: CC0
reader: csv
folder: tiny
fields: [text, label]
columns: {text: sentence}
task: {kind: classification, labels: [no, 'yes']}
splits: {validation: dev.csv}
get: Download it into {folder}.
"""


def test_names_of_the_issue_are_there() -> None:
    wanted = {*GLUE, "hans", "blimp", "ud-ewt", "ud-gum", "ud-pud", "wikitext-2", "squad", "clams"}
    kinds = ("paraphrase", "entailment", "agreement", "reflexives", "npi")
    wanted |= {"grammar", *(f"grammar-{kind}" for kind in kinds)}
    assert wanted <= set(catalog.entries())


@pytest.mark.parametrize("name", sorted(catalog.entries()))
def test_entries_are_whole(name: str) -> None:
    entry = catalog.entries()[name]
    assert entry.source.startswith("https://") or entry.reader == "grammar"
    assert entry.citation
    assert entry.reader == "grammar" or "{folder}" in entry.get
    assert ("label" in entry.fields) == (entry.task is not None) or entry.reader == "grammar"
    assert describe(name, root="nowhere").entry is entry


@pytest.mark.parametrize("name", [n for n in catalog.entries() if n.startswith("grammar")])
def test_the_grammar_comes_through_the_same_door(name: str) -> None:
    corpus = load_corpus(name, limit=8, seed=3)
    own = "validation" if "validation" in catalog.get(name).splits else "test"  # lists
    assert (corpus.name, len(corpus), corpus.split) == (name, 8, own)
    assert set(catalog.get(name).fields) <= corpus.fields
    again = load_corpus(**json.loads(json.dumps(corpus.origin)))
    assert again.fingerprint == corpus.fingerprint
    with pytest.raises(UnknownNameError, match=f"split of {name} 'tset'"):
        load_corpus(name, split="tset")


def test_switches_of_the_grammar() -> None:
    corpus = load_corpus("grammar-entailment", limit=4, subsequence=False)
    assert corpus.origin["subsequence"] is False
    with pytest.raises(UnknownNameError, match="Unknown switch of grammar-entailment 'subseq'"):
        load_corpus("grammar-entailment", limit=4, subseq=False)


def test_search_and_aliases() -> None:
    assert catalog.get("SST2").name == "sst-2"
    assert "mrpc" in {e.name for e in catalog.find("paraphrase dolan")} | {
        e.name for e in catalog.find("mrpc")
    }
    assert catalog.find("no such thing") == []
    assert len(catalog.find()) == len(catalog.entries())
    with pytest.raises(UnknownNameError, match=r"(?s)Unknown corpus 'mrcp'.*'mrpc'.*datasets"):
        load_corpus("mrcp")


BROKEN = {
    "unknown key": ("title:", "titel:", "unknown field 'titel'.*Did you mean 'title'"),
    "missing key": ("licence: CC0\n", "", "'licence' is missing"),
    "bad name": ("name: tiny", "name: Tiny Corpus", "small letters"),
    "unknown reader": ("reader: csv", "reader: cvs", "Unknown reader 'cvs'.*'csv'"),
    "unknown field": (
        "[text, label]",
        "[text, lable]",
        r"fields\[1\].*mean 'label'",
    ),
    "fields no list": ("[text, label]", "text", "'fields' must be a list"),
    "unknown task": ("{kind: classification, labels: [no, 'yes']}", "mrcp", "Unknown task"),
    "unknown kind": (
        "kind: classification",
        "kind: clasification",
        "mean 'classification'",
    ),
    "one class": ("[no, 'yes']", "['yes']", "at least two labels"),
    "odd task": (
        "kind: classification",
        "sort: classification",
        "unknown field 'task.sort'",
    ),
    "unknown column": (
        "{text: sentence}",
        "{txt: sentence}",
        "'columns.txt'.*mean 'text'",
    ),
    "column no text": ("{text: sentence}", "{text: 3}", "'columns.text' must be text"),
    "splits": ("{validation: dev.csv}", "7", "'splits' must be"),
    "split": ("{validation: dev.csv}", "{validation: 7}", "'splits.validation' must be text"),
    "way out": ("dev.csv", "../dev.csv", "below the data root"),
    "absolute": ("folder: tiny", "folder: /tiny", "below the data root"),
    "title": ("A tiny corpus", "[1]", "'title' must be text"),
    "checksum": ("get:", "checksums: {dev.csv: abc}\nget:", "64 hexadecimal"),
    "options": ("get:", "options: 3\nget:", "'options' must be a mapping"),
    "no YAML": ("name: tiny", "name: [", "is not valid YAML"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_wrong_entries_are_refused(case: str) -> None:
    old, new, said = BROKEN[case]
    text = GOOD.replace("labels: [no,", "labels: ['no',")
    old = old.replace("labels: [no,", "labels: ['no',").replace("[no, ", "['no', ")
    assert old in text
    with pytest.raises(DataError, match=f"(?s)here.yaml.*(?:{said})"):
        read_entry(text.replace(old, new, 1), where="here.yaml")


def test_an_entry_is_a_mapping() -> None:
    with pytest.raises(DataError, match="a mapping"):
        read_entry("- a", where="here.yaml")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "dev.csv").write_text("sentence,label\na,yes\nb,no\n")
    file = tmp_path / "tiny.yaml"
    file.write_text(GOOD.replace("[no,", "['no',"))
    return file


def test_an_entry_of_ones_own(own: Path) -> None:
    corpus = load_corpus(own)
    assert (corpus.name, corpus.labels, corpus.split) == ("tiny", [1, 0], "validation")
    assert load_corpus(**corpus.origin).fingerprint == corpus.fingerprint


def test_checksums_are_verified(own: Path) -> None:
    file = own.parent / "tiny" / "dev.csv"
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    own.write_text(own.read_text() + f"checksums: {{dev.csv: {digest}}}\n")
    assert len(load_corpus(own)) == 2
    file.write_text("sentence,label\na,no\nb,no\n")
    with pytest.raises(DataError, match=r"(?s)is not the file that 'tiny' means.*Get it again"):
        load_corpus(own)


def test_missing_data_say_what_to_get_and_where_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BERTOLOGY_DATA", str(tmp_path))
    with pytest.raises(DataError) as error:
        load_corpus("ud-ewt")
    said = str(error.value)
    assert str(tmp_path / "ud" / "UD_English-EWT") in said
    assert "git clone" in said
    assert "CC BY-SA" in said
    assert "BERTOLOGY_DATA" in said
    (tmp_path / "ud" / "UD_English-EWT").mkdir(parents=True)
    with pytest.raises(DataError, match=r"has no file en_ewt-ud-dev\.conllu"):
        load_corpus("ud-ewt")
    with pytest.raises(UnknownNameError, match="Unknown split of ud-ewt 'dev'"):
        load_corpus("ud-ewt", split="dev")
    found = describe("ud-ewt")
    assert found.present
    assert not describe("ud-gum").present


def test_an_only_split_is_the_default(own: Path) -> None:
    own.write_text(own.read_text().replace("{validation: dev.csv}", "{test: dev.csv}"))
    corpus = load_corpus(own)
    assert corpus.split == "test"
    assert corpus.origin["split"] == "test"
    with pytest.raises(UnknownNameError, match="split of tiny 'train'"):
        load_corpus(own, split="train")


def test_several_files_are_one_corpus(own: Path) -> None:
    (own.parent / "tiny" / "more.csv").write_text("sentence,label,group\nc,no,x\n")
    own.write_text(own.read_text().replace("dev.csv", "'*.csv'"))
    corpus = load_corpus(own)
    assert [e.id for e in corpus] == ["dev/0", "dev/1", "more/0"]
    assert "group" not in corpus.fields


def test_one_group_only(own: Path) -> None:
    (own.parent / "tiny" / "dev.csv").write_text("sentence,label,group\na,yes,x\nb,no,y\n")
    assert [e.text for e in load_corpus(own, only="y")] == ["b"]
    with pytest.raises(UnknownNameError, match="Unknown group of tiny 'z'"):
        load_corpus(own, only="z")


def test_the_data_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("BERTOLOGY_DATA", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_root() == tmp_path / "bertology" / "data"
    monkeypatch.setenv("BERTOLOGY_DATA", str(tmp_path / "x"))
    assert data_root() == tmp_path / "x"


def test_other_packages_bring_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: Path
) -> None:
    package = tmp_path / "brought_catalogue"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "tiny.yaml").write_text(own.read_text())
    (package / "mrpc.yaml").write_text(own.read_text().replace("name: tiny", "name: mrpc"))
    monkeypatch.syspath_prepend(tmp_path)
    point = EntryPoint("x", "brought_catalogue", "bertology.catalog")
    monkeypatch.setattr(catalog, "entry_points", lambda group: [point])
    catalog.entries.cache_clear()
    try:
        assert len(load_corpus("tiny", root=tmp_path)) == 2
        assert catalog.get("mrpc").reader == "glue"  # ours wins
        gone = EntryPoint("x", "no_such_package", "bertology.catalog")
        monkeypatch.setattr(catalog, "entry_points", lambda group: [gone])
        catalog.entries.cache_clear()
        with pytest.raises(DataError, match="catalogue 'x' names the package 'no_such_package'"):
            catalog.entries()
    finally:
        catalog.entries.cache_clear()
