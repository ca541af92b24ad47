"""Paradigms of negative polarity items, made by the grammar: the rule says what is good."""

from __future__ import annotations

from collections import defaultdict

from bertology.data import load_corpus
from bertology.data.corpus import Example
from bertology.data.grammar.licensing import ENVIRONMENTS, FACTORS, NPIS

LICENSORS = {word for words, _ in ENVIRONMENTS.values() for word in words}


def paradigms(**options: object) -> dict[str, list[Example]]:
    found = defaultdict(list)
    for example in load_corpus("grammar-licensing", **options):
        found[str(example.get("item"))].append(example)
    return found


def words(example: Example) -> list[str]:
    return example.text.lower().rstrip(".").replace(",", "").split()


def test_every_paradigm_crosses_three_factors_and_is_judged_by_the_rule() -> None:
    seen = set()
    for eight in paradigms(limit=448).values():
        told = [tuple(e.get("sentence_labels")[f] == "yes" for f in FACTORS) for e in eight]
        assert len(set(told)) == 8
        lengths = {len(words(e)) for e in eight}
        # "the" before a noun goes where a determiner or "everyone" comes.
        assert max(lengths) - min(lengths) <= 1
        seen.add((eight[0].get("group"), eight[0].annotations["npi"]))
        for example, (licensor, scope, npi) in zip(eight, told, strict=True):
            assert example.label == (not npi or (licensor and scope))
            assert bool(LICENSORS & set(words(example))) == licensor, example.text
            item = example.annotations["npi"]
            assert (f" {item} " in f" {' '.join(words(example))} ") == npi, example.text
    assert seen == {(environment, npi) for environment in ENVIRONMENTS for npi in NPIS}


def test_scope_puts_the_item_below_the_licensor() -> None:
    for eight in paradigms(limit=448).values():
        if eight[0].get("group") in ("conditional", "quantifier", "before"):
            continue  # the licensor stands first, and its clause or restrictor is its scope
        for example in eight:
            told, said = example.get("sentence_labels"), words(example)
            if told["licensor"] == told["npi_present"] == "yes":
                item = said.index(example.annotations["npi"].split()[0])
                licensor = next(i for i, word in enumerate(said) if word in LICENSORS)
                assert (licensor < item) == (told["scope"] == "yes"), example.text


def test_no_paradigm_is_in_two_splits() -> None:
    found = [
        item for s in ("train", "validation", "test") for item in paradigms(split=s, limit=400)
    ]
    assert len(set(found)) == len(found) == 150
