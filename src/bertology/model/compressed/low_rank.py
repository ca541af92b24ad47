"""A linear map, or a table of embeddings, as the product of two smaller ones.

The best product of a given rank is that of the largest singular values. Each of the two factors
gets the root of the values, so that training on finds weights of like sizes in both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from bertology.errors import BertologyError
from bertology.model.compressed.written import (
    check_tables,
    check_whole,
    misfit,
    module_at,
    named_maps,
    put_module,
    write_form,
)

FORM = "low_rank"


class LowRankLinear(nn.Module):
    """(…, inputs) -> (…, rank) -> (…, outputs)."""

    def __init__(self, inputs: int, outputs: int, rank: int, *, bias: bool) -> None:
        super().__init__()
        self.in_features, self.out_features = inputs, outputs
        self.first = nn.Linear(inputs, rank, bias=False)
        self.second = nn.Linear(rank, outputs, bias=bias)

    @property
    def weight(self) -> Tensor:
        """(outputs, inputs): the map that the two make together."""
        product: Tensor = self.second.weight @ self.first.weight
        return product

    @property
    def bias(self) -> Tensor | None:
        return self.second.bias

    def forward(self, states: Tensor) -> Tensor:
        mapped: Tensor = self.second(self.first(states))
        return mapped


class LowRankEmbedding(nn.Module):
    """A table of `rank` columns, and a map to as many as there were (as in ALBERT)."""

    def __init__(self, rows: int, columns: int, rank: int, *, padding: int | None = None) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = rows, columns
        self.padding_idx = padding
        self.first = nn.Embedding(rows, rank, padding_idx=padding)
        self.second = nn.Linear(rank, columns, bias=False)

    @property
    def weight(self) -> Tensor:
        """(rows, columns): the table that the two make together."""
        product: Tensor = self.first.weight @ self.second.weight.T
        return product

    def forward(self, pieces: Tensor) -> Tensor:
        found: Tensor = self.second(self.first(pieces))
        return found


def factors(weight: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """(outputs, rank) and (rank, inputs), whose product is nearest to the weight."""
    left, values, right = torch.linalg.svd(weight.detach().double(), full_matrices=False)
    root = values[:rank].sqrt()
    pair = left[:, :rank] * root, root[:, None] * right[:rank]
    return pair[0].to(weight.dtype).contiguous(), pair[1].to(weight.dtype).contiguous()


def factorise(
    model: Any,
    rank: int | None = None,
    *,
    ranks: Mapping[str, int] | None = None,
    maps: str = "layers",
) -> Any:
    """Give the maps of a model this rank, or each map its own; the full rank changes no output.

    A rank above what a map can have means its full rank. `ranks` names modules of the base model.
    """
    if (rank is None) == (ranks is None):
        raise BertologyError("Give either one rank for all maps, or ranks by the maps' names.")
    given = dict(named_maps(model, "all"))
    if ranks is None:
        most = {n: min(m.weight.shape) for n, m in named_maps(model, maps) if _is_large(m)}
        check_whole("rank", rank, 1, max(most.values(), default=1))
        assert rank is not None
        ranks = {name: min(rank, full) for name, full in most.items()}
    if unknown := set(ranks) - set(given):
        raise BertologyError(f"The model has no map {min(unknown)!r} that could be factorised.")
    for name, each in ranks.items():
        check_whole(f"rank of {name}", each, 1, min(given[name].weight.shape))
    weights = {name: given[name] for name in ranks}
    put_in(model, ranks=dict(ranks))
    for name, old in weights.items():
        _fill(model.base_model.get_submodule(name), old, ranks[name])
    write_form(model, FORM, ranks=dict(ranks))
    return model


def put_in(model: Any, ranks: dict[str, int]) -> None:
    """Products in place of the maps that are named, without their weights."""
    if not isinstance(ranks, dict):
        raise misfit(f"ranks are {ranks!r:.60}")
    check_tables(model, list(ranks))
    for name, rank in ranks.items():
        old = module_at(model, name)
        if type(rank) is not int or not 1 <= rank <= min(old.weight.shape):
            raise misfit(f"the rank of {name!r} is {rank!r:.60}")
        new: nn.Module
        if isinstance(old, nn.Linear):
            biased = old.bias is not None
            new = LowRankLinear(old.in_features, old.out_features, rank, bias=biased)
        else:
            rows, columns = old.weight.shape
            new = LowRankEmbedding(rows, columns, rank, padding=old.padding_idx)
        put_module(model, name, new.to(old.weight.device, old.weight.dtype))


def _is_large(module: nn.Module) -> bool:
    """Whether there is anything to take: a map without inputs has no rank, as a cut MLP's."""
    return min(module.get_parameter("weight").shape) > 2  # a table of two segments is none


def _fill(new: nn.Module, old: nn.Linear | nn.Embedding, rank: int) -> None:
    left, right = factors(old.weight, rank)
    with torch.no_grad():
        if isinstance(new, LowRankEmbedding):
            new.first.weight.copy_(left)
            new.second.weight.copy_(right.T)
        else:
            assert isinstance(new, LowRankLinear)
            new.first.weight.copy_(right)
            new.second.weight.copy_(left)
            if isinstance(old, nn.Linear) and old.bias is not None:
                assert new.bias is not None
                new.bias.copy_(old.bias)
