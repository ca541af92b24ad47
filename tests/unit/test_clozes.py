"""The cloze engine: a table of facts that is known, a plain loop, and what cannot be asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

import planted_facts
import tiny
from bertology.errors import BertologyError, CapabilityError, DataError, ParameterError
from bertology.model.encoder import Encoder
from bertology.model.families import Capability, family_of
from bertology.model.interventions import ZeroHead
from bertology.model.masked_lm.clozes import Answer, Clozes, one_piece_words
from bertology.model.masked_lm.lenses import AffineLens, LogitLens, head_logits
from bertology.model.masked_lm.questions import METHODS, Question
from bertology.model.masked_lm.scoring import pseudo_log_likelihood

WORDS = ["the", "cat", "cats", "dog", "sleep", "##s", "##ing", "walk", "un", "##happi", "##ly", "."]
TOKENIZER = tiny.tokenizer([*WORDS, "##y", "paris", "new"])
CANDIDATES = ("cat", "unhappily", "dogs", "walking")
TEXT = "the {mask} sleeps ."
FAMILIES = [
    n
    for n in tiny.ROWS
    if Capability.MASKED_LM in family_of(tiny.config(n).model_type).capabilities
]


def encoder_of(name: str = "bert", tokenizer: Any = TOKENIZER) -> Encoder:
    return Encoder(tiny.model(name, "mlm"), tokenizer, head="mlm", name=f"tiny-{name}")


def answered(encoder: Encoder, *questions: Question, **options: Any) -> list[Answer]:
    return list(Clozes(encoder, **options).answers(questions))


# Planted: a table of facts ---------------------------------------------------------------------


def test_a_known_table_of_facts_is_told_exactly() -> None:
    known = dict(list(planted_facts.FACTS.items())[:6])  # two pairs are not in the table
    encoder = planted_facts.encoder(planted_facts.model(known))
    asked = [
        Question(planted_facts.text(*pair), answers=(answer,))
        for pair, answer in planted_facts.FACTS.items()
    ]
    found = answered(encoder, *asked, lens=LogitLens(), vocabulary=planted_facts.OBJECTS, top_k=1)
    for (pair, answer), said in zip(planted_facts.FACTS.items(), found, strict=True):
        before, after = said.ranks[:, 0]
        assert before == pytest.approx(4.5), "after the first layer nothing is known"
        assert (after == 1) == (pair in known)
        assert pair not in known or said.top[1][0].word == answer
    assert found[-1].ranks[1, 0] == pytest.approx(4.5), "equal probabilities share their ranks"


def test_the_prior_takes_away_what_the_template_prefers() -> None:
    encoder = planted_facts.encoder(planted_facts.model(lean="paris"))
    asked = [
        Question(planted_facts.text(s, r), tuple(planted_facts.OBJECTS), subject=s)
        for s, r in planted_facts.FACTS
    ]
    for prior in ("{mask}", "nobody"):
        found = answered(encoder, *asked, prior=prior)
        raw = [planted_facts.OBJECTS[int(a.scores[0].argmax())] for a in found]
        fair = [planted_facts.OBJECTS[int(a.calibrated[0].argmax())] for a in found]
        assert set(raw) == {"paris"}
        assert fair == list(planted_facts.FACTS.values())


# Equal to a plain loop -------------------------------------------------------------------------


def plain(encoder: Encoder, ids: list[int], place: int, layer: int | None = None) -> torch.Tensor:
    """transformers alone, one text, all logits; of a layer by calling BERT's head."""
    given = torch.tensor([ids])
    with torch.no_grad():
        if layer is None:
            logits = encoder.model(input_ids=given).logits
        else:
            seen = encoder.model.bert(input_ids=given, output_hidden_states=True).hidden_states
            logits = encoder.model.cls(seen[layer + 1])
    return torch.log_softmax(logits[0, place], -1)


def by_loop(
    encoder: Encoder, before: str, word: str, after: str, method: str, layer: int | None = None
) -> float:
    mask = TOKENIZER.mask_token_id
    left = TOKENIZER(before)["input_ids"][:-1]
    pieces = TOKENIZER(word, add_special_tokens=False)["input_ids"]
    right = TOKENIZER(after)["input_ids"][1:]
    total = 0.0
    if method == "sentence":
        (found,) = pseudo_log_likelihood(encoder, f"{before} {word} {after}")
        return found.total
    for n, piece in enumerate(pieces):
        kept = pieces[:n] if method == "left-to-right" else []
        inner = [*kept, *[mask] * (len(pieces) - len(kept))]
        total += float(plain(encoder, [*left, *inner, *right], len(left) + n, layer)[piece])
    return total


@pytest.mark.parametrize("method", [m for m in METHODS if m != "single"])
@pytest.mark.parametrize("tokens_per_batch", [1, 4096])
def test_every_method_equals_a_plain_loop(method: str, tokens_per_batch: int) -> None:
    encoder = encoder_of()
    (found,) = answered(
        encoder, Question(TEXT, CANDIDATES), method=method, tokens_per_batch=tokens_per_batch
    )
    expected = [by_loop(encoder, "the", word, "sleeps .", method) for word in CANDIDATES]
    np.testing.assert_allclose(found.scores[0], expected, atol=1e-4)
    assert found.pieces[1] == ("un", "##happi", "##ly")


def test_single_equals_the_others_for_candidates_of_one_piece() -> None:
    encoder, question = encoder_of(), Question(TEXT, ("cat", "walk"))
    by_method = [answered(encoder, question, method=m)[0].scores for m in METHODS[:3]]
    np.testing.assert_allclose(by_method[0], by_method[1], atol=1e-6)
    np.testing.assert_allclose(by_method[0], by_method[2], atol=1e-6)


@pytest.mark.parametrize("method", ["left-to-right", "joint"])
def test_layers_equal_a_plain_loop(method: str) -> None:
    encoder = encoder_of()
    (found,) = answered(encoder, Question(TEXT, CANDIDATES), method=method, lens=LogitLens())
    assert found.scores.shape == (3, 4)
    for layer in range(3):
        expected = [by_loop(encoder, "the", w, "sleeps .", method, layer) for w in CANDIDATES]
        np.testing.assert_allclose(found.scores[layer], expected, atol=1e-4)


def test_an_affine_lens_maps_the_states_before_the_head() -> None:
    encoder = encoder_of()
    generator = torch.Generator().manual_seed(1)
    weight = torch.randn(3, 24, 24, generator=generator) / 5
    bias = torch.randn(3, 24, generator=generator)
    lens = AffineLens(weight, bias, encoder.fingerprint)
    (found,) = answered(encoder, Question(TEXT, answers=("cat",)), lens=lens)
    ids = TOKENIZER("the [MASK] sleeps .")["input_ids"]
    with torch.no_grad():
        out = encoder.model.bert(input_ids=torch.tensor([ids]), output_hidden_states=True)
        for layer in range(3):
            state = out.hidden_states[layer + 1][0, 2]
            moved = state if layer == 2 else state @ weight[layer] + bias[layer]
            scores = torch.log_softmax(encoder.model.cls(moved[None])[0], -1)
            cat = TOKENIZER.convert_tokens_to_ids("cat")
            assert found.log_probabilities[layer, 0] == pytest.approx(float(scores[cat]), abs=1e-4)
            assert found.ranks[layer, 0] == int((scores > scores[cat]).sum()) + 1
            assert found.top[layer][0].log_probability == pytest.approx(
                float(scores.max()), abs=1e-4
            )


@pytest.mark.parametrize("name", [f for f in FAMILIES if f != "bart"])
def test_the_head_on_the_last_layer_is_the_model(name: str) -> None:
    encoder = encoder_of(name)
    given = {key: value[:1] for key, value in tiny.inputs().items()}
    trace = encoder.run(given, record="layer.*.residual")
    last = trace["layer.*.residual"][-1][0]
    torch.testing.assert_close(head_logits(encoder, last), trace.logits[0])
    after = encoder.run(given).logits
    torch.testing.assert_close(after, trace.logits, msg="the model is as it was")


def test_layers_follow_changes_of_the_model() -> None:
    encoder, question = encoder_of(), Question(TEXT, CANDIDATES)
    (before,) = answered(encoder, question, lens=LogitLens())
    with encoder.doing(ZeroHead([(1, 0), (1, 1)])):
        (changed,) = answered(encoder, question, lens=LogitLens())
    np.testing.assert_array_equal(before.scores[0], changed.scores[0])
    assert np.abs(before.scores[1:] - changed.scores[1:]).min(axis=1).max() > 1e-4


# Work that is done once ------------------------------------------------------------------------


def passes(encoder: Encoder, questions: Any, **options: Any) -> int:
    done = [0]
    for _ in Clozes(encoder, **options).answers(questions, progress=lambda n, _: done.append(n)):
        pass
    return done[-1]


def test_distinct_masked_texts_are_computed_once() -> None:
    encoder = encoder_of()
    ones = Question(TEXT, ("cat", "dog", "paris"))
    assert passes(encoder, [ones, ones, Question("The [MASK] sleeps.", ("walk",))]) == 1
    assert passes(encoder, [ones, Question(TEXT)]) == 1
    # Of two pieces: [MASK] [MASK], and each first piece with [MASK] after it.
    assert passes(encoder, [Question(TEXT, ("dogs", "walking", "walks"))]) == 3
    assert passes(encoder, [Question(TEXT, ("dogs", "walking"))], method="joint") == 1
    about = [Question(f"the {s} {{mask}} .", ("walk",), subject=s) for s in WORDS[1:5]]
    assert passes(encoder, about, prior="{mask}") == 5


def test_questions_are_taken_as_they_come() -> None:
    encoder, taken = encoder_of(), []

    def questions() -> Iterator[Question]:
        for i in range(2000):
            taken.append(i)
            yield Question(f"{'the ' * (i % 40)} cat {{mask}} {'new ' * (i // 400)}", ("walk",))

    from bertology.model.masked_lm import clozes

    window, clozes._WINDOW = clozes._WINDOW, 64
    try:
        found = Clozes(encoder).answers(questions())
        first = next(found)
        assert len(taken) < 600
        rest = [first, *found]
    finally:
        clozes._WINDOW = window
    assert len(rest) == 2000
    (alone,) = answered(encoder, rest[777].question)
    np.testing.assert_allclose(rest[777].scores, alone.scores, atol=1e-5)


def test_several_blanks_are_told_apart() -> None:
    encoder = encoder_of()
    first, second = answered(
        encoder, *(Question("{mask} cat [MASK] .", ("dog",), blank=i) for i in range(2))
    )
    dog = TOKENIZER.convert_tokens_to_ids("dog")
    ids = TOKENIZER("[MASK] cat [MASK] .")["input_ids"]
    for answer, place in ((first, 1), (second, 3)):
        assert answer.scores[0, 0] == pytest.approx(
            float(plain(encoder, ids, place)[dog]), abs=1e-5
        )


def test_words_of_one_piece() -> None:
    assert set(one_piece_words(encoder_of(), ["cat", "dogs", "zebra", "new", "cat"])) == {
        "cat",
        "new",
    }


# What cannot be asked --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "options", "message"),
    [
        (Question("the cat", ("dog",)), {}, r"(?s)no blank in 'the cat'.*\{mask\}"),
        (Question("the {mask} {mask}", ("dog",)), {}, "2 blanks"),
        (Question("the {mask} {mask}"), {}, "2 blanks"),
        (Question("the {mask}", ("dog",), blank=1), {}, "no blank 1"),
        (Question("the {mask}", ("zebra",)), {}, "'zebra' is not in the vocabulary"),
        (Question("the {mask}", ("cat", " ")), {}, "candidate .* is empty"),
        (Question("the {mask}", ("dogs",)), {"method": "single"}, "'dogs' has 2 pieces"),
        (Question("the {mask}", ("new " * 70,)), {}, "too long: 73 tokens.*takes 64.*the new"),
        (Question("the {mask}", answers=("dogs",)), {}, "'dogs' is not a single piece"),
        (
            Question("the {mask}", answers=("dog",)),
            {"vocabulary": ["cat"], "top_k": 1},
            "'dog' is not in the restricted",
        ),
        (Question("the {mask}", ("dog",)), {"prior": "{mask}"}, "no subject"),
        (Question("the {mask}", ("dog",), subject="cat"), {"prior": "new"}, "'cat' is not in"),
        (Question("cats {mask}", ("dog",), subject="cat"), {"prior": "new"}, "'cat' is not in"),
    ],
)
def test_questions_that_cannot_be_asked(
    question: Question, options: dict[str, Any], message: str
) -> None:
    engine = Clozes(encoder_of(), **options)
    with pytest.raises(DataError, match=message):
        list(engine.answers([question]))
    with pytest.raises(DataError, match=message):
        engine.check([question])


def test_engines_that_cannot_be_made() -> None:
    with pytest.raises(BertologyError, match="left-to-right"):
        Clozes(encoder_of(), method="left")
    with pytest.raises(ParameterError, match="top_k"):
        Clozes(encoder_of(), vocabulary=["cat", "dog"], top_k=3)
    with pytest.raises(DataError, match="no single piece for 1 of 2 words, such as 'dogs'"):
        Clozes(encoder_of(), vocabulary=["cat", "dogs"], top_k=1)
    with pytest.raises(CapabilityError, match="reads a decoder"):
        Clozes(encoder_of("bart"), lens=LogitLens())
    lens = AffineLens(torch.zeros(3, 24, 24), torch.zeros(3, 24), "another")
    with pytest.raises(BertologyError, match="fitted to another model"):
        Clozes(encoder_of(), lens=lens)
