"""Attention distractors: a head that finds the subject is found, random models bear out nothing."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

import bertology as bt
import planted_links as planted
from bertology.data.corpus import Corpus, Example, Field
from bertology.errors import DataError
from bertology.model.encoder import Encoder
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import mean_interval
from bertology.stats.contrasts import difference_within
from bertology.studies.attention.attention_distractors import (
    LEAST,
    AttentionDistractors,
    by_frame,
)
from result_conformance import ResultConformance, claims_of

LINK = planted.LINK
WEAK, STRONG, CLEARER = (
    f"primer-attention.{name}"
    for name in (
        "attention-is-a-weak-indicator",
        "a-head-is-a-strong-pointer",
        "attention-is-clearer-where-the-guess-is-right",
    )
)


def guessing(model: hf.BertModel, *, seed: int = 0) -> Encoder:
    """The model with a masked-LM head that says what it likes."""
    torch.manual_seed(seed)
    made = hf.BertForMaskedLM(model.config).eval()
    made.bert.load_state_dict(model.state_dict())
    return Encoder(made, planted.tokenizer(), name="planted", head="mlm")


def whole_layer() -> hf.BertModel:
    """All heads of layer 0 attend from verbs to subjects."""
    made = planted.model()
    with torch.no_grad():
        for head in range(planted.HEADS):
            planted._look(made, (0, head), towards=planted._SUBJECT, by=planted._VERB)
    return made


def corpus(size: int = 60, *, seed: int = 0, shuffled: bool = False) -> Corpus:
    """Two verbs that are taken for two forms of one; subjects drawn at random if `shuffled`."""
    rng, found = random.Random(seed), []
    for one in planted.corpus(size, seed=seed):
        words = list(one.annotations["words"])
        verb = one.annotations["relations"].index("root")
        subject, thing = (one.annotations["relations"].index(r) for r in ("nsubj", "obj"))
        if shuffled and rng.random() < 0.5:
            subject, thing = thing, subject
        wrong = planted.VERBS[1 - planted.VERBS.index(words[verb])]
        about = {
            **one.annotations,
            "verb": verb,
            "subject": subject,
            "contrast": one.text.replace(words[verb], wrong),
            "kind": rng.choice(["plain", "other"]),
        }
        found.append(Example(one.id, one.text, annotations=about))
    fields = {Field.TEXT, Field.WORDS, Field.POS, Field.SUBJECT, Field.VERB, Field.CONTRAST}
    return Corpus("distracting", found, frozenset(fields))


def ask(encoder: Encoder, of: Corpus) -> Result:
    found: Result = planted.ask(AttentionDistractors(resamples=200), encoder, of)
    return found


class TestResult(ResultConformance):
    measures = frozenset({"pointing", "selectivity", "hit", "layer-pointing"})

    @staticmethod
    def make() -> Result:
        return ask(guessing(planted.model(LINK, seed=1)), corpus(40))


def test_the_planted_head_is_found_and_no_other() -> None:
    found = ask(guessing(planted.model(LINK, planted.NOUNS, planted.SEPARATOR)), corpus())
    heads = found.table("heads").set_index(["layer", "head"])
    assert heads.loc[LINK, "pointing_low"] > 0.9
    assert heads.loc[LINK, "hit"] == 1
    sure = heads[(heads["selectivity_p"] < 0.05) & (heads["selectivity"] > 0)]
    assert list(sure.index) == [LINK]
    outcomes = claims_of(found)
    assert outcomes[STRONG] == "holds"
    # One head of four: the layer's attention is still divided among the nouns.
    assert found.evidence()["best_head_pointing"].low > 0.9


def test_a_layer_that_points_is_no_weak_indicator() -> None:
    assert claims_of(ask(guessing(whole_layer()), corpus()))[WEAK] == "fails"


def test_a_subject_that_is_no_subject_is_not_followed() -> None:
    reader, some = guessing(planted.model(LINK)), corpus(shuffled=True)
    outcomes = claims_of(ask(reader, some))
    assert outcomes[STRONG] != "holds"
    assert outcomes[WEAK] == "not-applicable", "it guesses no form, so it needs no attention"
    study = AttentionDistractors(resamples=200)
    (name,) = study.parts(reader.shape, some)
    part = study.measure(reader, some, name, _context())
    right = part.assign(better=("example", np.ones(part.sizes["example"])))
    named = {"name": "made", "fingerprint": "made"}
    made = Provenance("attention-distractors", 1, {}, named, named)
    assert claims_of(study.conclude({name: right}, made))[WEAK] == "holds"


def test_sentences_of_one_frame_say_the_same() -> None:
    """Each sentence is there ten times with other nouns: the interval is that of the frames."""
    rng = np.random.default_rng(0)
    frames = np.repeat(np.arange(12), 10)
    held = [0, 0]
    for _ in range(300):
        values = rng.normal(size=12)[frames] + 0.2 * rng.normal(size=120)
        for at, rows in enumerate((values[None], by_frame(values[None], frames))):
            found = mean_interval(rows[0])
            assert found.value == pytest.approx(values.mean())
            held[at] += found.excludes(0)
    by_sentence, by_frames = (count / 300 for count in held)
    assert by_sentence > 0.3
    assert by_frames < 0.09


def test_a_difference_within_groups_is_over_clusters() -> None:
    rng, frames, group = np.random.default_rng(0), np.repeat(np.arange(30), 8), np.zeros(240)
    held = [0, 0]
    for _ in range(300):
        first = (rng.random(30) < 0.5)[frames]
        values = rng.normal(size=30)[frames] + 0.2 * rng.normal(size=240)
        for at, clusters in enumerate((None, frames)):
            found = difference_within(values, first, group, clusters=clusters)
            assert found is not None
            held[at] += found.excludes(0)
    assert found.n == 30
    assert held[0] > 90
    assert held[1] < 30


def test_frames_are_all_but_nouns_and_the_word() -> None:
    part = AttentionDistractors().measure(
        guessing(planted.model()), corpus(4), "examples-000000-000004", _context()
    )
    for frame, example in zip(part["frame"].to_numpy(), corpus(4), strict=True):
        about, words = example.annotations, str(frame).split()
        assert len(words) == len(about["words"])
        assert words[about["verb"]] == words[about["subject"]] == "_"
        assert words.count("_") == 3


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_said_of_a_random_model(seed: int) -> None:
    """Of many words: where there are four nouns, a random model knows two of them from two."""
    tokenizer = Encoder.load("bertology-mini", device="cpu").tokenizer
    torch.manual_seed(seed)
    config = hf.BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=3, num_attention_heads=4,
        intermediate_size=32, max_position_embeddings=64, initializer_range=(0.1, 0.3, 0.6)[seed],
    )  # fmt: skip
    made = hf.BertForMaskedLM(config).eval()
    encoder = Encoder(made, tokenizer, name="random", head="mlm")
    outcomes = claims_of(ask(encoder, bt.load_corpus("grammar-agreement", limit=60, seed=seed)))
    assert outcomes[STRONG] != "holds"
    assert outcomes[CLEARER] != "holds"


def test_it_equals_plain_transformers() -> None:
    encoder, of = guessing(planted.random_model(spread=0.3, seed=5), seed=5), corpus(25, seed=2)
    study = AttentionDistractors(resamples=200)
    (part,) = study.parts(encoder.shape, of)
    measured = study.measure(encoder, of, part, _context())
    plain = hf.BertForMaskedLM(encoder.model.config).eval()
    plain.load_state_dict(encoder.model.state_dict())
    plain.set_attn_implementation("eager")
    tokenizer = planted.tokenizer()
    for i, one in enumerate(of):
        words, verb = one.annotations["words"], one.annotations["verb"]
        ids = tokenizer(one.text, return_tensors="pt")["input_ids"]
        assert ids.shape[1] == len(words) + 2  # each word is one piece
        subject, thing = 1, len(words) - 2
        with torch.no_grad():
            maps = torch.stack(plain(ids, output_attentions=True).attentions)[:, 0].numpy()
        right, other = maps[:, :, verb + 1, subject + 1], maps[:, :, verb + 1, thing + 1]
        assert measured["share"][i].to_numpy() == pytest.approx(right / (right + other), abs=1e-5)
        added = right.sum(1) / (right + other).sum(1)
        assert measured["layer_share"][i].to_numpy() == pytest.approx(added, abs=1e-5)
        rest = [w + 1 for w in range(len(words)) if w not in (verb, subject, thing)]
        seen = maps[:, :, rest].mean(2)
        elsewhere = seen[..., subject + 1] / (seen[..., subject + 1] + seen[..., thing + 1])
        assert measured["elsewhere"][i].to_numpy() == pytest.approx(elsewhere, abs=1e-5)
        wrong = tokenizer(one.annotations["contrast"])["input_ids"][verb + 1]
        form, ids = int(ids[0, verb + 1]), ids.clone()
        ids[0, verb + 1] = tokenizer.mask_token_id
        with torch.no_grad():
            logits = plain(ids).logits[0, verb + 1]
        assert float(measured["better"][i]) == pytest.approx(
            float(logits[form] - logits[wrong]), abs=1e-4
        )
    heads = ask(encoder, of).table("heads")
    share = measured["share"].to_numpy().astype(np.float64)
    confusion = -np.log(np.maximum(share, LEAST)).mean(0).ravel()
    assert heads["confusion"].to_numpy() == pytest.approx(confusion, abs=1e-6)
    assert heads["pointing"].to_numpy() == pytest.approx(1 - confusion / np.log(2), abs=1e-6)


def _context() -> Any:
    from bertology.studies.study import Context

    return Context()


def test_a_head_that_knows_places_is_not_called_a_pointer() -> None:
    """Where the nearest noun is always right, nobody can tell."""
    near = [e for e in corpus(200) if e.annotations["verb"] - e.annotations["subject"] < 2]
    found = ask(guessing(planted.model(LINK)), replace(corpus(), examples=near))
    assert found.facts["nearest"] == 1
    assert claims_of(found)[STRONG] == "not-applicable"
    assert "places" in found.reasons()["strong_pointing"]


def test_sentences_without_a_distractor_are_not_enough() -> None:
    with pytest.raises(DataError, match="another noun beside it"):
        ask(guessing(planted.model()), _lonely())


def _lonely() -> Corpus:
    about = {"words": ["the", "dog", "sees"], "verb": 2, "subject": 1, "distractors": [],
             "contrast": "the dog likes"}  # fmt: skip
    examples = [Example(str(i), "the dog sees", annotations=about) for i in range(3)]
    fields = {Field.TEXT, Field.WORDS, Field.SUBJECT, Field.VERB, Field.CONTRAST}
    return Corpus("lonely", examples, frozenset(fields))
