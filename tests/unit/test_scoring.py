"""Pseudo-log-likelihood and cloze scoring, against one plain forward pass per masked token."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tiny
from bertology.errors import (
    BertologyError,
    CapabilityError,
    DataError,
    ModelError,
    ParameterError,
    UnknownNameError,
)
from bertology.model.encoder import Encoder
from bertology.model.families import Capability, family_of
from bertology.model.interventions import ZeroHead
from bertology.model.masked_lm.cloze import cloze
from bertology.model.masked_lm.scoring import Likelihood, compare_pairs, pseudo_log_likelihood

WORDS = ["the", "cat", "cats", "dog", "sleep", "##s", "##ing", "walk", "un", "##happi", "##ly", "."]
TEXTS = ["the cat sleeps .", "the dogs", "unhappily the cats walking .", "walk"]
TOKENIZER = tiny.tokenizer([*WORDS, "##y", "paris", "new"])
FAMILIES = [
    n
    for n in tiny.ROWS
    if Capability.MASKED_LM in family_of(tiny.config(n).model_type).capabilities
]


def encoder_of(name: str = "bert", tokenizer: Any = TOKENIZER) -> Encoder:
    return Encoder(tiny.model(name, "mlm"), tokenizer, head="mlm", name=f"tiny-{name}")


def log_probabilities(encoder: Encoder, ids: list[int], position: int) -> torch.Tensor:
    """transformers alone, one sequence, all logits."""
    with torch.no_grad():
        # All three are given, since XLM embeds segment ids as if they were words, and takes
        # every token that looks like its own padding for padding when there is no mask.
        given = torch.tensor([ids])
        logits = encoder.model(
            input_ids=given,
            token_type_ids=torch.zeros_like(given),
            attention_mask=torch.ones_like(given),
        ).logits
    return torch.log_softmax(logits[0, position], -1)


def naive(encoder: Encoder, text: str, within_word: bool) -> list[float]:
    tokens = TOKENIZER(text)
    ids, words = tokens["input_ids"], tokens.word_ids()
    scores = []
    for p in range(1, len(ids) - 1):
        copy = list(ids)
        copy[p] = TOKENIZER.mask_token_id
        for q in range(p + 1, len(ids) - 1):
            if within_word and words[q] == words[p]:
                copy[q] = TOKENIZER.mask_token_id
        scores.append(float(log_probabilities(encoder, copy, p)[ids[p]]))
    return scores


@pytest.mark.parametrize("method", ["within-word-l2r", "original"])
@pytest.mark.parametrize("tokens_per_batch", [1, 20, 4096])
def test_likelihoods_equal_a_plain_loop(method: Any, tokens_per_batch: int) -> None:
    encoder = encoder_of()
    found = pseudo_log_likelihood(encoder, TEXTS, method=method, tokens_per_batch=tokens_per_batch)
    for text, likelihood in zip(TEXTS, found, strict=True):
        expected = naive(encoder, text, method == "within-word-l2r")
        np.testing.assert_allclose(likelihood.log_probabilities, expected, atol=1e-5)
        assert likelihood.tokens == len(expected)
        assert likelihood.total == pytest.approx(sum(expected), abs=1e-4)
        assert likelihood.mean == pytest.approx(likelihood.total / likelihood.tokens)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_with_a_masked_lm_head(name: str) -> None:
    """The projection at one position equals the same position of the whole logits."""
    encoder = encoder_of(name)
    found = pseudo_log_likelihood(encoder, TEXTS[:2], method="original")
    for text, likelihood in zip(TEXTS, found, strict=False):
        np.testing.assert_allclose(
            likelihood.log_probabilities, naive(encoder, text, False), atol=1e-4
        )


def test_only_the_masked_position_meets_the_vocabulary() -> None:
    met = []
    encoder = encoder_of()
    encoder.model.get_output_embeddings().register_forward_hook(
        lambda module, args, output: met.append(output.shape[1])
    )
    pseudo_log_likelihood(encoder, TEXTS)
    assert set(met) == {1}
    assert not encoder.model.get_output_embeddings()._forward_pre_hooks


def test_the_projection_is_whole_again_after_an_error() -> None:
    encoder = encoder_of()
    with encoder.doing(ZeroHead([(9, 9)])), pytest.raises(BertologyError):
        pseudo_log_likelihood(encoder, TEXTS)
    assert not encoder.model.get_output_embeddings()._forward_pre_hooks


def test_methods_agree_when_every_word_has_one_piece() -> None:
    encoder = encoder_of()
    texts = ["the cat walk .", "cats sleep"]
    assert pseudo_log_likelihood(encoder, texts, method="original") == pseudo_log_likelihood(
        encoder, texts
    )
    long = ["unhappily"]
    assert pseudo_log_likelihood(encoder, long, method="original") != pseudo_log_likelihood(
        encoder, long
    )


def test_a_repeated_word_is_not_its_own_rest() -> None:
    """Two words with the same pieces side by side stay two words."""
    encoder = encoder_of()
    (found,) = pseudo_log_likelihood(encoder, "sleeps sleeps")
    np.testing.assert_allclose(
        found.log_probabilities, naive(encoder, "sleeps sleeps", True), atol=1e-5
    )


def test_pairs_of_texts_are_scored_with_their_segments() -> None:
    encoder = encoder_of()
    (found,) = pseudo_log_likelihood(encoder, [("the cat", "cat sleeps")])
    assert found.tokens == 5
    tokens = TOKENIZER("the cat", "cat sleeps", return_tensors="pt")
    tokens["input_ids"][0, 2] = TOKENIZER.mask_token_id  # "cat" before [SEP]; the second one stays
    with torch.no_grad():
        logits = encoder.model(**tokens).logits
    expected = torch.log_softmax(logits[0, 2], -1)[TOKENIZER.convert_tokens_to_ids("cat")]
    assert found.log_probabilities[1] == pytest.approx(float(expected), abs=1e-5)


def test_scores_follow_interventions() -> None:
    encoder = encoder_of()
    before = pseudo_log_likelihood(encoder, TEXTS)
    with encoder.doing(ZeroHead([(0, 0), (1, 1)])):
        changed = pseudo_log_likelihood(encoder, TEXTS)
    assert max(abs(a.total - b.total) for a, b in zip(before, changed, strict=True)) > 1e-3
    assert pseudo_log_likelihood(encoder, TEXTS) == before


def test_progress_counts_masked_copies() -> None:
    seen: list[tuple[int, int]] = []
    pseudo_log_likelihood(
        encoder_of(),
        TEXTS,
        tokens_per_batch=20,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen[-1][0] == seen[-1][1]
    assert [d for d, _ in seen] == sorted(d for d, _ in seen)


def test_minimal_pairs() -> None:
    encoder = encoder_of()
    good, bad = ["the cat sleeps .", "the cats walk"], ["the cats sleeps .", "the cat walk"]
    difference = compare_pairs(encoder, good, bad)
    expected = [
        a.total - b.total
        for a, b in zip(
            pseudo_log_likelihood(encoder, good), pseudo_log_likelihood(encoder, bad), strict=True
        )
    ]
    np.testing.assert_allclose(difference, expected, atol=1e-5)
    with pytest.raises(DataError, match="2 are good and 1 bad"):
        compare_pairs(encoder, good, bad[:1])


def test_likelihood_of_nothing_odd() -> None:
    assert Likelihood((-1.0, -2.0)).total == -3.0


# Cloze -------------------------------------------------------------------------------------------


def test_open_predictions_are_the_models_own() -> None:
    encoder = encoder_of()
    ids = TOKENIZER("the [MASK] sleeps")["input_ids"]
    expected = log_probabilities(encoder, ids, 2).topk(5)
    (found,) = cloze(encoder, "the {mask} sleeps", top_k=5)
    assert len(found.predictions) == 5
    np.testing.assert_allclose(
        [p.log_probability for p in found.predictions], expected.values, atol=1e-5
    )
    best = TOKENIZER.convert_ids_to_tokens(int(expected.indices[0]))
    assert found.predictions[0].pieces == (best,)
    assert found.predictions[0].probability == pytest.approx(math.exp(expected.values[0]))
    assert cloze(encoder, ["the [MASK] sleeps"], top_k=5)[0].blanks == found.blanks


def test_several_blanks_are_each_predicted() -> None:
    encoder = encoder_of()
    first, second = cloze(encoder, ["{mask} cat [MASK] .", "walk {mask}"], top_k=3)
    assert [len(b) for b in first.blanks] == [3, 3]
    assert len(second.blanks) == 1
    ids = TOKENIZER("[MASK] cat [MASK] .")["input_ids"]
    for blank, position in zip(first.blanks, (1, 3), strict=True):
        expected = log_probabilities(encoder, ids, position).topk(3).values
        np.testing.assert_allclose([p.log_probability for p in blank], expected, atol=1e-5)
    with pytest.raises(DataError, match="2 blanks"):
        _ = first.predictions


def test_candidates_of_several_pieces_are_filled_from_left_to_right() -> None:
    encoder = encoder_of()
    words = ["cat", "unhappily", "dog", "walking"]
    (found,) = cloze(encoder, "the {mask} sleeps .", candidates=words)
    assert [p.log_probability for p in found.predictions] == sorted(
        (p.log_probability for p in found.predictions), reverse=True
    )
    assert {p.word for p in found.predictions} == set(words)
    for word in words:
        pieces = TOKENIZER(word, add_special_tokens=False)["input_ids"]
        total = 0.0
        for n, piece in enumerate(pieces):
            inner = [*pieces[:n], *[TOKENIZER.mask_token_id] * (len(pieces) - n)]
            ids = [
                *TOKENIZER("the")["input_ids"][:-1],
                *inner,
                *TOKENIZER("sleeps .")["input_ids"][1:],
            ]
            total += float(log_probabilities(encoder, ids, 2 + n)[piece])
        assert found.log_probability(word) == pytest.approx(total, abs=1e-4)


def test_candidates_of_one_piece_share_a_forward_pass() -> None:
    seen: list[tuple[int, int]] = []
    cloze(
        encoder_of(), ["the {mask} .", "{mask}"], candidates=["cat", "dog", "paris", "new"],
        progress=lambda done, total: seen.append((done, total)),
    )  # fmt: skip
    assert seen[-1] == (2, 2)


def test_each_text_may_have_its_own_candidates() -> None:
    encoder = encoder_of()
    texts = ["the {mask} sleeps", "the {mask} sleep"]
    found = cloze(encoder, texts, candidates=[["cat"], ["cats", "dog"]])
    assert [len(f.predictions) for f in found] == [1, 2]
    alone = cloze(encoder, texts[1], candidates=["cats", "dog"])[0]
    for a, b in zip(found[1].predictions, alone.predictions, strict=True):
        assert a.word == b.word
        assert a.log_probability == pytest.approx(b.log_probability, abs=1e-5)


def test_a_byte_level_tokenizer_keeps_the_space_of_the_word() -> None:
    """RoBERTa's pieces carry the space before a word; a candidate must be tokenized in place."""
    import transformers
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *letters, "Ġc", "at", "Ġcat"]
    backend = Tokenizer(
        models.BPE({p: i for i, p in enumerate(pieces)}, [("Ġ", "c"), ("a", "t"), ("Ġc", "at")])
    )
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="<pad>", unk_token="<unk>", cls_token="<s>",
        sep_token="</s>", mask_token=AddedToken("<mask>", lstrip=True), model_max_length=30,
    )  # fmt: skip
    config = transformers.RobertaConfig(
        vocab_size=len(pieces), max_position_embeddings=40, pad_token_id=1,
        hidden_size=24, num_hidden_layers=1, num_attention_heads=4, intermediate_size=40,
    )  # fmt: skip
    torch.manual_seed(0)
    model = transformers.RobertaForMaskedLM(config).eval()
    encoder = Encoder(model, tokenizer, head="mlm")
    (found,) = cloze(encoder, "a {mask}.", candidates=["cat"])
    assert found.predictions[0].pieces == ("Ġcat",)
    ids = tokenizer("a <mask>.")["input_ids"]
    expected = log_probabilities(encoder, ids, 2)[tokenizer.convert_tokens_to_ids("Ġcat")]
    assert found.predictions[0].log_probability == pytest.approx(float(expected), abs=1e-5)


# Bad input ---------------------------------------------------------------------------------------


def test_a_model_without_the_head_is_refused_before_any_work() -> None:
    base = Encoder(tiny.model("bert"), TOKENIZER)
    for work in (pseudo_log_likelihood, cloze):
        with pytest.raises(CapabilityError, match="cannot give masked-lm"):
            work(base, ["the {mask}"])


def test_a_pretraining_head_that_predicts_no_tokens_is_refused() -> None:
    import transformers

    model = transformers.ElectraForPreTraining(tiny.config("electra")).eval()
    with pytest.raises(CapabilityError, match="predicts no tokens"):
        pseudo_log_likelihood(Encoder(model, TOKENIZER, head="pretraining"), ["the cat"])


def test_a_model_without_a_tokenizer_is_refused() -> None:
    for work in (pseudo_log_likelihood, cloze):
        with pytest.raises(ModelError, match="came without a"):
            work(encoder_of(tokenizer=None), ["the {mask}"])


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "no text to score"),
        (["the cat", ""], "Text 1 is empty"),
        (["the " * 80], "Text 0 is too long: 82 tokens"),
        (["the cat", ("the", "cat")], "cannot be scored together"),
    ],
)
def test_texts_that_cannot_be_scored(texts: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        pseudo_log_likelihood(encoder_of(), texts)


def test_an_unknown_method_is_named() -> None:
    with pytest.raises(UnknownNameError, match="within-word-l2r"):
        pseudo_log_likelihood(encoder_of(), TEXTS, method="within-word")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "candidates", "message"),
    [
        ("the cat", None, r"(?s)no blank in 'the cat'.*\{mask\} or \[MASK\]"),
        ("the {mask} {mask}", ["cat"], "2 blanks"),
        ("the {mask}", [], "no candidates"),
        ("the {mask}", [["cat"], ["dog"]], "1 texts and 2 lists"),
        ("the {mask}", ["cat", " "], "candidate .* is empty"),
        ("the {mask}", ["zebra"], "'zebra' is not in the vocabulary"),
    ],
)
def test_blanks_that_cannot_be_filled(text: str, candidates: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        cloze(encoder_of(), text, candidates=candidates)


@pytest.mark.parametrize("top_k", [0, 10_000])
def test_a_top_k_outside_the_vocabulary(top_k: int) -> None:
    with pytest.raises(ParameterError, match="top_k"):
        cloze(encoder_of(), "{mask}", top_k=top_k)


def test_one_word_in_place_of_a_list_of_candidates() -> None:
    with pytest.raises(ParameterError, match="list of words"):
        cloze(encoder_of(), "the {mask}", candidates="cat")


def test_a_saved_encoder_scores_the_same(tmp_path: Path) -> None:
    encoder = encoder_of()
    encoder.model.save_pretrained(tmp_path)
    TOKENIZER.save_pretrained(tmp_path)
    again = Encoder.load(str(tmp_path), head="mlm", device="cpu")
    for a, b in zip(
        pseudo_log_likelihood(again, TEXTS), pseudo_log_likelihood(encoder, TEXTS), strict=True
    ):
        assert a.total == pytest.approx(b.total, abs=1e-5)
