"""Texts that are cut and pieces that are not known are counted, kept with the result and told."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path
from typing import Any, ClassVar

import pytest
import xarray as xr
from typer.testing import CliRunner

import bertology as bt
import tiny
import toy_atlas as toy
from bertology.cli.main import app
from bertology.data.corpus import Corpus, Example, Field
from bertology.model.batch import count_pieces
from bertology.model.encoder import Encoder
from bertology.report.atlas.about import read_about
from bertology.report.atlas.gathering import gather
from bertology.report.atlas.page import atlas_page
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.results.store import Store
from bertology.run.text_counts import text_counts
from bertology.studies import STUDIES
from bertology.studies.attention.relation_heads import RelationHeads
from bertology.studies.designs.blocks import Sampled as SampledStudy
from bertology.studies.study import Context, Needs, Study
from bertology.studies.training.fine_tuning_starts import FineTuningStarts
from bertology.studies.training.pretraining_objectives import PretrainingObjectives
from toy.making import WORDS

LIMIT = 64  # of the tiny tokenizer
SHORT, LONG = "the cat sees a dog .", " ".join(["the old cat"] * 40)
HALF = " ".join(["cat"] * 40)  # fits, but not twice
FOREIGN = "Собака видит кошку"


def make(texts: Sequence[str], seconds: Sequence[str] = ()) -> Corpus:
    fields = {Field.TEXT, Field.TEXT_B} if seconds else {Field.TEXT}
    rows = [Example(str(i), text, seconds[i] if seconds else None) for i, text in enumerate(texts)]
    return Corpus("made-up", rows, frozenset(fields))


@dataclass(frozen=True)
class Reading(Study):
    """How many texts are there?"""

    needs: ClassVar[Needs] = Needs(fields=frozenset({"text"}))
    result_type = Result

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        return xr.Dataset({"n": len(corpus)})

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        return Result(provenance, arrays=measured["all"])


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STUDIES._loaded, "reading", Reading)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("model")
    tiny.model("bert").save_pretrained(place)
    tiny.tokenizer(WORDS).save_pretrained(place)
    return place


@pytest.fixture(scope="module")
def encoder(folder: Path) -> Encoder:
    return bt.load(str(folder), device="cpu")


def run(encoder: Encoder, corpus: Corpus, store: Store) -> Any:
    return bt.run("reading", encoder, corpus=corpus, store=store)


def test_long_texts_are_counted_with_their_special_tokens() -> None:
    tokenizer = tiny.tokenizer(WORDS)
    exact = " ".join(["cat"] * (LIMIT - 2))
    assert count_pieces(tokenizer, [exact, f"{exact} cat", SHORT], LIMIT).longer == 1
    assert count_pieces(tokenizer, [(HALF, HALF), (HALF, SHORT)], LIMIT).longer == 1
    assert count_pieces(tokenizer, [LONG] * 1500 + [SHORT], LIMIT).longer == 1500
    assert count_pieces(tokenizer, [LONG], None).longer == 0
    assert count_pieces(tokenizer, [], LIMIT).longer == 0


def test_unknown_pieces_are_counted_among_the_pieces_of_texts() -> None:
    tokenizer = tiny.tokenizer(WORDS)
    found = count_pieces(tokenizer, [SHORT, "the Ж sees 犬 ."], LIMIT)
    assert (found.unknown, found.pieces, found.unknown_token) == (2, 11, "[UNK]")
    found = count_pieces(tokenizer, [(SHORT, FOREIGN)], LIMIT)
    assert (found.unknown, found.pieces) == (3, 9)
    tokenizer.unk_token = tokenizer.sep_token  # as GPT-2 has it: nothing can be counted
    found = count_pieces(tokenizer, [SHORT, FOREIGN], LIMIT)
    assert (found.unknown, found.unknown_token) == (0, "")


def test_text_that_the_tokenizer_does_not_know_is_not_studied_in_silence(
    encoder: Encoder, tmp_path: Path
) -> None:
    store = Store(tmp_path)
    told = (
        "33.3 % of the text's pieces are [UNK]: the model's tokenizer does not know them, so the "
        "model reads only the rest. The intervals do not show this."
    )
    first = run(encoder, make([SHORT, FOREIGN]), store)
    for result in (first, run(encoder, make([SHORT, FOREIGN]), store), store.load(first.identity)):
        assert result.provenance.unknown == {"pieces": 3, "of": 9, "token": "[UNK]"}
        assert result.provenance.text_notes() == [told]
        assert told in result.summary()
        assert told in unescape(result._repr_html_())
    rare = run(encoder, make([SHORT] * 20 + [FOREIGN]), store)  # 3 of 123 pieces: a few names
    assert rare.provenance.text_notes() == []


@pytest.mark.parametrize(
    ("corpus", "note"),
    [
        (make([SHORT, LONG, HALF]), "1 of 3 texts was cut to 64 tokens, the most that {} takes."),
        (
            make([HALF, SHORT, SHORT], [HALF, LONG, SHORT]),
            "2 of 3 pairs of texts were cut to 64 tokens, the most that {} takes.",
        ),
        (make([SHORT, HALF]), ""),
    ],
    ids=["single", "pair", "none"],
)
def test_a_run_keeps_and_tells_what_was_cut(
    encoder: Encoder, tmp_path: Path, corpus: Corpus, note: str
) -> None:
    store, told = Store(tmp_path), note.format(encoder.name)
    first = run(encoder, corpus, store)
    again = run(encoder, corpus, store)
    assert again.equals(first)
    for result in (first, again, store.load(first.identity)):
        assert result.provenance.cut_note() == told
        assert ("cut to" in result.summary()) is bool(note)
        assert told in result.summary()
        assert told in result._repr_html_()
    assert first.provenance.cut is not None
    assert first.provenance.cut["of"] == len(corpus)


def test_the_identity_stays_and_older_results_are_counted_when_asked_for(
    encoder: Encoder, tmp_path: Path
) -> None:
    store, corpus = Store(tmp_path), make([SHORT, LONG])
    made = run(encoder, corpus, store).provenance
    assert replace(made, cut=None).identity == made.identity
    file = tmp_path / made.key / "result.json"
    record = json.loads(file.read_text())
    assert record["provenance"].pop("unknown") == {"pieces": 0, "of": 126, "token": "[UNK]"}
    assert record["provenance"].pop("cut") == {
        "texts": 1, "of": 2, "tokens": LIMIT, "asked": False,
    }  # fmt: skip
    file.write_text(json.dumps(record))
    assert store.load(made).provenance.cut_note() == ""
    assert run(encoder, corpus, store).provenance == made


def test_the_identity_is_the_one_of_before() -> None:
    of = {"name": "m", "fingerprint": "f"}
    given = Provenance("s", 1, {"a": 1}, of, of, cut={"texts": 1, "of": 2, "tokens": 9})
    assert given.identity == "c3c66559c0fb0e39"


def test_the_commands_say_it(folder: Path, tmp_path: Path) -> None:
    def bertology(*words: str) -> str:
        done = CliRunner().invoke(app, [*words, "--store", str(tmp_path / "results")])
        assert done.exit_code == 0, done.output
        return done.stdout

    def run_on(*lines: str) -> str:
        file = tmp_path / f"{len(lines)}.txt"
        file.write_text("\n".join(lines))
        return bertology("run", "reading", "--model", str(folder), "--corpus", str(file))

    told = f"1 of 2 texts was cut to 64 tokens, the most that {folder} takes."
    shown = run_on(SHORT, LONG)
    assert told in shown.splitlines()
    assert told in run_on(SHORT, LONG).splitlines()  # from the store
    identity = Store(tmp_path / "results").list()[0].identity
    assert told in bertology("show", identity).splitlines()
    assert "cut to" not in run_on(SHORT, SHORT, HALF)


def cut(study: Study, encoder: Encoder, corpus: Corpus | None) -> Any:
    return text_counts(study, encoder, corpus)["cut"]


def test_the_header_says_what_was_drawn_at_random_from_what(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(f"{SHORT} {'cat ' * i}" for i in range(30)))
    words = ["run", "reading", "--model", str(folder), "--corpus", str(file), "--limit", "12"]
    done = CliRunner().invoke(app, [*words, "--store", str(tmp_path / "results")])
    assert done.exit_code == 0, done.output
    assert "12 examples drawn at random from 30" in " ".join(done.stdout.split())
    assert "drawn" not in shown(Store(tmp_path / "other"), folder, file)


def shown(store: Store, folder: Path, file: Path) -> str:
    words = ["run", "reading", "--model", str(folder), "--corpus", str(file)]
    done = CliRunner().invoke(app, [*words, "--store", store.url])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_corpus_knows_what_it_was_drawn_from() -> None:
    whole = make([SHORT] * 30)
    assert (whole.drawn_from, whole.take(30).drawn_from) == (None, None)
    assert whole.take(12).drawn_from == whole.take(12).take(5).drawn_from == 30
    assert whole.take(12).fingerprint == whole.take(12, seed=0).fingerprint
    assert whole.take(12)[:3].drawn_from is None  # the first ones, not drawn at random


def test_without_a_limit_a_tokenizer_or_a_corpus_nothing_is_counted(encoder: Encoder) -> None:
    corpus, study = make([SHORT, LONG]), Reading()
    free = Encoder(tiny.model("t5"), tiny.tokenizer(WORDS, max_length=10**30))
    bare = Encoder(tiny.model("bert"), None)
    assert cut(study, encoder, corpus) is not None
    assert cut(study, encoder, None) is None
    assert cut(study, free, corpus) is None
    assert text_counts(study, free, corpus)["unknown"] is not None
    assert cut(study, bare, corpus) is None


@dataclass(frozen=True)
class Sampled(SampledStudy):
    """Looks at some examples."""


def test_only_texts_that_a_study_reads_are_counted(
    encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = make([SHORT, LONG] * 10)
    study = Sampled(examples=6, seed=1)
    found = cut(study, encoder, corpus)
    assert found is not None
    long = study.shown(corpus).texts.count(LONG)
    assert (found["texts"], found["of"]) == (long, 6)
    assert cut(PretrainingObjectives(), encoder, corpus) is None
    monkeypatch.setattr(FineTuningStarts, "load_train", lambda self, corpus: make([LONG, SHORT]))
    starts = FineTuningStarts(max_length=5)
    assert cut(starts, encoder, make([SHORT])) == {
        "texts": 3, "of": 3, "tokens": 5, "asked": True,
    }  # fmt: skip
    asked = Provenance("s", 1, {}, {"fingerprint": "f"}, cut=cut(starts, encoder, corpus))
    assert asked.cut_note() == "22 of 22 texts were cut to 5 tokens, as was asked."


def test_sentences_outside_the_limits_of_a_relation_are_not_counted(encoder: Encoder) -> None:
    def sentence(text: str) -> Example:
        words = text.split()
        links = {"subject": 1, "verb": 4, "words": words}
        return Example(text, text, annotations=links)

    texts = ["the cat hears and sees", f"the cat hears and sees {LONG}"]
    fields = {Field.TEXT, Field.WORDS, Field.SUBJECT, Field.VERB}
    corpus = Corpus("linked", [sentence(t) for t in texts], frozenset(fields))
    for limit, of, longer in ((12, 1, 0), (0, 2, 1)):
        study = RelationHeads(relation="verb-subject", max_tokens=limit)
        found = cut(study, encoder, corpus)
        assert found is not None
        assert (found["of"], found["texts"]) == (of, longer)


def test_the_atlas_says_it_without_the_folder_of_the_model(tmp_path: Path) -> None:
    store, told = Store(tmp_path), "cut to 64 tokens, the most that the model takes."
    store.save(toy.make(toy.MODEL, cut={"texts": 1200, "of": 3000, "tokens": LIMIT}))
    page = atlas_page(gather(store, "toy"), lambda study: read_about("Does it?"))
    assert f"1,200 of 3,000 texts were {told}" in page
    assert told not in atlas_page(_uncut(tmp_path / "other"), lambda study: read_about("Does it?"))


def _uncut(place: Path) -> Any:
    Store(place).save(toy.make(toy.MODEL))
    return gather(Store(place), "toy")
