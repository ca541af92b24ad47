"""The readers of judged pairs: MED, Verb Physics, physical common sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertology.data.readers import MissingSplitError, Request
from bertology.data.readers.judged_pairs import (
    read_med,
    read_physical_commonsense,
    read_verb_physics,
)
from bertology.errors import DataError, UnknownNameError


def test_med(tmp_path: Path) -> None:
    file = tmp_path / "MED.tsv"
    header = "index\tgenre\tsentence1\tsentence2\tgold_label\n"
    row = "1\tpaper:FraCaS:downward_monotone:npi\tNo dog ran.\tNo poodle ran.\tentailment\n"
    file.write_text(header + row + row.replace("1\t", "2\t").replace("entailment", "neutral"))
    first, second = read_med(file)
    assert (first.label, second.label) == (0, 1)
    assert (first.get("group"), first.get("phenomena")) == ("downward", ("FraCaS", "npi"))
    file.write_text(header + row.replace("downward_monotone", "sideways"))
    with pytest.raises(DataError, match=r"line 2: one direction and a label are wanted"):
        read_med(file)


def test_verb_physics(tmp_path: Path) -> None:
    file = tmp_path / "train.csv"
    header = ",obj1,obj2,size-maj,weight-maj,strength-maj,rigidness-maj,speed-maj\n"
    file.write_text(header + "0,person,dress,1,0,-1,-42,-42\n")
    corpus = read_verb_physics(file)
    assert [(e.get("group"), e.label) for e in corpus] == [
        ("size", 2), ("weight", 1), ("strength", 0),
    ]  # fmt: skip
    assert corpus[0].texts == ("person", "dress")
    file.write_text(header + "0,person,dress,7,0,-1,-42,-42\n")
    with pytest.raises(DataError, match=r"line 2: size-maj must be"):
        read_verb_physics(file)


@pytest.fixture
def objects(tmp_path: Path) -> Path:
    (tmp_path / "pc").mkdir()
    (tmp_path / "sentences").mkdir()
    files = {
        "pc/abstract.csv": "objectUID,heavy,hot\nanvil,1,-2\nfeather,0,0\n",
        "pc/abstract-test-object-uids.txt": "feather\n",
        "pc/situated-properties.csv": (
            "cocoImgID,cocoAnnID,objectUID,heavy,hot\n1,1,anvil,1,0\n1,2,feather,0,0\n2,3,anvil,1,1\n"
        ),
        "pc/situated-affordances-sampled.csv": (
            "affordancesNo,affordancesYes,cocoAnnID,cocoImgID,objectHuman,objectUID\n"
            '"throw","hit",1,1,anvil,anvil\n"hit","throw",2,1,feather,feather\n'
            '"eat","hit,throw",3,2,anvil,anvil\n'
        ),
        "sentences/index.csv": (
            "task,uids,word1,word2\nOP,anvil/heavy,a,b\nOP,anvil/hot,a,b\nOP,feather/heavy,a,b\n"
            "OA,anvil/hit,a,b\nOA,anvil/hit,a,b\nOA,feather/hit,a,b\nOA,anvil/throw,a,b\n"
            "AP,hit/heavy,a,b\nAP,throw/hot,a,b\n"
        ),
        "sentences/sentences.txt": (
            "An anvil is heavy.\nAn anvil is hot.\nA feather is heavy.\nHe hit the anvil.\n"
            "He hit the anvil.\nHe hit the feather.\nHe threw the anvil.\n"
            "If you can hit it, it is heavy.\nIf you can throw it, it is hot.\n"
        ),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def labels(folder: Path, relation: str, split: str = "all") -> dict[str, int | float | None]:
    request = Request("pc", split, options={"relation": relation})
    found = {e.id: e.label for e in read_physical_commonsense(folder, request)}
    # The relation is part of the name: "adjust" is what things are for, and has properties.
    return {name.removeprefix(f"{relation}/"): label for name, label in found.items()}


def test_objects_properties_and_affordances(objects: Path) -> None:
    # What nobody could decide (an anvil is hot) is left out; half of the pictures is not most.
    assert labels(objects, "object-property") == {"anvil/heavy": 1, "feather/heavy": 0}
    assert labels(objects, "object-property", "test") == {"feather/heavy": 0}
    affordances = {"anvil/hit": 1, "feather/hit": 0, "anvil/throw": 0}
    assert labels(objects, "object-affordance") == affordances
    assert labels(objects, "affordance-property") == {"hit/heavy": 1, "throw/hot": 0}


def test_wrong_physical_commonsense(objects: Path) -> None:
    with pytest.raises(UnknownNameError, match="Unknown relation 'object-propert'"):
        labels(objects, "object-propert")
    with pytest.raises(MissingSplitError, match="the split 'train'"):
        labels(objects, "object-property", "train")
    (objects / "sentences" / "sentences.txt").write_text("One.\n")
    with pytest.raises(DataError, match=r"has 1 sentences and index\.csv 9 rows"):
        labels(objects, "object-property")
    (objects / "pc" / "abstract.csv").write_text("objectUID,heavy\nanvil,yes\n")
    with pytest.raises(DataError, match=r"abstract\.csv, line 2: a judgement must be"):
        labels(objects, "object-property")
