"""`bertology ask` and `bt.ask`: a model whose facts are known, and what cannot be asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import bertology as bt
import planted_facts
from bertology.cli.main import app
from bertology.errors import BertologyError, DataError, ParameterError

TEXT = planted_facts.text("dante", "from")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("facts")
    encoder = planted_facts.encoder(planted_facts.model(lean="paris"))
    encoder.model.save_pretrained(made)
    encoder.tokenizer.save_pretrained(made)
    return made


def said(*words: str) -> tuple[int, str]:
    found = CliRunner().invoke(app, ["ask", *words])
    return found.exit_code, found.output


def test_what_is_known_is_told_from_the_layer_on_where_it_is(folder: Path, tmp_path: Path) -> None:
    encoder = planted_facts.encoder(planted_facts.model())
    reply = bt.ask(TEXT, encoder, top=3)
    assert reply.answers[0] == "florence"
    assert reply.shares.shape == (2, 3)
    assert reply.shares[1, 0] > 5 * reply.shares[0, 0]
    assert reply.best[1][0] == ("florence", pytest.approx(reply.shares[1, 0]))
    assert np.exp(reply.log_probabilities[0]) == pytest.approx(reply.shares[1, 0], abs=1e-6)
    assert list(reply.table().columns) == ["layer", "rank", "answer", "share"]
    assert str(reply).splitlines()[2].startswith("florence")
    alone = bt.ask(TEXT, encoder, top=3, lens="none")
    assert alone.answers == reply.answers
    assert alone.shares.shape == (1, 3)


def test_a_prior_is_taken_away_where_a_subject_is_named(folder: Path) -> None:
    words = ["florence", "paris", "london"]
    raw = bt.ask(TEXT, folder, candidates=words, device="cpu")
    fair = bt.ask(TEXT, folder, candidates=words, subject="dante", device="cpu")
    assert raw.answers[0] == "paris"
    assert fair.answers[0] == "florence"
    assert fair.shares.sum(axis=1) == pytest.approx(1)
    assert "prior" in fair.unit


def test_an_affine_lens_is_fitted_once_and_kept(folder: Path, tmp_path: Path) -> None:
    texts = [f"{s} comes {r} the {o} ." for (s, r), o in planted_facts.FACTS.items()] * 20
    first, again = (
        bt.ask(
            TEXT, folder, lens="affine", lens_text=texts, store=str(tmp_path), top=2, device="cpu"
        )
        for _ in range(2)
    )
    np.testing.assert_array_equal(first.shares, again.shares)
    assert len(list((tmp_path / "trained" / "lenses").iterdir())) == 1


def test_the_command_prints_answers_layers_and_a_figure(folder: Path, tmp_path: Path) -> None:
    for kind in ("svg", "png", "pdf"):
        to = tmp_path / f"words.{kind}"
        code, output = said(TEXT, str(folder), "--device", "cpu", "--top", "2", "--figure", str(to))
        assert code == 0, output
        assert to.stat().st_size > 1000
    assert "paris" in output
    assert "layers 0 … 1" in output
    code, output = said(
        TEXT, str(folder), "--device", "cpu", "--candidates", "weimar,nobody", "--by", "joint",
        "--lens", "none",
    )  # fmt: skip
    assert code == 0, output
    assert "among the candidates" in output
    assert "layers" not in output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["no blank here"], "no blank"),
        (["{mask} and {mask}"], "2 blanks"),
        (["the {mask} .", "--candidates", "zebra"], "'zebra' is not in the vocabulary"),
        (["the {mask} .", "--figure", "words.txt"], "end in .svg, .pdf, .png"),
        (["the {mask} .", "--figure", "nowhere/words.svg"], "cannot be written"),
        (["the {mask} .", "--subject", "the"], "without candidates"),
        ([TEXT, "--candidates", "paris,london", "--subject", "hugo"], "'hugo' is not in"),
    ],
)
def test_bad_input_is_told_in_words(folder: Path, words: list[str], message: str) -> None:
    code, output = said(words[0], str(folder), "--device", "cpu", *words[1:])
    assert code == 2
    assert message in " ".join(output.split())


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"candidates": "paris"}, ParameterError),
        ({"lens": "tuned"}, BertologyError),
        ({"top": 0}, ParameterError),
        ({"candidates": ["paris"], "method": "best"}, BertologyError),
        ({"candidates": [""]}, DataError),
    ],
)
def test_bad_arguments_in_python(options: dict[str, Any], kind: type[BertologyError]) -> None:
    encoder = planted_facts.encoder(planted_facts.model())
    with pytest.raises(kind):
        bt.ask(TEXT, encoder, **options)
