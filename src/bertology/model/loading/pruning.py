"""Cut parts out of a model for good: a smaller, faster Hugging Face model with the same output.

The linear maps of a layer lose the rows and columns of the heads that go, so a pruned model
computes what the original gives with those heads gated to zero. Hugging Face configs know one
number of heads for all layers; which heads are gone is written beside it in the config, as
`bertology_pruned_heads = {"3": [0, 7]}`, and `load_pruned` or `Encoder.load` read it again. So it
is with MLPs (`bertology_pruned_mlps = [2]`). Whole layers are another matter: every config knows
their number, so a model without some of them is an ordinary one.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bertology.errors import BertologyError, CapabilityError
from bertology.model.added_parts import added_parts, put_in_parts
from bertology.model.addressing import AddressedModel
from bertology.model.compressed.forms import compressed_forms, put_in_forms
from bertology.model.families import BILSTM, Capability
from bertology.model.hooks.attention import IMPLEMENTATION
from bertology.model.interventions import SkipLayer, check_heads
from bertology.model.loading.own_type import config_at
from bertology.model.numbering import CONFIG_KEY, MLP_KEY, layers_without_mlp
from bertology.model.protocols import ModelConfig, PretrainedModel

_COUNTS = ("num_attention_heads", "num_heads", "n_heads")  # what modules call their heads
_LAYER = "layer_idx"  # what they call their layer


def is_pruned(config: object) -> bool:
    """Whether the model has fewer heads or MLPs than its config says, so that we must load it."""
    return bool(getattr(config, CONFIG_KEY, None) or layers_without_mlp(config))


def is_plain(config: object) -> bool:
    """Whether its parts are those of its family: nothing is cut, added, or of another form."""
    return not is_pruned(config) and not added_parts(config) and not compressed_forms(config)


def loads_elsewhere(config: ModelConfig) -> bool:
    """Whether plain transformers loads the model."""
    return is_plain(config) and config.model_type != BILSTM.model_type


def prune_heads(
    model: AddressedModel | PretrainedModel,
    heads: Iterable[tuple[int, int]],
    *,
    stack: str | None = None,
) -> PretrainedModel:
    """A new Hugging Face model without these (layer, head) pairs; the given one stays as it is.

    Its output is that of the given model under `ZeroHead(heads)`. A layer may lose all of its
    heads; the bias of its output projection remains. Heads of a model that was pruned before keep
    the numbers they had in the original.
    """
    encoder = _addressed(model)
    encoder.require(Capability.PRUNING)
    name = stack or encoder.family.main_stack
    pairs = list(heads)
    if any(not isinstance(p, Sequence) or len(p) != 2 for p in pairs):
        raise BertologyError(
            f"Heads to prune are (layer, head) pairs, not {pairs!r}.",
            hint="As in [(0, 3), (5, 7)].",
        )
    gone = {layer: set(cut) for layer, cut in check_heads(pairs, encoder, name).items()}
    smaller = _addressed(copy.deepcopy(encoder.model))
    removed = dict(encoder.numbering.removed)
    for layer, cut in gone.items():
        present = encoder.numbering.kept(name, layer)
        _cut_layer(smaller, name, layer, [i for i, h in enumerate(present) if h not in cut])
        removed[name, layer] = tuple(sorted({*removed.get((name, layer), ()), *cut}))
    if removed:
        setattr(smaller.config, CONFIG_KEY, encoder.numbering.written(removed))
    pruned: PretrainedModel = smaller.model
    return pruned


def can_lose_layers(encoder: AddressedModel) -> bool:
    """Whether each layer is a module of its own that depends on no number: BERT and its like."""
    changed = added_parts(encoder.config) or compressed_forms(encoder.config)
    return _has_plain_layers(encoder) and not changed


def _has_plain_layers(encoder: AddressedModel) -> bool:
    plain = Capability.FAST_REPLAY in encoder.family.capabilities
    return plain and not encoder.shares_layers


def prune_layers(model: AddressedModel | PretrainedModel, layers: Iterable[int]) -> PretrainedModel:
    """A new model without these layers; those that are left are numbered anew, from 0.

    Its output is that of the given model under `SkipLayer(layers)`, and plain transformers loads
    it. The heads and MLPs that were cut before go with their layers.
    """
    encoder = _addressed(model)
    gone = _layers_of(encoder, layers)
    stack = encoder.family.main_stack
    left = [i for i in range(encoder.shape.layers) if i not in gone]
    if not left:
        raise BertologyError("A model must keep at least one layer.")
    smaller = _addressed(copy.deepcopy(encoder.model))
    row = encoder.family.stacks[stack]
    blocks = [smaller.module(row.block, i) for i in left]
    path, _, _ = row.block.rpartition(".")
    home, _, name = path.rpartition(".")
    setattr(smaller.base.get_submodule(home), name, nn.ModuleList(blocks))
    setattr(smaller.config, row.layers, len(left))
    for number, block in enumerate(blocks):
        for module in block.modules():
            if hasattr(module, _LAYER):
                setattr(module, _LAYER, number)
    places = {old: new for new, old in enumerate(left)}
    heads = {
        (stack, places[layer]): cut
        for (_, layer), cut in encoder.numbering.removed.items()
        if layer in places
    }
    mlps = [places[i] for i in layers_without_mlp(encoder.config) if i in places]
    for key, value in ((CONFIG_KEY, encoder.numbering.written(heads)), (MLP_KEY, mlps)):
        if hasattr(smaller.config, key):
            setattr(smaller.config, key, value)
    pruned: PretrainedModel = smaller.model
    return pruned


def prune_mlps(model: AddressedModel | PretrainedModel, layers: Iterable[int]) -> PretrainedModel:
    """A new model whose layers of these numbers have no MLP: they only add nothing there.

    Its output is that of the given model with `GateMLP` at 0 in these layers.
    """
    encoder = _addressed(model)
    gone = {*_layers_of(encoder, layers), *layers_without_mlp(encoder.config)}
    smaller = _addressed(copy.deepcopy(encoder.model))
    for layer in gone:
        _cut_mlp(smaller, layer)
    if gone:
        setattr(smaller.config, MLP_KEY, sorted(gone))
    pruned: PretrainedModel = smaller.model
    return pruned


def _layers_of(encoder: AddressedModel, layers: Iterable[int], *, before: bool = False) -> set[int]:
    """The layers, checked, of a model that can lose them, or could `before` it was changed."""
    if not (_has_plain_layers(encoder) if before else can_lose_layers(encoder)):
        raise CapabilityError(
            f"Layers of {encoder.family.title} cannot be cut: they are shared, or depend on their "
            "number.",
            hint="BERT, RoBERTa, ELECTRA, DistilBERT and their like can lose layers.",
        )
    (sites,) = SkipLayer(list(layers)).sites(encoder)
    return set(sites.layers)


def load_pruned(
    folder: str | Path | None,
    auto_class: Any,
    *,
    config: ModelConfig | None = None,
    **options: object,
) -> Any:
    """Load a model that was pruned, compressed or added to, from where `save_pretrained` put it.

    `auto_class` is an Auto class of transformers or a model class; `options` go to its
    `from_pretrained`. Without a folder, `config` and `state_dict` are given. The layers are cut
    before the weights are read, so every check that transformers makes of names and sizes holds
    for the pruned model too.
    """
    if config is None:
        assert folder is not None
        trust = {k: v for k, v in options.items() if k == "trust_remote_code"}
        config = config_at(folder, **trust)
    if is_plain(config) and folder is not None:
        return auto_class.from_pretrained(folder, config=config, **options)
    kind = _model_class(auto_class, config, options)  # an Auto class would look for the folder
    if is_plain(config):
        return kind.from_pretrained(None, config=config, **options)
    loaded = _cutting(kind).from_pretrained(folder, config=config, **options)
    (loaded[0] if isinstance(loaded, tuple) else loaded).__class__ = kind
    return loaded


def _addressed(model: AddressedModel | PretrainedModel) -> AddressedModel:
    return model if isinstance(model, AddressedModel) else AddressedModel(model)


def _model_class(auto_class: Any, config: ModelConfig, options: dict[str, object]) -> Any:
    """The class an Auto class stands for; made on the meta device, which costs no memory."""
    import transformers

    if isinstance(auto_class, type) and issubclass(auto_class, transformers.PreTrainedModel):
        return auto_class
    trust = {k: v for k, v in options.items() if k == "trust_remote_code"}
    with torch.device("meta"):
        return type(auto_class.from_config(config, **trust))


def _cutting(kind: Any) -> Any:
    """A subclass of a model class that cuts its layers, and adds parts, as soon as it is made."""

    def make(self: PretrainedModel, config: ModelConfig, *args: object, **kwargs: object) -> None:
        kind.__init__(self, config, *args, **kwargs)
        encoder = _addressed(self)
        # A model with added parts, or of another form, is not pruned any more, but was.
        if not added_parts(config) and not compressed_forms(config):
            encoder.require(Capability.PRUNING)
        for stack, layer in encoder.numbering.removed:
            _cut_layer(encoder, stack, layer, encoder.numbering.kept(stack, layer))
        if mlps := layers_without_mlp(config):
            for layer in _layers_of(encoder, mlps, before=True):
                _cut_mlp(encoder, layer)
        put_in_parts(self)
        put_in_forms(self)

    return type(kind.__name__, (kind,), {"__init__": make, "__module__": kind.__module__})


def _cut_layer(encoder: AddressedModel, stack: str, layer: int, keep: list[int]) -> None:
    """Keep only some heads of a layer, by where they lie in it now."""
    row, size = encoder.family.stacks[stack], encoder.shapes[stack].head_size
    if not row.qkv or row.projection is None:
        raise CapabilityError(
            f"{encoder.family.title} does not say where its {stack} stack has the maps to prune.",
            hint="A family that prunes needs `qkv` and `projection` in its row.",
        )
    attention = encoder.module(row.attention, layer)
    projection = encoder.module(row.projection, layer)
    columns = torch.tensor([h * size + d for h in keep for d in range(size)], dtype=torch.long)
    width = _linear(projection, encoder).in_features
    fused = len(row.qkv) == 1
    rows = torch.cat([columns + i * width for i in range(3)]) if fused else columns
    for name in row.qkv:
        _cut_linear(_linear(attention.get_submodule(name), encoder), rows, dim=0)
    _cut_linear(_linear(projection, encoder), columns, dim=1)
    counts = dict.fromkeys(_COUNTS, len(keep)) | {"all_head_size": len(columns)}
    for name, count in counts.items():
        if hasattr(attention, name):
            setattr(attention, name, count)
    if not keep:
        # Fused attention fails on no heads at all (bfloat16 on CUDA): our own function takes over
        config: Any = copy.copy(attention.config)  # this one module's; the model's stays as it is
        config._attn_implementation_internal = IMPLEMENTATION
        attention.config = config


def _cut_mlp(encoder: AddressedModel, layer: int) -> None:
    """Leave an MLP of no width, which adds nothing."""
    row, none = encoder.family.stacks[encoder.family.main_stack], torch.empty(0, dtype=torch.long)
    assert row.mlp is not None
    assert row.mlp_up is not None
    last = _linear(encoder.module(row.mlp, layer), encoder)
    _cut_linear(_linear(encoder.module(row.mlp_up, layer), encoder), none, dim=0)
    _cut_linear(last, none, dim=1)
    if last.bias is not None:
        last.bias = nn.Parameter(torch.zeros_like(last.bias))


def _linear(module: nn.Module, encoder: AddressedModel) -> nn.Linear:
    if not isinstance(module, nn.Linear):
        raise CapabilityError(
            f"{encoder.family.title} has a {type(module).__name__} where pruning needs a Linear."
        )
    return module


def _cut_linear(linear: nn.Linear, keep: Tensor, *, dim: int) -> None:
    """Keep some rows (0) or columns (1); not with a new Linear, as torch warns of an empty one."""
    linear.weight = _chosen(linear.weight, keep, dim)
    if dim == 1:
        linear.in_features = len(keep)
        return
    linear.out_features = len(keep)
    if linear.bias is not None:
        linear.bias = _chosen(linear.bias, keep, 0)


def _chosen(parameter: Tensor, keep: Tensor, dim: int) -> nn.Parameter:
    part = parameter.detach().index_select(dim, keep.to(parameter.device))
    return nn.Parameter(part.contiguous(), requires_grad=parameter.requires_grad)
