"""Ways to fine-tune: what each does in training; plain runs stay as they were."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from hashlib import sha256
from typing import Any

import pytest
import torch
from torch.nn import functional

from bertology.train.encoded import encode
from bertology.train.starts import begin
from bertology.train.tuning import tune
from bertology.train.ways import read_way
from made_tunings import FAST, YES_NO, encoder, job, same
from made_ways import TOGETHER, by, in_layers, lesson_of

# Without a way -----------------------------------------------------------------------------------


def test_without_a_way_every_bit_is_as_it_always_was() -> None:
    """The trainer of before, in a few lines: it knows nothing of ways."""
    given = job(settings=replace(FAST, epochs=2))
    model: Any = begin(given.encoder, YES_NO, given.start, seed=0)
    vectors = [p for p in model.parameters() if p.dim() <= 1]
    matrices = [p for p in model.parameters() if p.dim() > 1]
    groups = [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=FAST.learning_rate, fused=True)
    rows = encode(given.train, given.encoder.tokenizer, 64)
    order = torch.Generator().manual_seed(0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        step = 0
        for _ in range(2):
            model.train()
            for chosen in list(rows.shuffled(8, order)):
                rate = (step + 1) / 2 if step < 1 else (10 - step) / 9
                for group in optimizer.param_groups:
                    group["lr"] = FAST.learning_rate * rate
                inputs, targets = rows.batch(chosen, torch.device("cpu"))
                loss = functional.cross_entropy(model(**inputs).logits, targets)
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                step += 1
    tuned, history = tune(given)
    assert same(dict(model.state_dict()), dict(tuned.state_dict()))
    assert history.trained == model.num_parameters()


def test_without_a_way_a_job_has_the_name_it_always_had() -> None:
    given = job()
    settings = asdict(given.settings)
    del settings["ways"], settings["weights_seed"]  # which jobs of before did not know
    asked = {
        "model": given.encoder.fingerprint,
        "train": given.train.fingerprint,
        "validation": given.validation.fingerprint,
        "start": "pretrained",
        "settings": settings,
    }
    named = sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]
    assert given.identity == named
    assert "ways" not in given.settings.as_record()
    names = {by(text).identity for text in ("mixout", "mixout:share=0.4", "bias_only")}
    assert len(names | {named}) == 4


# What single ways do ----------------------------------------------------------------------------


def test_new_layers_are_new_and_those_below_are_not() -> None:
    given = by("top_again:layers=1")
    plain: Any = begin(given.encoder, YES_NO, given.start, seed=0)
    model: Any = begin(given.encoder, YES_NO, given.start, seed=0)
    read_way("top_again:layers=1").prepare(lesson_of(given, model))
    before = dict(plain.named_parameters())
    changed = {n for n, p in model.named_parameters() if not torch.equal(p, before[n])}
    matrices = {n for n in before if in_layers(2)(n) and before[n].dim() > 1}
    assert changed >= matrices | {"bert.pooler.dense.weight"}
    assert all(in_layers(2)(n) or "pooler" in n for n in changed)
    drawn = model.bert.encoder.layer[2].output.dense.weight
    assert float(drawn.detach().std()) == pytest.approx(0.02, rel=0.1)


def test_rates_fall_from_layer_to_layer() -> None:
    given = by("layer_rates:decay=0.5")
    model: Any = begin(given.encoder, YES_NO, given.start, seed=0)
    factors = read_way("layer_rates:decay=0.5").rates(lesson_of(given, model))
    assert factors["classifier.weight"] == factors["bert.pooler.dense.bias"] == 1
    assert factors["bert.encoder.layer.2.output.dense.weight"] == 0.5
    assert factors["bert.encoder.layer.0.output.dense.weight"] == 0.125
    assert factors["bert.embeddings.word_embeddings.weight"] == 0.0625


def test_mixout_leaves_the_expected_weights_alone() -> None:
    given = by("mixout:share=0.7")
    model: Any = begin(given.encoder, YES_NO, given.start, seed=0)
    way, lesson = read_way("mixout:share=0.7"), lesson_of(given, model)
    linear = model.bert.encoder.layer[0].output.dense
    way.prepare(lesson)
    with torch.no_grad():
        before = linear.weight.clone()
        linear.weight.add_(1.0)
        ones = torch.ones(1, 40)
        plain = functional.linear(ones, linear.weight, linear.bias)
        model.train()
        drawn = torch.stack([linear(ones) for _ in range(2000)])
        assert drawn.mean(0) == pytest.approx(plain, abs=1.5)  # of a spread of 40 / 0.3
        once = linear(torch.eye(40)) - linear.bias
        swapped = (0.3 * once.T + 0.7 * before - before).abs() < 1e-4
        assert float(swapped.float().mean()) == pytest.approx(0.7, abs=0.06)
        model.eval()
        assert torch.equal(linear(ones), plain)
    way.finish(lesson)
    assert "forward" not in vars(linear)
    assert "forward" not in vars(model.classifier)


def test_substitution_leaves_special_tokens_and_draws_ordinary_ones() -> None:
    given = by("substitution")
    model: Any = begin(given.encoder, YES_NO, given.start, seed=0)
    lesson = lesson_of(given, model)
    ids = torch.tensor([[2, 5, 6, 7, 8, 9, 10, 3, 0, 0]] * 300)
    seen = read_way("substitution:share=0.5").inputs(lesson, {"input_ids": ids})["input_ids"]
    special = ids < 5
    assert torch.equal(seen[special], ids[special])
    assert set(seen[~special].tolist()) == set(range(5, len(lesson.tokenizer)))
    share = float((seen != ids)[~special].float().mean())
    assert share == pytest.approx(0.5 * 5 / 6, abs=0.05)  # one in six is the token itself
    masked = read_way("substitution:by=mask,share=1").inputs(lesson, {"input_ids": ids})
    assert set(masked["input_ids"][~special].tolist()) == {4}


def test_adversarial_passes_raise_the_loss_and_share_their_dropout() -> None:
    given = by("adversarial")
    model: Any = begin(given.encoder, YES_NO, given.start, seed=0)
    model.train()
    lesson, losses = lesson_of(given, model), []

    def plain(inputs: dict[str, Any], targets: Any) -> Any:
        losses.append(functional.cross_entropy(model(**inputs).logits, targets))
        return losses[-1]

    rows = encode(given.train, given.encoder.tokenizer, 64)
    inputs, targets = rows.batch(range(8), torch.device("cpu"))
    still = read_way("adversarial:steps=2,start=0,rate=0")
    assert float(still.loss(lesson, plain, inputs, targets).detach()) == pytest.approx(
        float(losses[0].detach())
    )
    assert torch.equal(losses[0], losses[1])
    losses.clear()
    way = read_way("adversarial:steps=4,start=0.01,rate=0.3,limit=2")
    found = way.loss(lesson, plain, inputs, targets)
    assert float(found.detach()) == pytest.approx(float(torch.stack(losses).detach().mean()))
    assert losses[0] < losses[1] < losses[2] < losses[3]
    found.backward()
    assert model.bert.embeddings.word_embeddings.weight.grad is not None
    assert not model.bert.embeddings.word_embeddings._forward_hooks


@pytest.mark.parametrize("kind", ["roberta", "electra", "distilbert"])
def test_other_families_take_the_same_ways(kind: str) -> None:
    for texts in (TOGETHER, ("bias_only", "frozen_bottom"), ("mixout", "top_again")[:1]):
        _, history = tune(replace(by(*texts), encoder=encoder(kind)))
        assert history.trained > 0
