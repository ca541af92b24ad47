"""Zero-shot transfer: states that languages share carry a task over, and others do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from typer.testing import CliRunner

import planted_links
import tiny
from bertology.cli.main import app
from bertology.data.corpus import Corpus, Example, Field, Task
from bertology.data.loading import load_corpus
from bertology.errors import CapabilityError, DataError, ParameterError, UnknownNameError
from bertology.model.encoder import Encoder
from bertology.results.result import Result
from bertology.results.store import Store
from bertology.stats.language_pairs import Pairs, over_languages, partial_ranks
from bertology.studies.languages.zero_shot_transfer import ZeroShotTransfer
from bertology.studies.languages.zero_shot_transfer import data as module
from bertology.studies.languages.zero_shot_transfer.data import TEST, TRAIN, split
from bertology.train.probes import head_choice
from result_conformance import ResultConformance, claims_of

CODES = ("de", "en", "fr", "it", "ja", "ko", "ru")
TAGS = ("NOUN", "VERB", "ADJ")
KINDS, LONG, WIDTH = 40, 6, 16
PREFIX = "primer-multilingual."


def words_of(code: str) -> list[str]:
    """A language's own words: no piece is in two languages."""
    return [f"{code}{'abcdefghij'[i % 10]}{'klmn'[i // 10]}" for i in range(KINDS)]


def tag_of(number: int) -> str:
    return TAGS[number % len(TAGS)]


def corpus(
    items: int = 100, *, codes: tuple[str, ...] = CODES, seed: int = 0, dealt: bool = False
) -> Corpus:
    """The same items in each language; `dealt`: tags are of chance."""
    rng, examples = np.random.default_rng(seed), []
    for item in range(items):
        numbers = rng.integers(KINDS, size=LONG)
        heads = [-1, *range(LONG - 1)]
        for code in codes:
            words = [words_of(code)[n] for n in numbers]
            tags = [tag_of(int(rng.integers(3)) if dealt else int(n)) for n in numbers]
            about = {
                "words": words, "pos": tags, "heads": heads, "language": code, "item": str(item),
            }  # fmt: skip
            examples.append(Example(f"{code}/{item}", " ".join(words), annotations=about))
    fields = {Field.TEXT, Field.WORDS, Field.POS, Field.HEADS, Field.LANGUAGE, Field.ITEM}
    return Corpus("made", examples, frozenset(fields))


def model(kind: str, *, seed: int = 0, mlm: bool = False) -> hf.BertModel:
    """`shared`: words with one meaning have one state; `own`: each language has its own states.

    A word's meaning is its number and tag; half of the numbers are never seen by a table of pieces
    in the other languages, since no piece is shared.
    """
    config = hf.BertConfig(
        vocab_size=5 + len(CODES) * KINDS, hidden_size=WIDTH, num_hidden_layers=2,
        num_attention_heads=2, intermediate_size=16, max_position_embeddings=32,
    )  # fmt: skip
    torch.manual_seed(seed)
    made = hf.BertForMaskedLM(config) if mlm else hf.BertModel(config, add_pooling_layer=False)
    made.eval()
    if kind == "random":
        return made
    rng = torch.Generator().manual_seed(seed)
    tags = torch.randn(len(CODES), len(TAGS), WIDTH, generator=rng) * 2
    with torch.no_grad():
        rows = made.get_input_embeddings().weight
        made.base_model.embeddings.position_embeddings.weight.zero_()
        for at in range(len(CODES)):
            of = tags[0 if kind == "shared" else at]
            for number in range(KINDS):
                noise = torch.randn(WIDTH, generator=rng) * 0.3
                rows[5 + at * KINDS + number] = of[number % len(TAGS)] + noise
    return made


def encoder(kind: str, *, seed: int = 0, mlm: bool = False) -> Encoder:
    words = [word for code in CODES for word in words_of(code)]
    head = {"head": "mlm"} if mlm else {}
    return Encoder(model(kind, seed=seed, mlm=mlm), tiny.tokenizer(words, max_length=32), **head)


STUDY = ZeroShotTransfer(seeds=4, random_copies=6, ask="tags")


def run(kind: str, given: Corpus, study: ZeroShotTransfer = STUDY, **how: Any) -> Any:
    return planted_links.ask(study, encoder(kind, **how), given)


class TestResult(ResultConformance):
    measures = frozenset({"right-transfer", "right-centred", "right-source"})

    @staticmethod
    def make() -> Result:
        return run("shared", corpus(), replace(STUDY, swap=("de",), swap_steps=5), mlm=True)

    def test_what_languages_share_is_told_in_all(self, result: Result) -> None:
        pairs = result.table("pairs").set_index("target")
        assert set(pairs.index) == set(CODES) - {"en"}
        assert (pairs["score"] > 0.9).all()
        assert pairs["sure"].all()
        assert (pairs["baseline"] < 0.6).all()
        gain = result.evidence()["transfer_gain"]
        assert gain.surely_there
        assert "6 of 6 other languages" in result.answer

    def test_claims_of_transfer_hold(self, result: Result) -> None:
        found = claims_of(result)
        assert found[f"{PREFIX}zero-shot-transfer"] == "holds"
        assert found[f"{PREFIX}other-scripts"] == "holds"
        assert found[f"{PREFIX}frozen-bottom"] == "not-applicable"

    def test_a_vocabulary_that_was_not_learnt_tells_nothing(self, result: Result) -> None:
        assert claims_of(result)[f"{PREFIX}swapped-vocabulary"] != "holds"


class TestMatrix(ResultConformance):
    """Several languages to learn in: the figures are matrices."""

    measures = frozenset({"right-transfer"})

    @staticmethod
    def make() -> Result:
        return run("shared", corpus(60), replace(STUDY, source=("all",), seeds=3, random_copies=3))

    def test_every_pair_is_there(self, result: Result) -> None:
        pairs = result.table("pairs")
        assert len(pairs) == len(CODES) * (len(CODES) - 1)
        assert {"matrix", "gains"} <= set(result.figures())
        assert result.evidence()["transfer_gain"].low > 0.2


def test_languages_with_states_of_their_own_share_nothing() -> None:
    result = run("own", corpus(codes=CODES[:4]))
    assert result.table("sources")["learnt"].all()
    assert not result.table("pairs")["sure"].all()
    assert "holds" not in {claims_of(result)[PREFIX + name] for name in ("zero-shot-transfer",)}


@pytest.mark.parametrize("seed", range(2))
def test_random_models_and_labels_of_chance_bear_nothing_out(seed: int) -> None:
    for kind, dealt in (("random", False), ("shared", True)):
        result = run(kind, corpus(40, codes=CODES[:4], seed=seed, dealt=dealt), seed=seed)
        assert "holds" not in claims_of(result).values()
        assert result.answer.startswith("Nothing is sure")


def test_centring_takes_off_what_languages_are_moved_by() -> None:
    reader = encoder("shared")
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        rows = reader.model.get_input_embeddings().weight
        for at in range(len(CODES)):
            rows[5 + at * KINDS : 5 + (at + 1) * KINDS] += torch.randn(WIDTH, generator=rng) * 4
    result = planted_links.ask(STUDY, reader, corpus(codes=CODES[:4]))
    pairs = result.table("pairs")
    assert (pairs["centred"] - pairs["score"]).mean() > 0.1
    assert result.evidence()["centring_gain"].value > 0.1


def test_arcs_to_the_word_before_are_learnt_where_places_are_in_states(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(head_choice, "STEPS", 60)
    monkeypatch.setattr(head_choice, "RATE", 0.02)
    reader = encoder("shared")
    with torch.no_grad():  # places: the next one is the same vector, moved by one dimension
        table = reader.model.embeddings.position_embeddings.weight
        table.copy_(3 * torch.eye(table.shape[0], table.shape[1]))
    given = corpus(60, codes=CODES[:3])
    result = planted_links.ask(
        ZeroShotTransfer(seeds=1, random_copies=2, ask="arcs"), reader, given
    )
    assert (result.table("pairs")["score"] > 0.8).all()
    assert (result.table("pairs")["baseline"] > 0.7).all()  # which an offset tells as well


TASK = Task("made", "classification", ("a", "b"), ("accuracy",))


def labelled(items: int = 60) -> Corpus:
    """Whether most words of a text are nouns."""
    given = corpus(items, codes=CODES[:3])
    known = ("language", "item")
    examples = [
        Example(
            one.id, one.text, label=int(one.get("pos").count("NOUN") >= 2),
            annotations={name: one.get(name) for name in known},
        )
        for one in given.examples
    ]  # fmt: skip
    return Corpus(
        "labelled", examples, frozenset({Field.TEXT, Field.LABEL, Field.LANGUAGE, Field.ITEM}), TASK
    )


def test_labels_of_texts_are_told_by_probes() -> None:
    result = run("shared", labelled(200), ZeroShotTransfer(seeds=2, random_copies=2))
    pairs = result.table("pairs")
    assert result.facts["task"] == "label"
    assert (pairs["score"] > pairs["baseline"] + 0.1).all()


def test_pairs_of_texts_are_read_text_by_text() -> None:
    one = labelled(40)
    pairs = [replace(e, text_b=e.text) for e in one.examples]
    given = replace(one, examples=pairs, fields=one.fields | {Field.TEXT_B})
    result = run("shared", given, ZeroShotTransfer(seeds=2, random_copies=2))
    assert len(result.table("pairs")) == 2


def test_whole_and_frozen_models_are_fine_tuned() -> None:
    study = ZeroShotTransfer(seeds=2, learn="finetune", frozen=(1,), epochs=1, learning_rate=1e-3)
    result = run("shared", labelled(40), study)
    assert list(result.table("variants")["title"]) == [] or "frozen" in str(
        result.table("variants")["title"].iloc[0]
    )
    assert not result.measures()
    assert result.table("pairs")["shuffled"].isna().all()
    assert study.parts(encoder("random").shape, labelled(20)) == [
        "whole-seed-0", "frozen-1-seed-0", "whole-seed-1", "frozen-1-seed-1",
    ]  # fmt: skip


def test_no_scored_sentence_translates_one_that_taught() -> None:
    given = corpus(40)
    taught = split(given, None, "en", 0)
    items = np.array([e.get("item") for e in taught.corpus])
    assert not set(items[taught.role == TEST]) & set(items[taught.role == TRAIN])
    assert np.mean(taught.role == TEST) == pytest.approx(0.2)


def test_other_data_teach_and_all_of_the_corpus_is_scored() -> None:
    taught = split(corpus(10), corpus(30, codes=("en",), seed=5), "en", 0)
    assert (taught.role[:70] == TEST).all()
    assert taught.taught == [CODES.index("en")]
    plain = corpus(30, codes=("en",), seed=5)
    unnamed = replace(plain, fields=plain.fields - {Field.LANGUAGE})
    assert split(corpus(10), unnamed, "en", 0).taught == [CODES.index("en")]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Texts in three languages to score, and others to learn from."""
    found = []
    for name, items in (("asked", 24), ("lesson", 30)):
        lines = ["text,label,language,item"]
        for item in range(items):
            word = ("a good film", "a bad film")[item % 2]
            lines += [f"{word} of {name} {item},{item % 2},{code},{item}" for code in CODES[:3]]
        found.append(tmp_path / f"{name}.csv")
        found[-1].write_text("\n".join(lines), encoding="utf-8")
    return found[0], found[1]


def test_of_other_data_only_languages_that_teach_are_read(files: tuple[Path, Path]) -> None:
    given = load_corpus(files[0], languages="de,fr")
    study = ZeroShotTransfer(source=("fr",), train=str(files[1]))
    taught = study.taught(given)
    assert taught.taught == [taught.codes.index("fr")]
    assert len(taught.corpus) == 48 + 30
    same = replace(study, train=str(files[0]))
    with pytest.raises(ParameterError, match="another split"):
        same.check(encoder("random"), replace(given, task=TASK))


def test_the_command_takes_some_languages_and_other_data(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    reader = tiny.save_reader(tmp_path / "tiny")
    given = ["--model", reader, "--corpus", files[0], "--ask", "label", "--languages", "de,en"]
    more = ["--train", files[1], "--seeds", "2", "--copies", "2", "--store", tmp_path / "store"]
    asked = ["run", "zero-shot-transfer", *map(str, [*given, *more])]
    done = CliRunner().invoke(app, asked, prog_name="bertology")
    assert done.exit_code == 0, done.output
    store = Store(str(tmp_path / "store"))
    (about,) = store.list("zero-shot-transfer")
    assert list(store.load(about).tables["pairs"]["target"]) == ["de"]


def test_what_does_not_fit_is_refused() -> None:
    reader, given = encoder("random"), corpus(30)
    with pytest.raises(UnknownNameError, match="xx"):
        ZeroShotTransfer(source=("xx",)).check(reader, given)
    with pytest.raises(ParameterError, match="learn"):
        ZeroShotTransfer(learn="finetune").check(reader, given)
    with pytest.raises(ParameterError, match="frozen"):
        ZeroShotTransfer(frozen=(1,)).check(reader, given)
    with pytest.raises(ParameterError, match="swap"):
        ZeroShotTransfer(ask="arcs", swap=("de",)).check(reader, given)
    with pytest.raises(DataError, match="one language"):
        ZeroShotTransfer().check(reader, corpus(30, codes=("en",)))
    with pytest.raises(CapabilityError, match="label"):
        ZeroShotTransfer(ask="label").check(reader, given)


def test_sizes_are_read_from_the_record_of_a_model(tmp_path: Path) -> None:
    record = '{"text": {"sources": [{"name": "de-000.txt.xz", "sentences": 7},' + (
        ' {"name": "de-001.txt.xz", "sentences": 2}, {"name": "wiki.txt", "sentences": 5}]}}'
    )
    (tmp_path / "bertology.json").write_text(record, encoding="utf-8")
    reader: Any = SimpleNamespace(spec={"name": str(tmp_path)})
    sizes = module.pretraining_sizes(reader, ("de", "en"))
    assert sizes[0] == 9
    assert np.isnan(sizes[1])
    assert np.isnan(module.pretraining_sizes(SimpleNamespace(spec=None), ("de",))).all()  # type: ignore[arg-type]


# Statistics of pairs ----------------------------------------------------------------------------


def test_partial_ranks_are_those_of_residuals() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=200)
    x, y = z + 0.3 * rng.normal(size=200), z + 0.3 * rng.normal(size=200)
    assert partial_ranks(x, y, []) > 0.8
    assert abs(partial_ranks(x, y, [z])) < 0.2
    assert np.isnan(partial_ranks(x, np.zeros(200), []))


@pytest.mark.parametrize("sources", [1, 10])
def test_relations_of_chance_are_seldom_sure(sources: int) -> None:
    """Also where languages are easy or hard, and near or far, by themselves."""
    rng, false, times = np.random.default_rng(0), 0, 20
    for _ in range(times):
        n = 10
        values = rng.normal(size=(n, n)) * 0.3 + rng.normal(size=n)[None]
        known = rng.normal(size=(n, n)) * 0.3 + rng.normal(size=n)[None]
        np.fill_diagonal(values, np.nan)
        found = Pairs(values[:sources], range(sources)).relation(known)
        assert found is not None
        false += found.excludes(0.0)
    assert false <= 4  # one is expected; more than four in one of 400 cases


def test_a_relation_is_found_and_means_are_over_languages() -> None:
    rng = np.random.default_rng(0)
    known = rng.normal(size=(12, 12))
    values = known + 0.3 * rng.normal(size=(12, 12))
    np.fill_diagonal(values, np.nan)
    found = Pairs(values, range(12)).relation(known)
    assert found is not None
    assert found.low > 0.6
    assert found.tested is not None
    assert found.tested[1] < 0.01
    alone = over_languages(values[:1], [0], 0.95)
    assert alone is not None
    assert alone.n == 11
    spread = over_languages(np.where(np.isnan(values), np.nan, np.arange(12.0)), range(12), 0.95)
    assert spread is not None
    assert spread.high - spread.low > 3  # not that of 132 pairs
