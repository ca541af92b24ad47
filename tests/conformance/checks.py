"""One check per capability: does a family really give what its row says?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import tiny
from bertology.model.batch import Batch
from bertology.model.encoder import Encoder
from bertology.model.families import Capability
from bertology.model.interventions import (
    GateHead,
    GateMLP,
    Patch,
    SkipLayer,
    UniformAttention,
    ZeroDimensions,
    ZeroHead,
)
from bertology.model.loading.pruning import prune_heads
from bertology.model.masked_lm.scoring import pseudo_log_likelihood
from bertology.model.sweeps.replay import Sweep, Variant
from bertology.model.weight_edits import ReplaceWeights, ZeroLayerNorm

EAGER_ONLY = {"xlm", "xlnet", "mpnet", "deberta", "deberta-v2"}
NORMED_AT_THE_END = {"modernbert", "gpt2", "t5"}  # their last hidden state has one norm more


def eager(encoder: Encoder, inputs: dict[str, Tensor]) -> Any:
    """transformers' own plain forward pass, the reference for everything."""
    model = encoder.model
    before = model.config._attn_implementation
    if encoder.family.model_type not in EAGER_ONLY:
        model.set_attn_implementation("eager")
    options = {"use_cache": False} if encoder.family.model_type in ("gpt2", "bart") else {}
    with torch.no_grad():
        out = model(**inputs, output_attentions=True, output_hidden_states=True, **options)
    if encoder.family.model_type not in EAGER_ONLY:
        model.set_attn_implementation(before)
    return out


def close(a: Tensor, b: Tensor, tolerance: float = 2e-5) -> None:
    scale = max(1.0, float(b.detach().abs().max()))  # MobileBERT has no norms: values grow large
    torch.testing.assert_close(a / scale, b / scale, atol=tolerance, rtol=tolerance)


def real(inputs: dict[str, Tensor]) -> Tensor:
    return inputs["attention_mask"].bool()


def final(encoder: Encoder, inputs: dict[str, Tensor], **how: Any) -> Tensor:
    """The encoder's last residual at real tokens, under some interventions."""
    last = encoder.shape.layers - 1
    trace = encoder.run(inputs, record=f"layer.{last}.residual", **how)
    return trace[f"layer.{last}.residual"][real(inputs)]


def patterns(encoder: Encoder, inputs: dict[str, Tensor]) -> None:
    """Recorded weights equal eager's, padding gets none, and disabled heads attend to 1/L."""
    reference = eager(encoder, inputs)
    found = encoder.run(inputs, record="layer.*.head.*.pattern")["layer.*.head.*.pattern"]
    expected = _attentions(reference)
    queries = real(inputs)[:, None, :].expand(-1, encoder.shape.heads, -1)
    for layer, weights in enumerate(expected):
        close(found[layer][queries], weights[queries])
    # Rows of padding are nobody's business; some families let them attend to anything.
    leak = real(inputs)[:, None, :, None] & ~real(inputs)[:, None, None, :]
    assert (found * leak).max() == 0, "a mask did not reach the softmax"
    disabled = encoder.run(inputs, do=UniformAttention([(1, 2)]), record="layer.1.head.*.pattern")[
        "layer.1.head.*.pattern"
    ]
    visible = (found[1, :, 2] > 0).float()  # a softmax is zero only where it is masked
    if encoder.family.model_type in ("gpt2", "modernbert"):
        visible = disabled[:, 2].gt(0).float()  # causal or windowed: uniform over what it may see
        assert ((found[1, :, 2] > 1e-30).float() <= visible)[real(inputs)].all()
    close(disabled[:, 2][real(inputs)], (visible / visible.sum(-1, keepdim=True))[real(inputs)])
    close(disabled[:, 3], found[1][:, 3])


def _attentions(reference: Any) -> Any:
    found = getattr(reference, "attentions", None)
    return reference.encoder_attentions if found is None else found


def qkv(encoder: Encoder, inputs: dict[str, Tensor]) -> None:
    """Softmax of scores gives the patterns; patterns × values give the outputs."""
    kinds = ("query", "key", "value", "scores", "pattern", "output")
    trace = encoder.run(inputs, record=[f"layer.1.head.*.{k}" for k in kinds])
    got = {k: trace[f"layer.1.head.*.{k}"] for k in kinds}
    close(got["pattern"] @ got["value"], got["output"])
    blocked = got["pattern"] == 0
    weights = got["scores"].masked_fill(blocked, float("-inf")).softmax(-1)
    queries = real(inputs)[:, None, :].expand(-1, encoder.shape.heads, -1)
    close(weights[queries], got["pattern"][queries])
    assert got["query"].shape == got["key"].shape == got["value"].shape


def heads(encoder: Encoder, inputs: dict[str, Tensor]) -> None:
    """Zeroing a head equals closing its gate equals cutting its rows from the projection."""
    zeroed = final(encoder, inputs, do=ZeroHead([(1, 2)]))
    xi = torch.ones(encoder.shape.layers, encoder.shape.heads)
    xi[1, 2] = 0
    close(final(encoder, inputs, do=GateHead(xi)), zeroed)
    assert (zeroed - final(encoder, inputs)).abs().max() > 1e-3
    if encoder.family.model_type != "albert":  # shared weights: cutting would cut in every layer
        close(final(encoder, inputs, do=_projection_without(encoder, 1, 2)), zeroed)


def _projection_without(encoder: Encoder, layer: int, head: int) -> ReplaceWeights:
    row = encoder.family.stacks[encoder.family.main_stack]
    if row.projection is None:
        weight = encoder.module(row.attention, layer).get_parameter("o")
        new = weight.detach().clone()
        new[:, head] = 0
    else:
        module = encoder.module(row.projection, layer)
        weight = module.get_parameter("weight")
        new = weight.detach().clone()
        size = encoder.shape.head_size
        part = slice(head * size, (head + 1) * size)
        if isinstance(module, torch.nn.Linear):
            new[:, part] = 0
        else:
            new[part] = 0
    name = next(n for n, p in encoder.model.named_parameters() if p is weight)
    return ReplaceWeights({name: new})


def contributions(encoder: Encoder, inputs: dict[str, Tensor]) -> None:
    """Head contributions add up to the output of attention."""
    row = encoder.family.stacks[encoder.family.main_stack]
    whole = "layer.1.attention" if row.projection else "layer.1.head.*.output"
    trace = encoder.run(inputs, record=["layer.1.head.*.contribution", whole])
    total = trace["layer.1.head.*.contribution"].sum(1)
    if row.projection is None:
        weight = encoder.projection_weight(1)
        close(total, torch.einsum("bhtd,hdm->btm", trace[whole], weight))
        return
    bias = getattr(encoder.module(row.projection, 1), "bias", None)
    close(total if bias is None else total + bias, trace[whole])


def residual(encoder: Encoder, inputs: dict[str, Tensor]) -> None:
    """Hidden states equal eager's; skipped layers hand on; dimensions can be silenced."""
    reference = eager(encoder, inputs)
    hidden = getattr(reference, "hidden_states", None) or reference.encoder_hidden_states
    trace = encoder.run(inputs, record=["embeddings", "layer.*.residual"])
    stream = [trace["embeddings"], *trace["layer.*.residual"]]
    normed = encoder.family.model_type in NORMED_AT_THE_END
    for ours, theirs in list(zip(stream, hidden, strict=True))[: -1 if normed else None]:
        close(ours[real(inputs)], theirs[real(inputs)])
    skipped = encoder.run(inputs, do=SkipLayer([1]), record="layer.1.residual")
    close(skipped["layer.1.residual"][real(inputs)], stream[1][real(inputs)])
    silent = encoder.run(inputs, do=ZeroDimensions([3], layers=[0]), record="layer.0.residual")
    assert silent["layer.0.residual"][..., 3].abs().max() == 0
    patch = Patch("layer.0.residual", stream[1])
    close(final(encoder, inputs, do=[ZeroDimensions([3], layers=[0]), patch]),
          final(encoder, inputs))  # fmt: skip


def mlp(encoder: Encoder, inputs: dict[str, Tensor]) -> None:
    """MLP outputs are the last linear map of the activations; a closed gate silences them."""
    row = encoder.family.stacks[encoder.family.main_stack]
    trace = encoder.run(inputs, record=["layer.1.mlp", "layer.1.mlp.activation"])
    with torch.no_grad():
        expected = encoder.module(str(row.mlp), 1)(trace["layer.1.mlp.activation"])
    close(trace["layer.1.mlp"], expected)
    nu = torch.ones(encoder.shape.layers)
    nu[1] = 0
    gated = encoder.run(inputs, do=GateMLP(nu), record="layer.1.mlp")
    assert gated["layer.1.mlp"].abs().max() == 0


def norms(encoder: Encoder, inputs: dict[str, Tensor]) -> None:
    """Zeroed LayerNorm entries act during the run and are back after it."""
    before = {n: p.detach().clone() for n, p in encoder.model.named_parameters()}
    changed = final(encoder, inputs, do=ZeroLayerNorm([2, 5]))
    assert (changed - final(encoder, inputs)).abs().max() > 1e-4
    for name, parameter in encoder.model.named_parameters():
        assert torch.equal(parameter, before[name])


def pruning(encoder: Encoder, inputs: dict[str, Tensor]) -> None:
    """The smaller model gives what the gated one gives."""
    smaller = Encoder(prune_heads(encoder.model, [(1, 2), (0, 0)]))
    expected = final(encoder, inputs, do=ZeroHead([(1, 2), (0, 0)]))
    close(final(smaller, inputs), expected)
    count = sum(p.numel() for p in smaller.model.parameters())
    assert count < sum(p.numel() for p in encoder.model.parameters())


def fast_replay(encoder: Encoder, inputs: dict[str, Tensor]) -> None:
    """The fast sweep gives what plain forward passes give."""
    model = tiny.model(encoder.name, "classification")
    classifier = Encoder(model, head="classification")
    batch = Batch(inputs, range(len(inputs["input_ids"])))
    variants = [Variant(((1, 2),)), Variant(((0, 0), (2, 1)))]
    fast, slow = (Sweep(classifier, variants, fast=f) for f in (True, False))
    assert fast.fast
    close(fast.run(batch), slow.run(batch))


def masked_lm(encoder: Encoder, inputs: dict[str, Tensor]) -> None:
    """The pseudo-log-likelihood is that of masking one token after the other."""
    words = [f"w{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(tiny.VOCAB - 5)]
    scorer = Encoder(tiny.model(encoder.name, "mlm"), tiny.tokenizer(words), head="mlm")
    text = f"{words[3]} {words[40]} {words[7]}"
    (scored,) = pseudo_log_likelihood(scorer, [text])
    given = scorer.encode(text).inputs
    ids = given["input_ids"]
    total = 0.0
    for position in range(1, ids.shape[1] - 1):
        masked = ids.clone()
        masked[0, position] = scorer.tokenizer.mask_token_id
        logits = scorer.run({**given, "input_ids": masked}).logits
        total += float(logits[0, position].log_softmax(-1)[ids[0, position]])
    close(torch.tensor(scored.total), torch.tensor(total), 1e-4)


CHECKS: dict[Capability, Callable[[Encoder, dict[str, Tensor]], None]] = {
    Capability.PATTERNS: patterns,
    Capability.QKV: qkv,
    Capability.HEADS: heads,
    Capability.CONTRIBUTIONS: contributions,
    Capability.RESIDUAL: residual,
    Capability.MLP: mlp,
    Capability.NORMS: norms,
    Capability.PRUNING: pruning,
    Capability.FAST_REPLAY: fast_replay,
    Capability.MASKED_LM: masked_lm,
}


def encoder_of(name: str, head: str = "base") -> Encoder:
    return Encoder(tiny.model(name, head), head=head, name=name)
