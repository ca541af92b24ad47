"""Places in a model, by the same names for every family.

    embeddings                                what enters layer 0
    layer.L.residual                          the residual stream after layer L
    layer.L.attention                         attention's output, before it is added to the residual
    layer.L.mlp                               the MLP's output, before it is added to the residual
    layer.L.mlp.activation                    the MLP's hidden activations
    layer.L.head.H.query | key | value        (after rotary positions where a family has them)
    layer.L.head.H.scores                     before mask and softmax
    layer.L.head.H.pattern                    attention weights, after softmax
    layer.L.head.H.output                     weights × values, before the output projection
    layer.L.head.H.contribution               the output after the head's slice of the projection

`*` stands for all layers or heads; `1,4,7` and `2-5` choose some. Encoder-decoder models have
three stacks; `decoder.` and `cross.` before a name choose the other two. Indices start at 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from bertology.errors import BertologyError, ParameterError, UnknownNameError
from bertology.model.shape import Shape


class Kind(StrEnum):
    """What is at a site."""

    EMBEDDINGS = "embeddings"
    RESIDUAL = "residual"
    ATTENTION = "attention"
    MLP = "mlp"
    ACTIVATION = "mlp.activation"
    QUERY = "query"
    KEY = "key"
    VALUE = "value"
    SCORES = "scores"
    PATTERN = "pattern"
    OUTPUT = "output"
    CONTRIBUTION = "contribution"


HEAD_KINDS = frozenset(
    {
        Kind.QUERY,
        Kind.KEY,
        Kind.VALUE,
        Kind.SCORES,
        Kind.PATTERN,
        Kind.OUTPUT,
        Kind.CONTRIBUTION,
    }
)
LAYER_KINDS = frozenset({Kind.RESIDUAL, Kind.ATTENTION, Kind.MLP, Kind.ACTIVATION})

_FORM = re.compile(
    r"(?:(?P<stack>encoder|decoder|cross)\.)?"
    r"(?:(?P<embeddings>embeddings)"
    r"|layer\.(?P<layers>[^.]+)\.(?:head\.(?P<heads>[^.]+)\.(?P<head_kind>\w+)|(?P<kind>[\w.]+)))"
)


@dataclass(frozen=True, slots=True)
class Sites:
    """A parsed site name: one kind, some layers, some heads of one stack."""

    stack: str | None  # None: the model's main stack
    kind: Kind
    layers: tuple[int, ...] = ()
    heads: tuple[int, ...] = ()
    one_layer: bool = False  # the name gave one index, so the trace has no axis of layers
    one_head: bool = False  # the same for heads


def select(text: str, size: int, *, what: str) -> tuple[int, ...]:
    """`*`, `3`, `1,4,7` or `2-5` as indices below `size`."""
    if text == "*":
        return tuple(range(size))
    chosen: list[int] = []
    for piece in text.split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", piece.strip())
        if match is None:
            raise ParameterError(what, "a site", "be '*', an index, '1,4' or '2-5'", text)
        first, last = int(match[1]), int(match[2] or match[1])
        chosen.extend(range(first, last + 1))
    outside = [i for i in chosen if i >= size]
    if outside:
        raise BertologyError(
            f"There is no {what} {outside[0]}: the model has {size} {what}s, 0 to {size - 1}."
        )
    return tuple(dict.fromkeys(chosen))


def parse_sites(names: str | Iterable[str], shapes: dict[str, Shape], main: str) -> list[Sites]:
    """Parse site names against the stacks a model has; an error lists the names that exist."""
    return [_parse(n, shapes, main) for n in ([names] if isinstance(names, str) else names)]


def _parse(name: str, shapes: dict[str, Shape], main: str) -> Sites:
    match = _FORM.fullmatch(name)
    if match is None:
        raise UnknownNameError("site", name, _examples())
    stack = match["stack"] or main
    if stack not in shapes:
        raise UnknownNameError("stack", stack, shapes, hint=f"Site: {name!r}.")
    shape = shapes[stack]
    if match["embeddings"]:
        return Sites(stack, Kind.EMBEDDINGS, (0,), one_layer=True)
    written = match["head_kind"] or match["kind"]
    allowed = HEAD_KINDS if match["heads"] else LAYER_KINDS
    if written not in {k.value for k in allowed}:
        raise UnknownNameError("site", name, _examples())
    layers = select(match["layers"], shape.layers, what="layer")
    heads = select(match["heads"], shape.heads, what="head") if match["heads"] else ()
    return Sites(
        stack,
        Kind(written),
        layers,
        heads,
        one_layer=match["layers"].isdigit(),
        one_head=bool(match["heads"]) and match["heads"].isdigit(),
    )


def _examples() -> list[str]:
    return [
        "embeddings",
        *(f"layer.*.{k}" for k in sorted(LAYER_KINDS)),
        *(f"layer.*.head.*.{k}" for k in sorted(HEAD_KINDS)),
    ]
