"""Where the parts of each model family are: one row for each family.

A path is a template from the base model; `{i}` is the layer. Families that share modules between
layers (ALBERT) say in `coordinates` which module serves which layer. Attention that transformers
routes through its attention interface needs nothing more; the rest name an adapter.

Other packages add families through the entry-point group `bertology.families`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Protocol

from bertology.errors import UnknownNameError
from bertology.registry import Registry


class Capability(StrEnum):
    """What a family can give; a study that needs more refuses before any work."""

    PATTERNS = "patterns"  # record and edit attention scores and weights
    QKV = "qkv"  # record and edit queries, keys and values
    HEADS = "heads"  # record, gate and replace head outputs
    CONTRIBUTIONS = "contributions"  # head outputs through the projection
    RESIDUAL = "residual"  # record and edit the residual stream, skip layers
    MLP = "mlp"  # record and edit MLP outputs and activations, gate MLPs
    NORMS = "norms"  # find and zero LayerNorm entries
    PRUNING = "pruning"  # smaller models that save and reload
    FAST_REPLAY = "fast-replay"  # the sweep of replay.py that skips all repeated work
    MASKED_LM = "masked-lm"  # cloze and pseudo-log-likelihood


EVERYTHING = frozenset(Capability)


class _AlbertConfig(Protocol):
    """How ALBERT shares its layers."""

    inner_group_num: int
    num_hidden_layers: int
    num_hidden_groups: int


def _by_layer(config: object, layer: int) -> dict[str, int]:
    return {"i": layer}


def _albert(config: _AlbertConfig, layer: int) -> dict[str, int]:
    inner = config.inner_group_num
    outer = layer // inner
    group = int(outer / (config.num_hidden_layers / config.num_hidden_groups))
    return {"g": group, "k": layer % inner}


@dataclass(frozen=True)
class Stack:
    """Where the parts of one stack of layers lie."""

    block: str  # the module that takes and gives the residual stream
    attention: str  # the self-attention module
    projection: str | None = None  # the output projection; None where it is a bare parameter
    mlp: str | None = None  # the MLP's last linear map
    mlp_up: str | None = None  # its first, and the function between; the fast replay needs them
    activation: str | None = None
    norms: Mapping[str, str] = field(default_factory=dict)  # {"attention": …, "output": …}
    pre_norm: bool = False  # norms come first in a layer, so that the MLP's last map ends it
    exit: str | None = None  # where the residual leaves, when not at the end of `block`
    qkv: tuple[str, ...] = ()  # projections to prune: one fused or three separate, in order q k v
    layers: str = "num_hidden_layers"  # names in the config
    heads: str = "num_attention_heads"
    mlp_size: str = "intermediate_size"


@dataclass(frozen=True)
class Family:
    """One row: a model type, its stacks, and what it cannot do."""

    model_type: str
    title: str
    stacks: Mapping[str, Stack]
    lacks: frozenset[Capability] = frozenset()
    adapter: str | None = None  # "module:function" for attention that is not routed
    coordinates: Callable[[Any, int], dict[str, int]] = _by_layer
    time_first: bool = False  # hidden states are (time, batch, width)
    position_offset: int = 0  # positions that max_position_embeddings counts but text cannot use
    relative_positions: bool = False  # no hard limit on the length
    final_norm: str | None = None  # a norm between the last layer and the head

    @property
    def main_stack(self) -> str:
        return next(iter(self.stacks))

    @property
    def causal(self) -> bool:
        """Whether a token sees only those before it, as in GPT-2."""
        return self.main_stack == "decoder"

    @property
    def capabilities(self) -> frozenset[Capability]:
        return EVERYTHING - self.lacks

    def path(self, template: str, config: object, layer: int) -> str:
        return template.format(**self.coordinates(config, layer))


_INSIDE = frozenset({"attention", "projection", "mlp", "mlp_up", "activation"})


def _within(block: str, *, norms: Sequence[str], **parts: Any) -> Stack:
    """A stack whose parts lie in its block; of norms the attention's comes first."""
    places: dict[str, Any] = {
        n: f"{block}.{part}" if n in _INSIDE else part for n, part in parts.items()
    }
    named = zip(("attention", "output"), norms, strict=False)
    return Stack(block=block, norms={n: f"{block}.{norm}" for n, norm in named}, **places)


_BERT_BLOCK = "encoder.layer.{i}"
_BERT = _within(
    _BERT_BLOCK,
    attention="attention.self",
    projection="attention.output.dense",
    mlp="output.dense",
    mlp_up="intermediate.dense",
    activation="intermediate.intermediate_act_fn",
    norms=("attention.output.LayerNorm", "output.LayerNorm"),
    qkv=("query", "key", "value"),
)


def _encoder(model_type: str, title: str, stack: Stack = _BERT, **more: Any) -> Family:
    return Family(model_type, title, {"encoder": stack}, **more)


_ADAPTERS = "bertology.model.hooks.adapters"
_SLOW = Capability.FAST_REPLAY
_NO_MLM = Capability.MASKED_LM


def _bart(attention: str, side: str, **mlp: str) -> Stack:
    return _within(
        f"{side}.layers.{{i}}",
        attention=attention,
        projection=f"{attention}.out_proj",
        norms=(f"{attention}_layer_norm", *(("final_layer_norm",) if mlp else ())),
        qkv=("q_proj", "k_proj", "v_proj"),
        layers=f"{side}_layers",
        heads=f"{side}_attention_heads",
        mlp_size=f"{side}_ffn_dim",
        **mlp,
    )


_ROWS = (
    _encoder("bert", "BERT"),
    _encoder("roberta", "RoBERTa", position_offset=2),
    _encoder("xlm-roberta", "XLM-R", position_offset=2),
    _encoder("camembert", "CamemBERT", position_offset=2),
    _encoder("electra", "ELECTRA"),
    _encoder(
        "distilbert",
        "DistilBERT",
        _within(
            "transformer.layer.{i}",
            attention="attention",
            projection="attention.out_lin",
            mlp="ffn.lin2",
            mlp_up="ffn.lin1",
            activation="ffn.activation",
            norms=("sa_layer_norm", "output_layer_norm"),
            qkv=("q_lin", "k_lin", "v_lin"),
            layers="n_layers",
            heads="n_heads",
            mlp_size="hidden_dim",
        ),
    ),
    _encoder(
        "albert",
        "ALBERT",
        _within(
            "encoder.albert_layer_groups.{g}.albert_layers.{k}",
            attention="attention",
            projection="attention.dense",
            mlp="ffn_output",
            mlp_up="ffn",
            activation="activation",
            norms=("attention.LayerNorm", "full_layer_layer_norm"),
            qkv=("query", "key", "value"),
        ),
        # One module serves every layer: a head cannot be cut from one layer alone.
        lacks=frozenset({Capability.PRUNING}),
        coordinates=_albert,
    ),
    _encoder(
        "mobilebert",
        "MobileBERT",
        # Inside its bottlenecks a layer is narrower than the stream, which ends in this norm.
        replace(
            _BERT, norms={**_BERT.norms, "output": f"{_BERT_BLOCK}.output.bottleneck.LayerNorm"}
        ),
        lacks=frozenset({_SLOW}),
    ),
    _encoder(
        "modernbert",
        "ModernBERT",
        _within(
            "layers.{i}",
            attention="attn",
            projection="attn.Wo",
            mlp="mlp.Wo",
            norms=("attn_norm", "mlp_norm"),
            pre_norm=True,
            qkv=("Wqkv",),
        ),
        lacks=frozenset({_SLOW}),
        final_norm="final_norm",
    ),
    _encoder(
        "mpnet",
        "MPNet",
        _within(
            _BERT_BLOCK,
            attention="attention.attn",
            projection="attention.attn.o",
            mlp="output.dense",
            norms=("attention.LayerNorm", "output.LayerNorm"),
            qkv=("q", "k", "v"),
        ),
        # The relative position bias of every layer has one row per head.
        lacks=frozenset({_SLOW, Capability.PRUNING}),
        adapter=f"{_ADAPTERS}:mpnet",
        position_offset=2,
    ),
    *(
        _encoder(
            model_type,
            title,
            adapter=f"{_ADAPTERS}:{model_type.replace('-', '_')}",
            lacks=frozenset({_SLOW, Capability.PRUNING}),
            relative_positions=True,
        )
        for model_type, title in (("deberta", "DeBERTa"), ("deberta-v2", "DeBERTa v2 / v3"))
    ),
    _encoder(
        "xlnet",
        "XLNet",
        _within(
            "layer.{i}",
            attention="rel_attn",
            mlp="ff.layer_2",
            norms=("rel_attn.layer_norm", "ff.layer_norm"),
            layers="n_layer",
            heads="n_head",
            mlp_size="d_inner",
        ),
        lacks=frozenset({_SLOW, Capability.PRUNING, _NO_MLM}),
        adapter=f"{_ADAPTERS}:xlnet",
        time_first=True,
        relative_positions=True,
    ),
    _encoder(
        "xlm",
        "XLM",
        Stack(
            block="attentions.{i}",
            attention="attentions.{i}",
            projection="attentions.{i}.out_lin",
            mlp="ffns.{i}.lin2",
            norms={"attention": "layer_norm1.{i}", "output": "layer_norm2.{i}"},
            exit="layer_norm2.{i}",
            layers="n_layers",
            heads="n_heads",
            mlp_size="",
        ),
        lacks=frozenset({_SLOW, Capability.PRUNING}),
        adapter=f"{_ADAPTERS}:xlm",
    ),
    Family(
        "gpt2",
        "GPT-2",
        {
            "decoder": _within(
                "h.{i}",
                attention="attn",
                projection="attn.c_proj",
                mlp="mlp.c_proj",
                norms=("ln_1", "ln_2"),
                pre_norm=True,
                qkv=("c_attn",),
                layers="n_layer",
                heads="n_head",
                mlp_size="n_inner",
            )
        },
        lacks=frozenset({_SLOW, _NO_MLM, Capability.PRUNING}),
        final_norm="ln_f",
    ),
    Family(
        "bart",
        "BART",
        {
            "encoder": _bart("self_attn", "encoder", mlp="fc2"),
            "decoder": _bart("self_attn", "decoder", mlp="fc2"),
            "cross": _bart("encoder_attn", "decoder"),
        },
        lacks=frozenset({_SLOW}),
    ),
    _encoder(
        "t5",
        "T5 encoder",
        _within(
            "encoder.block.{i}",
            attention="layer.0.SelfAttention",
            projection="layer.0.SelfAttention.o",
            mlp="layer.1.DenseReluDense.wo",
            norms=("layer.0.layer_norm", "layer.1.layer_norm"),
            pre_norm=True,
            qkv=("q", "k", "v"),
            layers="num_layers",
            heads="num_heads",
            mlp_size="d_ff",
        ),
        lacks=frozenset({_SLOW, _NO_MLM, Capability.PRUNING}),
        relative_positions=True,
        final_norm="encoder.final_layer_norm",
    ),
)


FAMILIES: Registry[Family] = Registry("family", group="bertology.families", builtin=dict)
for _row in _ROWS:
    FAMILIES.register(_row.model_type, _row)


# No family that can be looked into: a classifier without attention (`compressed/bilstm.py`), which
# is loaded and scored as others are.
BILSTM = Family(
    "bertology_bilstm",
    "BiLSTM",
    {"encoder": Stack(block="lstm", attention="lstm", mlp_size="classifier_size")},
    lacks=EVERYTHING,
)


def family_of(model_type: str) -> Family:
    """The row for a config's `model_type`."""
    if model_type == BILSTM.model_type:
        return BILSTM
    if model_type not in FAMILIES:
        raise UnknownNameError(
            "model family",
            model_type,
            FAMILIES.names(),
            hint="docs/how-to/add-a-family.md shows how to add one.",
        )
    return FAMILIES.get(model_type)
