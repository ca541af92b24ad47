"""Languages side by side: made results with a known answer; and claims where nothing is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import planted_syntax as planted
from bertology.data.map_labels import MAP_TYPES
from bertology.errors import DataError, ParameterError
from bertology.results.compared import compared_arrays, read_compared, row_mean
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats.kinds import correlation_by_exchange, over_items, over_things
from bertology.stats.language_pairs import shared_ranks
from bertology.studies.ablation.masked_word_ablation import HEAD_COST, LEAST_LAYER, WORST_LAYER
from bertology.studies.attention.map_types import MAPS_NAMED
from bertology.studies.attention.syntax_heads import SyntaxHeads
from bertology.studies.attention.syntax_heads.found_links import ELSEWHERE, GAIN, OFFSET, SHARE
from bertology.studies.attention.token_classes import ATTENTION_TO, PARTS
from bertology.studies.joins.languages import Languages, LanguagesResult
from planted_links import ask
from result_conformance import ResultConformance, claims_of

SENTENCES, RELATIONS = 200, ("nsubj", "obj")
CODES = ("ja", "ko", "tr", "hi", "cs", "fi", "ru", "ar", "de", "en", "es", "fr", "it", "zh")
LAST, FREE = {"ja", "ko", "tr", "hi"}, {"cs", "fi", "ru"}
HEADS = [("to-head", 0, 0), ("to-head", 0, 1), ("to-dependent", 0, 0), ("to-dependent", 0, 1)]


def made(
    study: str,
    code: str,
    rows: Mapping[str, np.ndarray],
    tables: Mapping[str, pd.DataFrame] | None = None,
    **more: Any,
) -> Result:
    arrays = more.pop("arrays", None)
    corpus = {"name": "pud", "fingerprint": code, "size": SENTENCES, "languages": [code], **more}
    about = Provenance(
        study, 1, {}, {"name": "m", "fingerprint": "m"}, {"items": "same", **corpus},
        unknown={"pieces": 900 if code == "hi" else 3, "of": 3000, "token": "[UNK]"},
    )  # fmt: skip
    kept = []
    for title, values in rows.items():
        unit = "words" if "offset of" in title else "nats" if "loss" in title else "%"
        kept.append(row_mean(title, values, level=0.95, bounded=False, unit=unit))
    numbers = compared_arrays([one for one in kept if one is not None])
    return Result(about, dict(tables or {}), numbers if arrays is None else arrays.merge(numbers))


def ablation(
    code: str, rng: np.random.Generator, *, cost: float, shared: float = 1.0, informed: int = 1
) -> Result:
    """What hidden words lose without each of 4 x 6 heads; `shared` of that in every language."""
    alike = np.random.default_rng(5).gamma(1.0, 0.1, (4, 6))
    own = np.abs(rng.gamma(1.0, 0.1, (4, 6)))
    truth = shared * alike + (1 - shared) * own
    halves = truth + rng.normal(0, 0.02, (2, 4, 6))
    heads = pd.DataFrame({"layer": np.repeat(range(4), 6), "head": list(range(6)) * 4})
    layers = pd.DataFrame({"layer": range(4)})
    for table, rise in ((heads, halves.mean(axis=0).ravel()), (layers, np.arange(4.0))):
        table["rise"], table["rise_low"], table["rise_high"] = rise, rise - 0.1, rise + 0.1
        table["sure"] = table["rise_low"] > 0
    facts = {"intact_loss": 3.0, "known": 4.0 * informed, "informed": informed}
    arrays = xr.Dataset({"half_rises": (("half", "layer", "head"), halves)}, attrs=facts)
    rows = {
        title: cost * times + rng.normal(0, 0.1, SENTENCES)
        for title, times in ((HEAD_COST, 1), (WORST_LAYER, 20), (LEAST_LAYER, 0))
    }
    tables = {"heads": heads, "layers": layers}
    return made("masked-word-ablation", code, rows if informed else {}, tables, arrays=arrays)


def of_language(
    code: str, rng: np.random.Generator, *, less: float, found_at: int, follows: bool = True
) -> list[Result]:
    """Diagonals are `less` frequent, and the heads that find links do so at an offset."""
    common = np.random.default_rng(7).normal(
        0, 0.1, SENTENCES
    )  # what makes a sentence hard for all

    def near(mean: float) -> np.ndarray:
        return np.clip(mean + common + rng.normal(0, 0.05, SENTENCES), 0, 1)

    maps = {MAPS_NAMED.format(name): near(0.1) for name in MAP_TYPES}
    maps[MAPS_NAMED.format("diagonal")] = near(0.5 - less)
    classes = {ATTENTION_TO.format(name): near(0.25) for name in PARTS.values()}
    links: dict[str, np.ndarray] = {}
    for name in RELATIONS:
        links[SHARE.format(name)] = near(0.6)
        links[GAIN.format(name)] = near(0.3)
        links[ELSEWHERE.format(name)] = near(0.5)
        links[OFFSET.format(name)] = found_at + 5 * common + rng.normal(0, 0.5, SENTENCES)
        links[OFFSET.format(name)][::7] = np.nan  # sentences of which no link was found
    offsets = [found_at, 2 * found_at, -found_at]
    counted = pd.DataFrame({"offset": offsets, "links": [120, 60, 20], "found": [90, 40, 10]})
    # One head follows; the other looks at the usual offset of most languages.
    by_head = [0.7 if follows else 0.1, 0.6 if found_at < 0 else 0.1, 0.0, 0.0]
    columns = {"share": by_head, "selectivity": np.array(by_head) * 0.9}
    heads = pd.DataFrame(HEADS, columns=["direction", "layer", "head"]).assign(**columns)
    tables = {
        "found": pd.concat([counted.assign(relation=name) for name in RELATIONS]),
        "links": pd.concat([heads.assign(relation=name) for name in RELATIONS]),
        "relations": pd.DataFrame(
            {"relation": RELATIONS, "direction": "to-head", "layer": 0, "head": 0}
        ),
    }
    return [
        made("map-types", code, maps),
        made("token-classes", code, classes),
        made("syntax-heads", code, links, tables),
        ablation(code, rng, cost=0.1 + less, shared=1.0 if follows else 0.0),
    ]


def results(
    codes: Sequence[str] = CODES, *, seed: int = 0, less: float = 0.2, spread: float = 0.01,
    offset: int = 3, follows: bool = True,
) -> list[Result]:  # fmt: skip
    """Diagonals are rarer, and links stand the other way round, in languages of LAST."""
    rng = np.random.default_rng(seed)
    found = []
    for code in codes:
        own = less * (code in LAST) + rng.normal(0, spread)
        at = offset if code in LAST else -offset
        found += of_language(code, rng, less=own, found_at=at, follows=follows)
    return found


def joined(given: Sequence[Result], **how: Any) -> LanguagesResult:
    found = Languages(**{"resamples": 500, **how}).join(given)
    assert isinstance(found, LanguagesResult)
    return found


class TestResult(ResultConformance):
    @staticmethod
    def make() -> Result:
        return joined(results())

    def test_languages_are_of_their_kinds_and_unknown_ones_left_out(self, result: Result) -> None:
        kinds = result.tables["order"].set_index("language")["kind"]
        assert set(kinds[kinds == "verb-final"].index) == {"ja", "ko", "tr"}
        assert set(kinds[kinds == "freer order"].index) == FREE
        (gone,) = result.tables["left_out"].itertuples(index=False)
        assert (gone.language, gone.name) == ("hi", "Hindi")
        assert gone.why == "30.0 % of its pieces are unknown"

    def test_planted_kinds_are_told_apart(self, result: Result) -> None:
        found = result.evidence()
        assert found["verb_final_diagonal"].value == pytest.approx(-0.2, abs=0.02)
        for name in ("verb_final_diagonal", "verb_final_diagonal_of_kind"):
            assert found[name].high < -0.1
        assert found["verb_final_diagonal_of_kind"].n == 10
        assert abs(found["freer_diagonal"].value) < 0.03
        assert found["verb_final_object_offset"].value == pytest.approx(6, abs=0.1)
        assert found["verb_final_carried"].low > 0.4
        claims = claims_of(result)
        prefix = "dark-secrets-languages."
        told = {
            "diagonals-as-frequent-in-these-where-verbs-stand-last": "fails",
            "diagonals-as-frequent-in-all-where-verbs-stand-last": "fails",
            "heads-gain-as-much-in-these-where-verbs-stand-last": "holds",
            "objects-are-found-at-other-offsets-where-verbs-stand-last": "holds",
            "heads-of-other-languages-follow-where-verbs-stand-last": "holds",
            "heads-gain-as-much-in-these-where-order-is-freer": "holds",
            "hidden-words-miss-the-same-heads": "holds",
        }
        assert told == {name: claims[prefix + name] for name in told}

    def test_what_hidden_words_lose_is_told_of_languages_and_kinds(self, result: Result) -> None:
        found, table = result.evidence(), result.tables["ablation"].set_index("language")
        assert found["verb_final_head_cost"].value == pytest.approx(0.2, abs=0.03)
        assert found["verb_final_layer_cost"].value == pytest.approx(4, abs=0.3)
        assert abs(found["freer_head_cost"].value) < 0.05
        assert found["heads_shared"].low > 0.7
        assert table.loc["ja", "layer_most"] == "layer 3"
        assert table.loc["ja", "layer_least_rise"] == 0
        assert table.loc["ja", "cost"] > 0
        pairs = result.tables["shared_heads"].set_index(["language", "with"])["correlation"]
        assert len(pairs) == 13**2  # all but Hindi
        assert pairs["ja", "de"] == pytest.approx(pairs["de", "ja"])

    def test_pairing_by_sentence_is_used(self, result: Result) -> None:
        """What a sentence does to all languages cancels, so bounds are narrower than apart."""
        table = result.tables["languages"]
        alone = table[(table["number"] == "diagonal") & (table["language"] == "ja")].iloc[0]
        found = result.evidence()["verb_final_diagonal"]
        assert found.high - found.low < 0.5 * (alone["high"] - alone["low"])

    def test_where_links_are_found_stands_beside_where_they_are(self, result: Result) -> None:
        rows = result.tables["relations"].set_index(["relation", "language"])
        assert rows.loc[("obj", "ja"), "offset"] == 3
        assert rows.loc[("obj", "en"), "offset"] == -3
        assert rows.loc[("obj", "ja"), "found_at"] == pytest.approx(3, abs=0.3)
        # 30 % stand on the usual side twice as far, 10 % on the other side.
        order = result.tables["order"].set_index("language")
        assert order.loc["ja", "side_entropy"] == pytest.approx(0.469, abs=1e-3)


def test_heads_of_their_own_are_shared_no_more_often_than_promised() -> None:
    """Layers that matter more make no heads alike; nor do languages that know nothing."""
    rng, layers, sure, draws = np.random.default_rng(2), np.arange(4.0)[:, None], 0, 100
    for _ in range(draws):
        own = rng.gamma(1.0, 1.0, (5, 1, 4, 6)) + 5 * layers
        _, found = shared_ranks(own + rng.normal(0, 0.2, (5, 2, 4, 6)), resamples=199)
        assert found is not None
        sure += found.low > 0 or found.high < 0
    assert sure <= 0.05 * draws + 7  # three standard errors
    alone = joined([ablation(c, rng, cost=0.1) for c in ("ja", "cs", "de", "en")])
    assert alone.answer.startswith(
        "What hidden words lose without each head has a rank correlation"
    )
    assert set(alone.figures()) == {"languages", "shared-heads"}
    alone.figures()["languages"].draw()
    blind = [ablation(c, rng, cost=0.1, informed=0) for c in ("ja", "cs", "de", "en")]
    result = joined(blind)
    assert "heads_shared" not in result.evidence()
    name = "dark-secrets-languages.hidden-words-miss-the-same-heads"
    assert claims_of(result)[name] == "not-applicable"
    assert result.answer.startswith("Nothing is sure")


def test_a_head_that_looks_at_an_offset_is_carried_nowhere() -> None:
    found = joined(results(follows=False))
    assert found.evidence()["verb_final_carried"].value < 0.02


def test_offsets_are_not_judged_where_heads_find_no_more_than_an_offset() -> None:
    given = []
    for result in results():
        rows = {c.title: c.rows for c in read_compared(result.arrays)}
        if (title := GAIN.format("obj")) not in rows or rows[title] is None:
            given.append(result)
            continue
        rows[title] = rows[title] - 0.35
        code = str((result.provenance.corpus or {})["languages"][0])
        kept = {title: row for title, row in rows.items() if row is not None}
        given.append(made(result.provenance.study, code, kept, result.tables))
    claims = claims_of(joined(given))
    name = "dark-secrets-languages.objects-are-found-at-other-offsets-where-verbs-stand-last"
    assert claims[name] == "not-applicable"


def test_of_a_kind_little_is_told_by_two_languages() -> None:
    """Two of nine can be drawn in 36 ways; of one and two others nothing is told."""
    codes = ("ja", "ko", "ar", "de", "en", "es", "fr", "it", "zh")
    found = joined(results(codes)).evidence()
    assert found["verb_final_diagonal"].high < 0
    kinds = found["verb_final_diagonal_of_kind"]
    assert kinds.tested is not None
    assert kinds.tested[1] == pytest.approx(1 / 36)
    few = joined(results(("ja", "de", "en"))).evidence()
    assert "verb_final_diagonal_of_kind" not in few


def test_a_language_that_is_spelt_out_is_left_out() -> None:
    given = results(("ja", "tr", "de", "en"))
    for result in given:
        if (result.provenance.corpus or {})["languages"] == ["tr"] and result.provenance.unknown:
            result.provenance.unknown["of"] = 6000
    (gone,) = joined(given).tables["left_out"].itertuples(index=False)
    assert gone.language == "tr"
    assert str(gone.why).startswith("its texts take 30 pieces, those of the median language 15")


def test_results_that_are_not_of_the_same_texts_are_refused() -> None:
    ja, de = (
        of_language(code, np.random.default_rng(0), less=0, found_at=1) for code in ("ja", "de")
    )
    other = made("map-types", "de", {}, items="other")
    with pytest.raises(DataError, match="not all of the same items"):
        joined([ja[0], other])
    with pytest.raises(DataError, match="two or more"):
        joined(ja)
    with pytest.raises(ParameterError, match="one result of a study and language"):
        joined([*ja, *ja, *de])
    with pytest.raises(DataError, match="does not say which language"):
        joined([made("map-types", "de", {}, languages=[])])


def test_exchanged_languages_bear_out_no_kind_more_often_than_promised() -> None:
    rng, sure, correlated, draws = np.random.default_rng(3), 0, 0, 300
    for _ in range(draws):
        values = rng.standard_t(3, 11)
        found = over_things(values[:3], values[3:])
        assert found is not None
        sure += found.low > 0 or found.high < 0
        told = correlation_by_exchange(values, rng.normal(size=11), resamples=200)
        correlated += told.low > 0 or told.high < 0
    assert sure <= 0.05 * draws + 11  # three standard errors
    assert correlated <= 0.05 * draws + 11


def test_exchanged_sentences_set_no_languages_apart_more_often_than_promised() -> None:
    rng, sure, draws = np.random.default_rng(4), 0, 300
    weights = [0.5, 0.5, -1 / 3, -1 / 3, -1 / 3]
    for _ in range(draws):
        rows = rng.random((5, 2, 60)) + rng.random((1, 1, 60))
        rows[rng.random(rows.shape) < 0.3] = np.nan
        found, p = over_items(rows, weights)
        sure += found.low > 0 or found.high < 0
        assert (p < 0.05) == (found.low > 0 or found.high < 0)
    assert sure <= 0.05 * draws + 11


def test_no_claim_holds_of_languages_that_do_not_differ() -> None:
    """Of claims that something is there, in four draws of languages: none, or one by chance."""
    there = 0
    for seed in range(4):
        given = results(seed=seed, less=0.0, spread=0.05, offset=-1, follows=False)
        alike = [r for r in given if (r.provenance.corpus or {})["languages"][0] not in LAST]
        found = joined([*alike, *_as_verb_final(seed)])
        told = {n: v for n, v in claims_of(found).items() if n.startswith("dark-secrets-languages")}
        asked = [v for n, v in told.items() if "as-" not in n]
        there += sum(v == "holds" for v in asked)
    assert there <= 2


def _as_verb_final(seed: int) -> list[Result]:
    """Verb-final languages by name, whose heads are like all others."""
    rng = np.random.default_rng(100 + seed)
    return [
        one
        for code in ("ja", "ko", "tr")
        for one in of_language(code, rng, less=rng.normal(0, 0.05), found_at=1, follows=False)
    ]


def test_links_at_other_offsets_are_found_by_a_head_that_follows_them() -> None:
    """Planted: heads that follow det, obj and nsubj wherever they stand."""
    study = SyntaxHeads(relations=("nsubj", "obj", "det"), resamples=200)
    result = ask(study, planted.encoder(planted.model()), planted.corpus(80))
    rows = {c.title: c.estimate for c in read_compared(result.arrays)}
    found = result.table("found")
    own = result.table("relations").set_index("relation")
    for relation in ("nsubj", "obj", "det"):
        of = found[found["relation"] == relation]
        assert of["links"].sum() == own.loc[relation, "links"]
        assert (of["found"] == of["links"]).all()
        assert of.loc[of["links"].idxmax(), "offset"] == own.loc[relation, "offset"]
        assert rows[SHARE.format(relation)].value == 1
        assert rows[GAIN.format(relation)].value == pytest.approx(own.loc[relation, "gain"])
        if len(of) > 1:
            assert rows[ELSEWHERE.format(relation)].value == 1
        mean = (of["offset"] * of["links"]).sum() / of["links"].sum()
        assert rows[OFFSET.format(relation)].value == pytest.approx(mean)
