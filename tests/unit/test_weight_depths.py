"""Every weight of every family has its place, and ways that go by layers touch exactly theirs."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

import tiny
from bertology.errors import CapabilityError
from bertology.model.encoder import Encoder
from bertology.model.weight_depths import weight_depths
from bertology.train.restoring import Restorer
from bertology.train.starts import begin
from bertology.train.ways import read_way
from made_tunings import YES_NO, encoder
from made_ways import by, lesson_of

EMBEDDINGS = r"embeddings\."
LAYER = r"encoder\.layer\.(\d)\."


@dataclass(frozen=True)
class Places:
    """What the names of a family's body say, written down by hand."""

    layer: str = LAYER
    inputs: str = EMBEDDINGS
    after: str = "nothing"
    """What comes after the layers and was pre-trained."""
    values: tuple[str, ...] = ("query.weight", "value.weight")
    """Which maps LoRA changes; none where it is refused."""
    other_maps: tuple[str, ...] = ()
    """Maps outside of the layers that mixout mixes."""
    mixed: bool = True
    dropped: bool = True
    """Whether whole layers can be left out."""

    def depth(self, inner: str) -> int:
        """Of a weight of the body; a name that nobody wrote down is an error."""
        if found := re.match(self.layer, inner):
            return int(found[1]) + 1
        if re.match(self.inputs, inner):
            return 0
        assert re.match(self.after, inner), inner
        return 4


POOLER = ("pooler.dense",)
RELATIVE = r"embeddings\.|encoder\.(rel_embeddings|LayerNorm)\."
FAMILIES = {
    "bert": Places(after="pooler", other_maps=POOLER),
    "roberta": Places(),
    "xlm-roberta": Places(),
    "camembert": Places(),
    "electra": Places(
        inputs=r"embeddings\.|embeddings_project\.", other_maps=("embeddings_project",)
    ),
    "distilbert": Places(
        layer=r"transformer\.layer\.(\d)\.", values=("q_lin.weight", "v_lin.weight")
    ),
    "mobilebert": Places(
        after="pooler", other_maps=(*POOLER, "embeddings.embedding_transformation")
    ),
    "modernbert": Places(layer=r"layers\.(\d)\.", after=r"final_norm\.", values=()),
    "mpnet": Places(
        inputs=r"embeddings\.|encoder\.relative_attention_bias\.",
        values=("attn.q.weight", "attn.v.weight"),
    ),
    "deberta": Places(inputs=RELATIVE, values=()),
    "deberta-v2": Places(inputs=RELATIVE, values=()),
    "deberta-v3": Places(inputs=RELATIVE, values=()),
    "xlnet": Places(
        layer=r"layer\.(\d)\.", inputs=r"word_embedding\.|mask_emb$", values=(), mixed=False
    ),
    "xlm": Places(
        layer=r"(?:attentions|layer_norm1|ffns|layer_norm2)\.(\d)\.",
        inputs=r"(position_)?embeddings\.|layer_norm_emb\.",
        values=(),
        dropped=False,
    ),
    "gpt2": Places(layer=r"h\.(\d)\.", inputs=r"wte\.|wpe\.", after=r"ln_f\.", values=()),
}  # fmt: skip
REFUSED = {"albert": "share their weights", "bart": "more than the layers", "t5": "more than the"}


def test_the_table_has_every_family() -> None:
    assert {*FAMILIES} | {*REFUSED} == {*tiny.ROWS}


@pytest.mark.parametrize("name", FAMILIES)
def test_ways_that_go_by_layers_touch_exactly_their_weights(name: str) -> None:
    given = replace(by(), encoder=encoder(name))
    begun: Any = begin(given.encoder, YES_NO, given.start, seed=0)
    prefix = f"{begun.base_model_prefix}."
    places, weights = FAMILIES[name], dict(begun.named_parameters())
    body = {n: places.depth(n.removeprefix(prefix)) for n in weights if n.startswith(prefix)}
    depths = {n: body.get(n, 4) for n in weights}
    head, in_layers = weights.keys() - body.keys(), {n for n in body if 0 < body[n] < 4}
    matrices = {n for n in weights if weights[n].dim() > 1}

    def done(text: str) -> tuple[Any, Any]:
        model = copy.deepcopy(begun)
        lesson = lesson_of(given, model)
        read_way(text).prepare(lesson)
        return model, lesson

    model, lesson = done("top_again:layers=1")
    assert lesson.depths() == depths
    changed = {n for n, w in model.named_parameters() if not torch.equal(w, weights[n])}
    assert changed == {n for n in matrices if depths[n] >= 3} - head
    model, _ = done("frozen_bottom:layers=1")
    assert {n for n, w in model.named_parameters() if w.requires_grad} == {
        n for n in weights if depths[n] > 1
    }
    rates = read_way("layer_rates:decay=0.5").rates(lesson)
    assert rates == {n: 0.5 ** (4 - depth) for n, depth in depths.items()}
    if places.mixed:
        model, _ = done("mixout")
        found = {f"{n}.weight" for n, m in model.named_modules() if "forward" in vars(m)}
        assert found == in_layers & matrices | {f"{prefix}{n}.weight" for n in places.other_maps}
    else:
        with pytest.raises(CapabilityError, match="no linear map"):
            done("mixout")
    if places.dropped:
        model, _ = done("layer_drop")
        assert len(model._layer_drop_hooks) == 3
    else:
        with pytest.raises(CapabilityError, match="not one module"):
            done("layer_drop")
    wanted = {n.removesuffix(".weight") for n in in_layers if n.endswith(places.values)}
    if wanted:
        model, _ = done("lora:rank=2")
        new = {n for n, _ in model.named_parameters() if "lora_" in n}
        assert {n.partition(".lora_")[0] for n in new} == wanted
    else:
        with pytest.raises(CapabilityError, match="query and value maps of their own"):
            read_way("lora").check(lesson, ())
    restorer = Restorer(given.encoder, Encoder(begun))
    inner = {n.removeprefix(prefix): depth for n, depth in body.items()}
    assert {*restorer.embeddings} == {n for n in inner if inner[n] == 0}
    assert [{*own} for own in restorer.layers] == [
        {n for n in inner if inner[n] == layer} for layer in (1, 2, 3)
    ]


@pytest.mark.parametrize("name", REFUSED)
def test_models_whose_weights_have_no_place_are_refused(name: str) -> None:
    whole = Encoder(tiny.model(name, "classification"))
    with pytest.raises(CapabilityError, match=REFUSED[name]):
        weight_depths(whole)
    with pytest.raises(CapabilityError, match=REFUSED[name]):
        Restorer(whole, whole)
    if name != "t5":  # which has no classifier of its encoder alone
        given = replace(by(), encoder=encoder(name))
        lesson = lesson_of(given, begin(given.encoder, YES_NO, given.start, seed=0))
        for text in ("top_again", "frozen_bottom", "layer_drop"):
            with pytest.raises(CapabilityError, match=REFUSED[name]):
                read_way(text).prepare(lesson)
        with pytest.raises(CapabilityError, match=REFUSED[name]):
            read_way("layer_rates").rates(lesson)


def test_mixout_of_gpt2_mixes_what_its_maps_are() -> None:
    """Their matrices lie the other way round."""
    given = replace(by(), encoder=encoder("gpt2"))
    model: Any = begin(given.encoder, YES_NO, given.start, seed=0)
    way, lesson = read_way("mixout:share=0.5"), lesson_of(given, model)
    batch = tiny.inputs()
    with torch.no_grad():
        plain = model(**batch).logits
        way.prepare(lesson)
        torch.testing.assert_close(model(**batch).logits, plain)
        linear = model.transformer.h[0].mlp.c_fc
        before = linear.weight.clone()
        linear.weight.add_(1.0)
        linear.train()
        mixed = linear(torch.eye(24)) - linear.bias
        kept = ((0.5 * mixed + 0.5 * before - before).abs() < 1e-4).float().mean()
    assert float(kept) == pytest.approx(0.5, abs=0.05)
