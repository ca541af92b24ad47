"""The readers of clozes: facts in their wordings, diagnostics, numbers, choices, polarity items."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from bertology.data import Field, load_corpus
from bertology.data.clozes import sentences_of, with_mask
from bertology.data.readers import READERS, clozes, lama
from bertology.errors import BertologyError, DataError, ParameterError


def lines(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def table(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(row.replace(" | ", "\t") for row in rows) + "\n", encoding="utf-8")
    return path


def test_a_blank_is_spelt_in_one_way() -> None:
    assert with_mask(" Two <mask> here. ", "x") == "Two [MASK] here."
    assert with_mask("{mask} it is.", "x") == "[MASK] it is."
    with pytest.raises(DataError, match=r"x: 'no blank' has no blanks; one \[MASK\]"):
        with_mask("no blank", "x")
    with pytest.raises(DataError, match="has 2 blanks"):
        with_mask("[MASK] and <mask>", "x")


def test_facts_of_ones_own_in_many_wordings(tmp_path: Path) -> None:
    facts = lines(
        tmp_path / "facts.jsonl",
        [
            {"entity": "Nero", "answer": "Rome", "relation": "city"},
            {"entity": "Bach", "answer": ["Leipzig", "Weimar"], "relation": "city"},
            {"entity": "Bach", "answer": "music", "relation": "field"},
        ],
    )
    wordings = [
        {"relation": "city", "template": "[X] lived in [Y].", "type": "N-1"},
        {"relation": "city", "template": "[Y] was the city of [X]."},
        {"relation": "city", "template": "[X] lived in [Y]."},
        {"relation": "field", "template": "[X] made [Y]."},
    ]
    lines(tmp_path / "templates.jsonl", wordings)
    corpus = load_corpus(facts, reader="lama", templates="templates.jsonl")
    assert {Field.ENTITY, Field.WORDINGS, Field.ANSWER, Field.GROUP} <= corpus.fields
    assert [e.text for e in corpus] == [
        "Nero lived in [MASK].", "Bach lived in [MASK].", "Bach made [MASK].",
    ]  # fmt: skip
    assert list(sentences_of(corpus[1])) == [
        "Bach lived in [MASK].",
        "[MASK] was the city of Bach.",
    ]
    assert corpus[1].get("answer") == ["Leipzig", "Weimar"]
    assert corpus[0].get("cardinality") == "N-1"
    # Wordings are shared, not copied.
    assert corpus[0].get("wordings") is corpus[1].get("wordings")
    assert load_corpus(**corpus.origin).fingerprint == corpus.fingerprint
    one = load_corpus(facts, reader="lama", templates="templates.jsonl", only="field")
    assert [e.get("entity") for e in one] == ["Bach"]


def test_templates_of_a_folder_of_text_and_of_every_fact(tmp_path: Path) -> None:
    facts = lines(tmp_path / "facts" / "P19.jsonl", [{"who": "Nero", "obj_label": "Antium"}])
    lines(tmp_path / "patterns" / "P19.jsonl", [{"pattern": "[X] is from [Y]."}])
    (fact,) = load_corpus(facts, reader="lama", entity="who", templates="../patterns")
    assert (fact.text, fact.get("group")) == ("Nero is from [MASK].", "P19")
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "P19.txt").write_text("[X], born in [Y].\n\n[Y]-born [X].\n")
    (fact,) = load_corpus(facts, reader="lama", entity="who", templates="../lines")
    assert list(sentences_of(fact)) == ["Nero, born in [MASK].", "[MASK]-born Nero."]
    (tmp_path / "all.txt").write_text("[X] knows [Y].\n")
    (fact,) = load_corpus(facts, reader="lama", entity="who", templates="../all.txt")
    assert fact.text == "Nero knows [MASK]."
    (fact,) = load_corpus(facts, reader="lama", entity="who", templates={"P19": "[X] of [Y]."})
    assert fact.text == "Nero of [MASK]."
    with pytest.raises(ParameterError, match="map relations to templates"):
        load_corpus(facts, reader="lama", entity="who", templates={"P19": 3})


def test_sentences_with_two_blanks_are_left_out(tmp_path: Path) -> None:
    both = [
        {"masked_sentences": [text], "obj_label": "Rome"}
        for text in ("In [MASK].", "[MASK] and [MASK].")
    ]
    assert [e.text for e in lama.read(lines(tmp_path / "a.jsonl", both))] == ["In [MASK]."]


def test_kinds_of_templates_are_kept_apart(tmp_path: Path) -> None:
    facts = lines(tmp_path / "P19.jsonl", [{"sub_label": "Nero", "obj_label": "Antium"}])
    (tmp_path / "by-hand.txt").write_text("[X] was born in [Y] .\n")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/P19.txt").write_text("[X] of [Y].\n[X] was born in [Y].\n")
    kinds = [{"manual": "by-hand.txt"}, {"mined": "mine"}]
    (fact,) = load_corpus(facts, reader="lama", templates=kinds)
    # With or without a space before the full stop it is the same wording, of both kinds.
    assert fact.get("wordings") == ("[X] was born in [Y] .", "[X] of [Y].")
    assert fact.get("wording_kinds") == ("manual mined", "mined")
    for wrong, must in (
        (["by-hand.txt"], "list kinds of templates"),
        ([{"by hand": "by-hand.txt"}], "kinds without spaces"),
    ):
        with pytest.raises(ParameterError, match=must):
            load_corpus(facts, reader="lama", templates=wrong)


def test_wrong_facts_and_templates(tmp_path: Path) -> None:
    facts = lines(tmp_path / "P19.jsonl", [{"sub_label": "Nero", "obj_label": "Antium"}])

    def load(templates: str, **columns: object) -> None:
        load_corpus(facts, reader="lama", templates=templates, **columns)

    with pytest.raises(DataError, match=r"no file or folder of templates"):
        load("none.jsonl")
    (tmp_path / "t").mkdir()
    with pytest.raises(DataError, match=r"no templates of 'P19'.*P19\.jsonl or P19\.txt"):
        load("t")
    for template, wrong in (("[X] is here.", r"no \[Y\]"), ("[X] [X] [Y]", r"2 \[X\]")):
        (tmp_path / "t.txt").write_text(template + "\n")
        with pytest.raises(DataError, match=rf"t\.txt, line 1: the template .* has {wrong}"):
            load("t.txt")
    (tmp_path / "t.jsonl").write_text('{"relation": "P19"}\n')
    with pytest.raises(DataError, match=r"t\.jsonl, line 1: 'template'"):
        load("t.jsonl")
    (tmp_path / "t.txt").write_text("\n")
    with pytest.raises(DataError, match="is empty"):
        load("t.txt")
    (tmp_path / "t.txt").write_text("[X] and [Y]\n")
    with pytest.raises(DataError, match=r"line 1: the fact has no 'city' \(asked for as answer\)"):
        load("t.txt", answer="city")
    lines(facts, [{"obj_label": "Antium"}])
    with pytest.raises(DataError, match=r"line 1: the fact has no 'sub_label' \(or 'entity'\)"):
        load("t.txt")
    facts.write_text("")
    with pytest.raises(DataError, match=r"P19\.jsonl is empty"):
        load("t.txt")
    lines(facts, [{"sub_label": "Nero", "obj_label": []}])
    with pytest.raises(DataError, match=r"no 'obj_label' \(or 'answer'\) that is text"):
        load("t.txt")


def test_negated_and_misprimed_facts(tmp_path: Path) -> None:
    fact = {
        "sub_label": "Nero",
        "obj_label": "Antium",
        "masked_sentences": ["Nero is of [MASK]."],
        "masked_negations": ["Nero is not of [MASK]."],
        "masked_misprimed": ["Rome? Nero is of [MASK]."],
    }
    corpus = lama.read(lines(tmp_path / "P19_random.jsonl", [fact]))
    assert [e.get("condition") for e in corpus] == ["plain", "negated", "misprimed"]
    assert {e.get("item") for e in corpus} == {"P19/0"}
    assert {Field.ITEM, Field.CONDITION, Field.ENTITY} <= corpus.fields
    assert corpus[2].get("prime") == "Rome"
    assert {tuple(e.get("answer")) for e in corpus} == {("Antium",)}


def test_diagnostics(tmp_path: Path) -> None:
    cprag = table(
        tmp_path / "CPRAG-102.tsv",
        "item | context_s1 | context_s2 | expected | within_category | between_category"
        " | constraint",
        "0 | Checkmate. | She was good at | chess | monopoly | football | H",
    )
    (example,) = clozes.read_lm_diagnostics(cprag)
    assert example.text == "Checkmate. She was good at [MASK]."
    assert example.get("candidates") == ("chess", "monopoly", "football")
    assert example.get("condition") == "high"
    role = table(
        tmp_path / "ROLE-88.tsv",
        "item | context | expected | exp_cloze | target | tgt_cloze | tgt_cloze(strict)",
        "61-b | which waitress the customer had  | met|seen | 0.1 | served | 0 | 0",
        "61-a | which customer the waitress had  | served | 0.6 | served | 0.6 | 0.5",
    )
    reversed_, canonical = clozes.read_lm_diagnostics(role)
    assert reversed_.text == "which waitress the customer had [MASK]."
    assert (reversed_.get("condition"), canonical.get("condition")) == ("reversed", "canonical")
    assert reversed_.get("answer") == ["met", "seen"]
    assert canonical.get("human") == {"expected": 0.6, "target": 0.6}
    assert reversed_.get("item") == canonical.get("item")
    neg = table(
        tmp_path / "NEG-136-SIMP.tsv",
        "item | context_aff | context_neg | target_aff | target_neg",
        "2 | An ant is (a|an) | An ant is not (a|an) | insect | vegetable",
    )
    yes, no = clozes.read_lm_diagnostics(neg)
    assert (yes.text, no.text) == ("An ant is an [MASK].", "An ant is not a [MASK].")
    assert no.get("candidates") == ("vegetable", "insect")
    assert no.get("candidate_texts")[1] == "An ant is not an [MASK]."


def test_wrong_diagnostics(tmp_path: Path) -> None:
    other = table(tmp_path / "other.tsv", "item", "1")
    with pytest.raises(DataError, match=r"other\.tsv is none of the diagnostics"):
        clozes.read_lm_diagnostics(other)
    role = tmp_path / "ROLE-88.tsv"
    with pytest.raises(DataError, match=r"has no column 'context'"):
        clozes.read_lm_diagnostics(table(role, "item | expected", "1 | x"))
    header = "item | context | expected | exp_cloze | target | tgt_cloze"
    with pytest.raises(DataError, match=r"a header and no rows"):
        clozes.read_lm_diagnostics(table(role, header))
    with pytest.raises(DataError, match=r"line 2: item must be a or b, not 'c'"):
        clozes.read_lm_diagnostics(table(role, header, "1-c | x | y | 0 | y | 0"))
    with pytest.raises(DataError, match=r"line 2: a share of people .* not 'many'"):
        clozes.read_lm_diagnostics(table(role, header, "1-a | x | y | many | y | 0"))
    with pytest.raises(DataError, match=r"line 2: 2 cells where 6 columns"):
        clozes.read_lm_diagnostics(table(role, header, "1-a | x"))


def test_numersense(tmp_path: Path) -> None:
    file = table(tmp_path / "train.masked.tsv", "a bird has <mask> legs. | two")
    (example,) = clozes.read_numersense(file)
    assert (example.text, example.get("answer")) == ("a bird has [MASK] legs.", ["two"])
    assert len(example.get("candidates")) == 12
    with pytest.raises(DataError, match=r"line 1: 'twelve' is not among the answers"):
        clozes.read_numersense(table(file, "a <mask> | twelve"))
    with pytest.raises(DataError, match=r"line 1: a sentence and its number"):
        clozes.read_numersense(table(file, "a <mask>"))
    with pytest.raises(DataError, match=r"line 1: 'a' has no blanks"):
        clozes.read_numersense(table(file, "a | two"))


def test_olmpics(tmp_path: Path) -> None:
    choices = [{"label": "A", "text": "younger"}, {"label": "B", "text": "older"}]
    question = {"stem": "He is [MASK] than her .", "choices": choices}
    file = tmp_path / "age_comparison" / "x_dev.jsonl"
    lines(file, [{"id": "q", "question": question, "answerKey": "B"}])
    (example,) = clozes.read_olmpics(file)
    assert example.get("answer") == ["older"]
    assert example.get("candidates") == ("younger", "older")
    assert example.get("group") == "age_comparison"
    with pytest.raises(DataError, match=r"line 1: the answer 'C' is not among the choices"):
        clozes.read_olmpics(lines(file, [{"question": question, "answerKey": "C"}]))
    with pytest.raises(DataError, match=r"line 1 is not of oLMpics' form"):
        clozes.read_olmpics(lines(file, [{"stem": "x"}]))


NPI = "environment | npi | licensor | scope | npi_present | paradigm | acceptability | sentence"


def test_polarity_items(tmp_path: Path) -> None:
    rows = (
        "only | any | 1 | 1 | 1 | 7 | 1 | Only she saw any bird.",
        "only | any | 0 | 1 | 1 | 7 | 0 | Then she saw any bird.",
        "only | any | 1 | 0 | 1 | 7 | 0 | Any bird saw only her.",
    )
    sentences = clozes.read_npi(table(tmp_path / "examples.tsv", NPI, *rows))
    assert [e.label for e in sentences] == [1, 0, 0]
    assert sentences[1].get("sentence_labels") == {
        "licensor": "no", "scope": "yes", "npi_present": "yes",
    }  # fmt: skip
    pairs = clozes.read_npi(table(tmp_path / "examples_within_paradigm.tsv", NPI, *rows))
    assert [(e.text, e.get("contrast"), e.get("condition")) for e in pairs] == [
        ("Only she saw any bird.", "Then she saw any bird.", "without licensor"),
        ("Only she saw any bird.", "Any bird saw only her.", "outside scope"),
    ]
    halves = (
        "negation | atall | 1 | 1 | 1 | 7 | 1 | No dog ran at all.",
        "determiner_negation_biclausal | atall | 0 | 1 | 1 | 7 | 0 | Some dog ran at all.",
    )
    whole = clozes.read_npi_paradigms(table(tmp_path / "examples.tsv", NPI, *halves))
    assert {(e.get("group"), e.get("item"), e.annotations["npi"]) for e in whole} == {
        ("determiner negation", "determiner_negation_biclausal/at all/7", "at all")
    }
    condition = "experiment=NPI-env=only-npi=any-licensor=1-scope=1-npi_present=1-paradigm=7"
    ratings = table(
        tmp_path / "ratings.tsv",
        "annotator | condition | sentence | rating | native_english | passed_check",
        f"1 | {condition} | Only she saw any bird. | 6 | 1 | 1",
        f"2 | {condition} | Only she saw any bird. | 5 | 1 | 1",
        f"3 | {condition} | Only she saw any bird. | 1 | 1 | 0",
    )
    (rated,) = clozes.read_npi(ratings)
    assert (rated.label, rated.get("ratings"), rated.get("group")) == (5.5, 2, "only")
    beginnings = table(
        tmp_path / "monotonicity_probing_sample.tsv",
        "orig_sen_idx | sen | counter_sen | token | full_npi | env | labels",
        "3 | Some men have  | No men have  | ever | ever | quantifier | upward",
    )
    (cut,) = clozes.read_npi(beginnings)
    assert (cut.text, cut.get("contrast")) == ("No men have [MASK]", "Some men have [MASK]")
    with pytest.raises(DataError, match=r"line 2: licensor must be 0 or 1"):
        clozes.read_npi(
            table(tmp_path / "examples.tsv", NPI, rows[0].replace("any | 1", "any | 2"))
        )


def test_candidates_in_tables_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("text,answer,candidates,steps\nIt is [MASK].,hot,hot|cold,2\n")
    (example,) = load_corpus(file)
    assert example.get("candidates") == ("hot", "cold")
    assert (example.get("answer"), example.get("steps")) == (["hot"], 2)
    rows = [{"text": "It is [MASK].", "answer": ["hot"], "candidates": ["hot", ""]}]
    with pytest.raises(DataError, match=r"candidates must be a list of answers"):
        load_corpus(lines(tmp_path / "mine.jsonl", rows))


def test_a_folder_or_file_may_name_the_group(tmp_path: Path) -> None:
    file = lines(tmp_path / "boolean" / "mine.jsonl", [{"text": "a", "label": 0}])
    assert load_corpus(file, grouped_by="folder")[0].get("group") == "boolean"
    assert load_corpus(file, grouped_by="file")[0].get("group") == "mine"
    with pytest.raises(ParameterError, match="be 'file' or 'folder'"):
        load_corpus(file, grouped_by="colour")


GOOD = {
    "lama": '{"sub_label": "Nero", "obj_label": "Antium", "masked_sentences": ["[MASK]: Nero."]}\n',
    "numersense": "a bird has <mask> legs.\ttwo\na dog has <mask> legs.\tfour\n",
    "olmpics": (
        '{"question": {"stem": "[MASK] it is", "choices": [{"label": "A", "text": "so"}, '
        '{"label": "B", "text": "not"}]}, "answerKey": "A"}\n'
    ),
    "med": (
        "index\tgenre\tsentence1\tsentence2\tgold_label\n"
        "1\tcrowd:upward_monotone\tA dog ran.\tA pet ran.\tentailment\n"
    ),
    "lm-diagnostics": (
        "item\tcontext_aff\tcontext_neg\ttarget_aff\ttarget_neg\n"
        "0\tA trout is (a|an)\tA trout is not (a|an)\tfish\ttool\n"
    ),
    "npi": NPI.replace(" | ", "\t") + "\nonly\tany\t1\t1\t1\t7\t1\tOnly she saw any bird.\n",
    "verb-physics": (
        ",obj1,obj2,size-maj,weight-maj,strength-maj,rigidness-maj,speed-maj\n"
        "0,person,dress,1,0,-1,-42,-42\n"
    ),
}
FILES = {"lm-diagnostics": "NEG-136-SIMP.tsv", "npi": "examples.tsv", "verb-physics": "train.csv"}


@pytest.mark.parametrize("reader", GOOD)
def test_spoilt_files_are_read_or_refused_in_words(reader: str, tmp_path: Path) -> None:
    good, rng = GOOD[reader], random.Random(reader)
    path = tmp_path / FILES.get(reader, "file.tsv")
    refused = 0
    for _ in range(150):
        at, end = sorted(rng.sample(range(len(good)), 2))
        spoilt = rng.choice(
            (
                good[:at],
                good[:at] + good[end:],
                good[:at] + rng.choice(('"', "\t", "\n", "{", "]", "null", "7", ",")) + good[at:],
                good.replace(rng.choice(good), ""),
                good[:at] + good[at:end].upper() + good[end:],
            )
        )
        path.write_text(spoilt, encoding="utf-8")
        try:
            READERS.get(reader)(path, None)
        except BertologyError:
            refused += 1
    assert refused > 20
