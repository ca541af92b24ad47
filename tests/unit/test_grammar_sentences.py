"""Laws of the annotated sentences: trees are trees, positions inside, seeds settle all."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from functools import cache
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bertology.data import grammar
from bertology.data.corpus import Example, Field
from bertology.data.grammar.lexicon import LEXICON, article, third_person
from bertology.data.grammar.paraphrase import write
from bertology.data.grammar.sentences import draw_sentences
from bertology.errors import ParameterError, UnknownNameError

UPOS = {
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT",
    "SCONJ", "VERB",
}  # fmt: skip
RELATIONS = {
    "root", "nsubj", "nsubj:pass", "obj", "iobj", "obl", "obl:agent", "obl:tmod", "obl:npmod",
    "nmod", "nmod:poss", "amod", "det", "nummod", "case", "advmod", "aux", "aux:pass", "cop",
    "ccomp", "xcomp", "csubj", "advcl", "acl:relcl", "mark", "conj", "cc", "punct", "expl",
}  # fmt: skip


@cache
def many() -> list[Example]:
    """Made where they are used: every worker imports this file."""
    return grammar.sentences(5000, seed=11)


def check_tree(example: Example) -> None:
    heads, relations = example.get("heads"), example.get("relations")
    size = len(example.get("words"))
    for name in ("lemmas", "pos", "heads", "relations"):
        assert len(example.get(name)) == size, example.text
    assert [i for i, h in enumerate(heads) if h == -1] == [relations.index("root")], example.text
    assert all(-1 <= h < size and h != i for i, h in enumerate(heads)), example.text
    for start in range(size):
        at, steps = start, 0
        while at != -1:
            at, steps = heads[at], steps + 1
            assert steps <= size, f"cycle in {example.text}"
    assert set(relations) <= RELATIONS
    assert set(example.get("pos")) <= UPOS


def check_positions(example: Example) -> None:
    size = len(example.get("words"))
    inside = [example.get("subject"), example.get("verb"), *example.get("negation")]
    if example.get("object") is not None:
        inside.append(example.get("object"))
    assert all(0 <= i < size for i in inside), example.text
    spans = list(example.get("roles").values())
    spans += [span for cluster in example.get("coreference") for span in cluster]
    assert all(0 <= a < b <= size for a, b in spans), example.text
    assert example.get("roles"), example.text
    assert example.get("frame")
    assert example.get("tense") in ("past", "present", "future")
    assert example.get("number") in ("singular", "plural")


def check_text(example: Example) -> None:
    at = 0
    for word in example.get("words"):
        found = example.text.find(word, at)
        assert found >= 0, (word, example.text)
        assert example.text[at:found].strip() == ""
        at = found + len(word)
    assert at == len(example.text)
    assert example.text[0].isupper()
    assert example.text[-1] in ".?"
    assert "  " not in example.text


@settings(max_examples=40, deadline=None)
@given(st.integers(min_value=0, max_value=2**31))
def test_any_seed_gives_well_formed_sentences(seed: int) -> None:
    for example in grammar.sentences(25, seed):
        check_tree(example)
        check_positions(example)
        check_text(example)


def test_many_sentences_are_well_formed() -> None:
    for example in many():
        check_tree(example)
        check_positions(example)
        check_text(example)


def test_trees_are_projective() -> None:
    for example in many()[:1500]:
        heads = example.get("heads")
        arcs = [(min(i, h), max(i, h)) for i, h in enumerate(heads) if h >= 0]
        assert not any(a < c < b < d for a, b in arcs for c, d in arcs), example.text


def test_finite_verbs_agree_with_their_subjects() -> None:
    """Present-tense "be" and "have" beside a noun subject show its number."""
    singular, plural = {"is", "was", "has", "does"}, {"are", "were", "have", "do"}
    checked = 0
    for example in many():
        words, heads, relations = (example.get(n) for n in ("words", "heads", "relations"))
        subject, root = example.get("subject"), relations.index("root")
        if relations[subject] not in ("nsubj", "nsubj:pass") or heads[subject] != root:
            continue
        if words[subject].lower() in ("i", "you", "we", "they"):
            continue
        first = [
            words[i].lower()
            for i, h in enumerate(heads)
            if h == root and relations[i] in ("aux", "cop", "aux:pass")
        ][:1]
        if first and first[0] in singular | plural and "who" not in words[:1]:
            assert (first[0] in plural) == (example.get("number") == "plural"), example.text
            checked += 1
    assert checked > 800


def test_subject_and_object_carry_their_relations() -> None:
    for example in many():
        relations = example.get("relations")
        assert relations[example.get("subject")] in {"nsubj", "nsubj:pass", "expl"}, example.text
        if example.get("object") is not None:
            assert relations[example.get("object")] == "obj"
        assert example.get("pos")[example.get("verb")] in ("VERB", "AUX")


def test_role_spans_are_whole_phrases() -> None:
    """No span cuts a phrase: exactly one word of a span has its head outside of it."""
    for example in many():
        heads = example.get("heads")
        for role, (start, end) in example.get("roles").items():
            outside = [i for i in range(start, end) if not start <= heads[i] < end]
            assert len(outside) == 1, (role, example.text)


def test_coreferent_mentions_are_pronouns_after_a_first_description() -> None:
    clusters = alone = 0
    for example in many():
        pos, relations = example.get("pos"), example.get("relations")
        for cluster in example.get("coreference"):
            assert len(cluster) == len(set(cluster))
            assert all(relations[a] != "case" for a, _ in cluster), "'to the castle' mentions none"
            if len(cluster) == 1:
                alone += 1
                continue
            clusters += 1
            kinds = ["PRON" if pos[b - 1] == "PRON" and b - a == 1 else "NP" for a, b in cluster]
            assert kinds.count("PRON") >= 1, example.text
    assert clusters > 600
    assert alone > clusters


def test_negation_marks_exactly_the_negation_words() -> None:
    for example in many():
        found = [
            i
            for i, w in enumerate(example.get("words"))
            if w.lower() in ("not", "n't", "never", "no")
        ]
        assert found == example.get("negation"), example.text
    assert sum(bool(e.get("negation")) for e in many()) > 300


def test_articles_suit_the_next_word() -> None:
    for example in many():
        words, lemmas = example.get("words"), example.get("lemmas")
        for i, word in enumerate(words[:-1]):
            if lemmas[i] == "a":
                assert word.lower() == article(words[i + 1]), example.text


def test_mass_nouns_are_never_plural_or_counted() -> None:
    mass = {n.lemma: n.plural for s in ("foodmass", "drink") for n in LEXICON.sorts[s]}
    for example in many():
        words, pos = example.get("words"), example.get("pos")
        for i, word in enumerate(words):
            if pos[i] == "NOUN" and word.lower() in mass.values():
                pytest.fail(example.text)
            if pos[i] == "NOUN" and word.lower() in mass and i:
                assert words[i - 1].lower() not in ("a", "an", "many", "two", "every")


def test_there_is_a_variety_of_constructions_and_features() -> None:
    relations = {r for e in many() for r in e.get("relations")}
    assert relations == RELATIONS
    assert {e.get("tense") for e in many()} == {"past", "present", "future"}
    assert {e.get("aspect") for e in many()} == {"simple", "progressive", "perfect"}
    assert len({e.get("frame") for e in many()}) > 80
    roles = {role for e in many() for role in e.get("roles")}
    assert {"agent", "patient", "theme", "recipient", "experiencer", "stimulus"} <= roles


def test_fifty_thousand_distinct_sentences() -> None:
    drawn = islice(draw_sentences(3), 56_000)
    assert len({write(whole) for whole in drawn}) >= 50_000


def test_the_lexicon_has_more_than_600_words() -> None:
    assert len(LEXICON.words) >= 600
    used = {lemma for e in many() for lemma in e.get("lemmas")}
    assert len(used & LEXICON.words) >= 600
    assert {w for w in used if w not in LEXICON.words} <= {".", ",", "?"}


def test_paradigms() -> None:
    assert [third_person(w) for w in ("try", "watch", "play", "fix")] == [
        "tries",
        "watches",
        "plays",
        "fixes",
    ]
    forms = {v.lemma: (v.past, v.participle, v.ing) for v in LEXICON.transitive}
    assert forms["steal"] == ("stole", "stolen", "stealing")
    assert forms["drop"] == ("dropped", "dropped", "dropping")
    assert forms["carry"] == ("carried", "carried", "carrying")
    assert [article(w) for w in ("honest", "apple", "uniform", "useful", "old")] == [
        "an", "an", "a", "a", "an",
    ]  # fmt: skip


def test_the_same_seed_gives_the_same_sentences_in_another_process() -> None:
    code = (
        "import hashlib; from bertology.data import grammar; "
        "t = '|'.join(str(dict(e.annotations)) + e.text for e in grammar.sentences(300, 5)); "
        "print(hashlib.sha256(t.encode()).hexdigest())"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for hash_seed in ("1", "2")
    }
    here = "|".join(str(dict(e.annotations)) + e.text for e in grammar.sentences(300, 5))
    assert runs == {hashlib.sha256(here.encode()).hexdigest()}
    assert here != "|".join(e.text for e in grammar.sentences(300, 6))


def test_a_shorter_corpus_is_the_beginning_of_a_longer_one() -> None:
    short, long = grammar.corpus("grammar", size=20), grammar.corpus("grammar", size=60)
    assert [e.text for e in short] == [e.text for e in long][:20]


def test_corpus_declares_its_fields_and_how_to_load_it_again() -> None:
    corpus = grammar.corpus("grammar", split="test", size=30, seed=4)
    assert corpus.fields >= {Field.WORDS, Field.HEADS, Field.ROLES, Field.COREFERENCE}
    assert corpus.origin == {"name_or_path": "grammar", "split": "test", "limit": 30, "seed": 4}
    for field in corpus.fields - {Field.TEXT}:
        assert all(field.value in e.annotations for e in corpus)
    assert len({e.id for e in corpus}) == 30


@pytest.mark.parametrize("name", ["grammar", "grammar-agreement"])
def test_default_sizes(name: str) -> None:
    assert len(grammar.corpus(name)) == 1000
    assert grammar.SIZES == {"train": 4000, "validation": 1000, "test": 1000}


def test_bad_requests_are_refused_with_names_that_would_do() -> None:
    with pytest.raises(UnknownNameError, match="grammar-paraphrase"):
        grammar.corpus("grammar-paraphrases")
    with pytest.raises(UnknownNameError, match="validation"):
        grammar.corpus("grammar", split="valid")
    with pytest.raises(UnknownNameError, match="lexical_overlap"):
        grammar.corpus("grammar-entailment", lexical_overlaps=False)
    with pytest.raises(ParameterError, match="'size'"):
        grammar.corpus("grammar", size=0)
    with pytest.raises(ParameterError, match="'constituent'"):
        grammar.corpus("grammar-entailment", constituent="no")
