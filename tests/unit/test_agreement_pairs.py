"""Pairs of verbs made of a treebank: which verbs have another form, and what is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from bertology.data.readers.agreement import read
from bertology.errors import DataError

_SENTENCES = (
    """
1 The the DET _ _ 2 det
2 keys key NOUN _ Number=Plur 6 nsubj
3 of of ADP _ _ 5 case
4 the the DET _ _ 5 det
5 door door NOUN _ Number=Sing 2 nmod
6 open open VERB _ Mood=Ind|Number=Plur|Person=3|VerbForm=Fin 0 root
""",
    """
1 Opens open VERB _ Mood=Ind|Number=Sing|Person=3|VerbForm=Fin 0 root
2 she she PRON _ Number=Sing|Person=3 1 nsubj
""",
    """
1 I I PRON _ Number=Sing|Person=1 2 nsubj
2 open open VERB _ Mood=Ind|Number=Sing|Person=1|VerbForm=Fin 0 root
""",
    """
1 Cats cat NOUN _ Number=Plur 2 nsubj
2 sleep sleep VERB _ Mood=Ind|Number=Plur|Person=3|VerbForm=Fin 0 root
""",
    """
1 People people NOUN _ Number=Sing 2 nsubj
2 open open VERB _ Mood=Ind|Number=Plur|Person=3|VerbForm=Fin 0 root
""",
)


def written(folder: Path, sentences: tuple[str, ...]) -> Path:
    rows = []
    for sentence in sentences:
        for line in sentence.strip().splitlines():
            number, form, lemma, pos, xpos, features, head, relation = line.split()
            rows.append(
                "\t".join([number, form, lemma, pos, xpos, features, head, relation] + ["_"] * 2)
            )
        rows.append("")
    path = folder / "en_made-ud-test.conllu"
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def test_a_verb_gets_its_other_number_where_the_treebank_has_it(tmp_path: Path) -> None:
    """No other form is known of "sleep"; "I" and "people" do not have the verb's number."""
    corpus = read(written(tmp_path, _SENTENCES))
    first, second = corpus
    assert first.get("contrast") == "The keys of the door opens"
    assert (first.get("subject"), first.get("verb"), first.get("attractors")) == (1, 5, 1)
    assert second.get("contrast") == "Open she"
    assert (second.get("group"), second.get("others")) == ("before the subject", 0)


def test_a_treebank_without_such_verbs_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no verb whose other number"):
        read(written(tmp_path, _SENTENCES[2:4]))
