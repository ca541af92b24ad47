"""The model card tells what the record tells, and nothing that it does not."""

from __future__ import annotations

from typing import Any

import yaml

from bertology.train.model_card import model_card
from bertology.train.pretrain.config import Objective, Phase, Pretraining, Stage


def record(**card: Any) -> dict[str, Any]:
    recipe = Pretraining(
        stages=(Stage(Objective("three-way")),),
        phases=(Phase(64, 0.5, 2), Phase(128, 0.5)),
        seed=7,
    )
    sources = [
        {"name": "Wiki|pedia", "licence": "CC BY-SA 3.0", "words": 1234567, "url": None},
        {"name": "Books", "licence": "public domain", "words": None, "url": "https://x.org"},
    ]
    return {
        "made_by": {
            "card": card,
            "vocabulary": {"size": 2000, "lowercase": True},
            "text": {"sources": sources},
        },
        "recipe": recipe.as_dict(),
        "parameters": 1_234_321,
        "relations": [["next", "previous", "random"]],
        "text": {
            "sources": [{"name": "a.txt.xz", "documents": 10, "sentences": 99, "words": 1010}],
            "tokens": 50_000,
            "held_out_tokens": 500,
            "fingerprint": "abc",
        },
        "tokens_seen": 125_000,
        "seconds": 61.2,
        "device": "cpu",
        "processes": 1,
        "scores": {"mlm_loss": 2.3456, "mlm_accuracy": 0.4567},
        "versions": {"bertology": "9.9", "torch": "2.0"},
        "created": "2026-01-02T03:04:05+00:00",
    }


def test_the_front_matter_is_what_the_hub_reads() -> None:
    card = model_card(record(license="apache-2.0", language="en"), name="my-bert")
    _, front, body = card.split("---\n", 2)
    fields = yaml.safe_load(front)
    assert fields["license"] == "apache-2.0"
    assert fields["language"] == "en"
    assert fields["library_name"] == "transformers"
    assert "bert" in fields["tags"]
    assert body.lstrip().startswith("# my-bert\n")


def test_a_model_that_was_trained_further_says_what_it_had_seen() -> None:
    assert "trained from random weights on 125,000 tokens" in model_card(record(), name="a")
    first = {"name": "first", "steps": 10, "tokens_seen": 80_000}
    card = model_card(record() | {"earlier": first}, name="a")
    assert "trained further from first, which had seen 80,000, on 125,000 tokens" in card
    unknown = model_card(record() | {"earlier": {"name": "theirs"}}, name="a")
    assert "trained further from theirs on 125,000 tokens" in unknown


def test_what_nobody_gave_is_left_out() -> None:
    bare = record()
    bare["made_by"]["text"]["sources"] = []
    bare["scores"] = {}
    card = model_card(bare, name="x")
    assert set(yaml.safe_load(card.split("---\n")[1])) == {"library_name", "pipeline_tag", "tags"}
    assert "| source |" not in card
    assert "None were measured." in card


def test_every_number_of_the_record_is_told() -> None:
    card = model_card(record(language="en", remarks="For a test."), name="my-bert")
    for words in (
        "4 layers × 4 heads, 128 wide",
        "125,000 tokens with bertology 9.9.",
        "For a test.",
        "| parameters | 1,234,321 |",
        "| vocabulary | 2,000, WordPiece, uncased |",
        "| Wiki\\|pedia | CC BY-SA 3.0 | 1,234,567 |",
        "| [Books](https://x.org) | public domain |  |",
        "| a.txt.xz | 10 | 99 | 1,010 |",
        "50,000 to train on and 500 held out",
        "Losses: mlm, sentence. Rows: three-way.",
        "80 % of those as [MASK], 10 % as a random piece; drawn in every pass.",
        "64 tokens for 50 % of the steps, 2 layers; 128 tokens for 50 % of the steps",
        "| passes over the text | 2.50 |",
        "| seed | 7 |",
        "| mlm loss | 2.346 |",
        "| mlm accuracy | 45.7 % |",
        "0 next, 1 previous, 2 random",
        "language: en",
        "torch 2.0. Trained on 2026-01-02.",
    ):
        assert words in card


def test_stages_say_when_they_join() -> None:
    two = record()
    (stage,) = two["recipe"]["stages"]
    two["recipe"]["stages"] = [stage, {**stage, "begins": 0.25}]
    assert "From 25 % of the steps on, with weight 1." in model_card(two, name="x")
