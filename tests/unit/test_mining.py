"""Wordings mined from a text in which it is known what is said of whom."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertology.data.corpus import Example
from bertology.data.loading import load_corpus
from bertology.data.mining import MinedWording, mine_wordings, write_wordings
from bertology.errors import DataError, ParameterError

BORN = {"Dante": "Florence", "Victor Hugo": "Besançon", "Goethe": "Frankfurt", "Woolf": "London"}
LIKES = {"Woolf": "tea"}


def facts() -> list[Example]:
    return [
        Example(f"{group}-{i}", "", annotations={"answer": [a], "group": group, "entity": who})
        for group, of in (("born", BORN), ("likes", LIKES))
        for i, (who, a) in enumerate(of.items())
    ]


TEXT = [
    "Dante was born in Florence. Victor Hugo was born in Besançon, as we know.",
    "dante was born in florence! Dante was born in Florence.",  # the same fact again counts once
    "In Frankfurt, the home of Goethe, it rains; Florence is the home of Dante.",
    "Goethe was born in London.",  # which is no fact
    "Goethe left. Frankfurt stayed.",  # two sentences
    "Woolf likes tea. Woolf, tea. Woolf tea.",  # nothing between, or no word
    "Woolf often went for very long walks to the north of London.",  # too much between
]


def test_what_stands_between_names_is_found_and_counted_by_facts() -> None:
    found = mine_wordings(facts(), TEXT)
    assert found == {
        "born": [MinedWording("[X] was born in [Y] .", 2)],
        "likes": [],
    }
    rare = mine_wordings(facts(), TEXT, fewest=1)
    assert [(row.template, row.facts) for row in rare["born"]] == [
        ("[X] was born in [Y] .", 2),
        ("[Y] , the home of [X] .", 1),
        ("[Y] is the home of [X] .", 1),
    ]
    assert rare["likes"] == [MinedWording("[X] likes [Y] .", 1)]
    assert len(mine_wordings(facts(), TEXT, fewest=1, most=1)["born"]) == 1
    long = mine_wordings(facts(), TEXT, fewest=1, longest=12)
    assert "[X] often went for very long walks to the north of [Y] ." in {
        row.template for row in long["born"]
    }


def test_the_longest_name_counts() -> None:
    one = [
        Example("0", "", annotations={"answer": ["York"], "group": "in", "entity": "Minster"}),
        Example("1", "", annotations={"answer": ["New York"], "group": "in", "entity": "Harlem"}),
    ]
    found = mine_wordings(one, ["Harlem lies in New York.", "Minster lies in New York."], fewest=1)
    assert found == {"in": [MinedWording("[X] lies in [Y] .", 1)]}


def test_what_was_mined_is_read_as_templates(tmp_path: Path) -> None:
    write_wordings(mine_wordings(facts(), TEXT), tmp_path / "mined.jsonl")
    (tmp_path / "mine.jsonl").write_text(
        '{"entity": "Dante", "answer": "Florence", "relation": "born"}\n'
    )
    (fact,) = load_corpus(
        tmp_path / "mine.jsonl", reader="lama", templates=[{"mined": "mined.jsonl"}]
    )
    assert fact.text == "Dante was born in [MASK] ."
    assert fact.get("wording_kinds") == ("mined",)


def test_what_cannot_be_mined_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no facts to mine with"):
        mine_wordings([], TEXT)
    with pytest.raises(ParameterError, match="be at least 1"):
        mine_wordings(facts(), TEXT, longest=0)
    with pytest.raises(DataError, match="No wording was found"):
        write_wordings(mine_wordings(facts(), ["Nothing."]), tmp_path / "none.jsonl")
