"""Where the parts of each model family are: one row for each family.

A path is a template from the base model; `{i}` is the layer. Families that share modules between
layers (ALBERT) say in `coordinates` which module serves which layer. Attention that transformers
routes through its attention interface needs nothing more; the rest name an adapter.

Other packages add families through the entry-point group `bertology.families`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


_BERT_BLOCK = "encoder.layer.{i}"
_BERT = Stack(
    block=_BERT_BLOCK,
    attention=f"{_BERT_BLOCK}.attention.self",
    projection=f"{_BERT_BLOCK}.attention.output.dense",
    mlp=f"{_BERT_BLOCK}.output.dense",
    mlp_up=f"{_BERT_BLOCK}.intermediate.dense",
    activation=f"{_BERT_BLOCK}.intermediate.intermediate_act_fn",
    norms={
        "attention": f"{_BERT_BLOCK}.attention.output.LayerNorm",
        "output": f"{_BERT_BLOCK}.output.LayerNorm",
    },
    qkv=("query", "key", "value"),
)


def _like_bert(
    model_type: str,
    title: str,
    *,
    lacks: frozenset[Capability] = frozenset(),
    adapter: str | None = None,
    position_offset: int = 0,
    relative_positions: bool = False,
) -> Family:
    return Family(
        model_type,
        title,
        {"encoder": _BERT},
        lacks=lacks,
        adapter=adapter,
        position_offset=position_offset,
        relative_positions=relative_positions,
    )


_ADAPTERS = "bertology.model.hooks.adapters"
_SLOW = Capability.FAST_REPLAY
_NO_MLM = Capability.MASKED_LM

_DISTIL = "transformer.layer.{i}"
_ALBERT = "encoder.albert_layer_groups.{g}.albert_layers.{k}"
_MODERN = "layers.{i}"
_BART_E, _BART_D = "encoder.layers.{i}", "decoder.layers.{i}"
_T5 = "encoder.block.{i}"


def _bart(block: str, attention: str, norm: str, side: str, *, whole: bool = True) -> Stack:
    return Stack(
        block=block,
        attention=f"{block}.{attention}",
        projection=f"{block}.{attention}.out_proj",
        mlp=f"{block}.fc2" if whole else None,
        norms={"attention": f"{block}.{norm}"}
        | ({"output": f"{block}.final_layer_norm"} if whole else {}),
        qkv=("q_proj", "k_proj", "v_proj"),
        layers=f"{side}_layers",
        heads=f"{side}_attention_heads",
        mlp_size=f"{side}_ffn_dim",
    )


_ROWS = (
    _like_bert("bert", "BERT"),
    _like_bert("roberta", "RoBERTa", position_offset=2),
    _like_bert("xlm-roberta", "XLM-R", position_offset=2),
    _like_bert("camembert", "CamemBERT", position_offset=2),
    _like_bert("electra", "ELECTRA"),
    Family(
        "distilbert",
        "DistilBERT",
        {
            "encoder": Stack(
                block=_DISTIL,
                attention=f"{_DISTIL}.attention",
                projection=f"{_DISTIL}.attention.out_lin",
                mlp=f"{_DISTIL}.ffn.lin2",
                mlp_up=f"{_DISTIL}.ffn.lin1",
                activation=f"{_DISTIL}.ffn.activation",
                norms={
                    "attention": f"{_DISTIL}.sa_layer_norm",
                    "output": f"{_DISTIL}.output_layer_norm",
                },
                qkv=("q_lin", "k_lin", "v_lin"),
                layers="n_layers",
                heads="n_heads",
                mlp_size="hidden_dim",
            )
        },
    ),
    Family(
        "albert",
        "ALBERT",
        {
            "encoder": Stack(
                block=_ALBERT,
                attention=f"{_ALBERT}.attention",
                projection=f"{_ALBERT}.attention.dense",
                mlp=f"{_ALBERT}.ffn_output",
                mlp_up=f"{_ALBERT}.ffn",
                activation=f"{_ALBERT}.activation",
                norms={
                    "attention": f"{_ALBERT}.attention.LayerNorm",
                    "output": f"{_ALBERT}.full_layer_layer_norm",
                },
                qkv=("query", "key", "value"),
            )
        },
        # One module serves every layer: a head cannot be cut from one layer alone.
        lacks=frozenset({Capability.PRUNING}),
        coordinates=_albert,
    ),
    Family(
        "mobilebert",
        "MobileBERT",
        # Inside its bottlenecks a layer is narrower than the stream, which ends in this norm.
        {
            "encoder": replace(
                _BERT, norms={**_BERT.norms, "output": f"{_BERT_BLOCK}.output.bottleneck.LayerNorm"}
            )
        },
        lacks=frozenset({_SLOW}),
    ),
    Family(
        "modernbert",
        "ModernBERT",
        {
            "encoder": Stack(
                block=_MODERN,
                attention=f"{_MODERN}.attn",
                projection=f"{_MODERN}.attn.Wo",
                mlp=f"{_MODERN}.mlp.Wo",
                norms={"attention": f"{_MODERN}.attn_norm", "output": f"{_MODERN}.mlp_norm"},
                pre_norm=True,
                qkv=("Wqkv",),
            )
        },
        lacks=frozenset({_SLOW}),
        final_norm="final_norm",
    ),
    Family(
        "mpnet",
        "MPNet",
        {
            "encoder": Stack(
                block=_BERT_BLOCK,
                attention=f"{_BERT_BLOCK}.attention.attn",
                projection=f"{_BERT_BLOCK}.attention.attn.o",
                mlp=f"{_BERT_BLOCK}.output.dense",
                norms={
                    "attention": f"{_BERT_BLOCK}.attention.LayerNorm",
                    "output": f"{_BERT_BLOCK}.output.LayerNorm",
                },
                qkv=("q", "k", "v"),
            )
        },
        # The relative position bias of every layer has one row per head.
        lacks=frozenset({_SLOW, Capability.PRUNING}),
        adapter=f"{_ADAPTERS}:mpnet",
        position_offset=2,
    ),
    _like_bert(
        "deberta",
        "DeBERTa",
        adapter=f"{_ADAPTERS}:deberta",
        lacks=frozenset({_SLOW, Capability.PRUNING}),
        relative_positions=True,
    ),
    _like_bert(
        "deberta-v2",
        "DeBERTa v2 / v3",
        adapter=f"{_ADAPTERS}:deberta_v2",
        lacks=frozenset({_SLOW, Capability.PRUNING}),
        relative_positions=True,
    ),
    Family(
        "xlnet",
        "XLNet",
        {
            "encoder": Stack(
                block="layer.{i}",
                attention="layer.{i}.rel_attn",
                mlp="layer.{i}.ff.layer_2",
                norms={
                    "attention": "layer.{i}.rel_attn.layer_norm",
                    "output": "layer.{i}.ff.layer_norm",
                },
                layers="n_layer",
                heads="n_head",
                mlp_size="d_inner",
            )
        },
        lacks=frozenset({_SLOW, Capability.PRUNING, _NO_MLM}),
        adapter=f"{_ADAPTERS}:xlnet",
        time_first=True,
        relative_positions=True,
    ),
    Family(
        "xlm",
        "XLM",
        {
            "encoder": Stack(
                block="attentions.{i}",
                attention="attentions.{i}",
                projection="attentions.{i}.out_lin",
                mlp="ffns.{i}.lin2",
                norms={"attention": "layer_norm1.{i}", "output": "layer_norm2.{i}"},
                exit="layer_norm2.{i}",
                layers="n_layers",
                heads="n_heads",
                mlp_size="",
            )
        },
        lacks=frozenset({_SLOW, Capability.PRUNING}),
        adapter=f"{_ADAPTERS}:xlm",
    ),
    Family(
        "gpt2",
        "GPT-2",
        {
            "decoder": Stack(
                block="h.{i}",
                attention="h.{i}.attn",
                projection="h.{i}.attn.c_proj",
                mlp="h.{i}.mlp.c_proj",
                norms={"attention": "h.{i}.ln_1", "output": "h.{i}.ln_2"},
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
            "encoder": _bart(_BART_E, "self_attn", "self_attn_layer_norm", "encoder"),
            "decoder": _bart(_BART_D, "self_attn", "self_attn_layer_norm", "decoder"),
            "cross": _bart(
                _BART_D, "encoder_attn", "encoder_attn_layer_norm", "decoder", whole=False
            ),
        },
        lacks=frozenset({_SLOW}),
    ),
    Family(
        "t5",
        "T5 encoder",
        {
            "encoder": Stack(
                block=_T5,
                attention=f"{_T5}.layer.0.SelfAttention",
                projection=f"{_T5}.layer.0.SelfAttention.o",
                mlp=f"{_T5}.layer.1.DenseReluDense.wo",
                norms={
                    "attention": f"{_T5}.layer.0.layer_norm",
                    "output": f"{_T5}.layer.1.layer_norm",
                },
                pre_norm=True,
                qkv=("q", "k", "v"),
                layers="num_layers",
                heads="num_heads",
                mlp_size="d_ff",
            )
        },
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
_BILSTM = Family(
    "bertology_bilstm",
    "BiLSTM",
    {"encoder": Stack(block="lstm", attention="lstm", mlp_size="classifier_size")},
    lacks=EVERYTHING,
)


def family_of(model_type: str) -> Family:
    """The row for a config's `model_type`."""
    if model_type == _BILSTM.model_type:
        return _BILSTM
    if model_type not in FAMILIES:
        raise UnknownNameError(
            "model family",
            model_type,
            FAMILIES.names(),
            hint="docs/how-to/add-a-family.md shows how to add one.",
        )
    return FAMILIES.get(model_type)
