"""Students: models of the teacher's kind and of any shape, and what they begin with.

There are three starts. "layers" takes chosen layers of the teacher, and all that is outside of
its layers, as they are: the student is as wide as the teacher, and one with all layers is the
teacher. "slices" is for narrower students: of each vector the first entries are taken, of each
head its first entries, of each layer its first heads and MLP units. "random" draws all weights.
A wider student can begin at random only.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bertology.errors import CapabilityError, ParameterError
from bertology.model.encoder import Encoder
from bertology.model.families import Stack
from bertology.model.loading.pruning import can_lose_layers, is_plain
from bertology.train.protocols import Tokenizer
from bertology.train.starts import draw_weights

STARTS = ("layers", "slices", "random")
_MOST = 10_000_000
_PATTERNS = "even, first, last, or numbers from 1 such as 1+3+6"


@dataclass(frozen=True)
class StudentShape:
    """How large a student is; None for as large as the teacher."""

    layers: int | None = None
    heads: int | None = None
    hidden: int | None = None
    intermediate: int | None = None

    def __post_init__(self) -> None:
        for name in ("layers", "heads", "hidden", "intermediate"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= _MOST:
                raise ParameterError(name, "StudentShape", "be at least 1", value)


def shape_of(model: Any) -> StudentShape:
    """The shape that a model has."""
    shape = Encoder(model).shape
    return StudentShape(shape.layers, shape.heads, shape.hidden, shape.mlp)


def chosen_layers(which: str, wanted: int, there: int) -> tuple[int, ...]:
    """The teacher's layers, from 1, that `wanted` layers of a student begin with.

    "even" takes every second or third and the last (of 12: 2, 4, … 12 for six), "first" the
    lowest, "last" the highest; or numbers are given.
    """
    if which == "even":
        return tuple((i + 1) * there // wanted for i in range(wanted))
    if which in ("first", "last"):
        below = 0 if which == "first" else there - wanted
        return tuple(below + i + 1 for i in range(wanted))
    try:
        found = tuple(int(part) for part in which.split("+"))
    except ValueError:
        raise ParameterError("which", "make_student", f"be {_PATTERNS}", which) from None
    if len(found) != wanted or not all(1 <= i <= there for i in found):
        must = f"name {wanted} layers of 1 to {there}"
        raise ParameterError("which", "make_student", must, which)
    return found


def make_student(
    teacher: Any,
    shape: StudentShape | None = None,
    *,
    start: str = "layers",
    which: str = "even",
    seed: int = 0,
    tokenizer: Tokenizer | None = None,
    teacher_tokenizer: Tokenizer | None = None,
    rows: Mapping[int, int] | None = None,
) -> Any:
    """A model of the teacher's class, on its device; the teacher stays as it is.

    With a `tokenizer` of its own the student has that vocabulary: pieces that the teacher's
    vocabulary (`teacher_tokenizer`) has too begin with their vectors, others at random. `rows` says
    instead which row of the teacher's table each piece begins with.
    """
    encoder = Encoder(teacher)
    wanted = check_student(encoder, shape or StudentShape(), start=start, which=which)
    stack = encoder.family.stacks[encoder.family.main_stack]
    config = _config(teacher.config, stack, wanted, tokenizer)
    with torch.random.fork_rng(devices=[]):
        student = type(teacher)(config)
    draw_weights(student, None, seed=seed)
    if start != "random":
        layers = chosen_layers(which, _int(wanted.layers), encoder.shape.layers)
        taken = _rows(tokenizer, teacher_tokenizer) if rows is None else rows
        _take(student, encoder, stack, layers, taken)
    student.tie_weights()
    return student.to(encoder.device).eval()


def check_student(
    encoder: Encoder, shape: StudentShape, *, start: str = "layers", which: str = "even"
) -> StudentShape:
    """The whole shape of a student of this teacher; what cannot be made is refused."""
    if start not in STARTS:
        must = f"be one of {', '.join(STARTS)}"
        raise ParameterError("start", "make_student", must, start)
    if not (is_plain(encoder.config) and can_lose_layers(encoder)):
        raise CapabilityError(
            f"A student of this {encoder.family.title} model cannot be made: its layers are shared "
            "or depend on their number, or it was pruned or has other parts.",
            hint="Take a plain BERT, RoBERTa, ELECTRA or DistilBERT as the teacher.",
        )
    wanted = _whole(shape, encoder.model)
    _check(wanted, encoder, start)
    if start != "random":
        chosen_layers(which, _int(wanted.layers), encoder.shape.layers)
    return wanted


def _whole(shape: StudentShape, teacher: Any) -> StudentShape:
    had = shape_of(teacher)
    given = {n: getattr(shape, n) for n in ("layers", "heads", "hidden", "intermediate")}
    # A narrower student has heads of the same size, and an MLP as many times wider.
    if shape.hidden is not None and had.hidden and had.heads and had.intermediate:
        size = had.hidden // had.heads
        if shape.heads is None and shape.hidden % size == 0:
            given["heads"] = shape.hidden // size
        if shape.intermediate is None:
            given["intermediate"] = max(1, shape.hidden * had.intermediate // had.hidden)
    return StudentShape(**{n: v if v is not None else getattr(had, n) for n, v in given.items()})


def _check(wanted: StudentShape, encoder: Encoder, start: str) -> None:
    has = shape_of(encoder.model)
    if _int(wanted.hidden) % _int(wanted.heads):
        must = f"be a multiple of heads ({wanted.heads})"
        raise ParameterError("hidden", "StudentShape", must, wanted.hidden)
    widths = ("heads", "hidden", "intermediate")
    larger = [n for n in ("layers", *widths) if _int(getattr(wanted, n)) > getattr(has, n)]
    if larger and start != "random":
        must = f"be at most {getattr(has, larger[0])}, that of the teacher, unless start is random"
        raise ParameterError(larger[0], "the student", must, getattr(wanted, larger[0]))
    size = _int(wanted.hidden) // _int(wanted.heads)
    if size > encoder.shape.head_size and start != "random":
        must = (
            f"be so many that one is no wider than the teacher's ({encoder.shape.head_size}), "
            "unless start is random"
        )
        raise ParameterError("heads", "the student", must, wanted.heads)
    differ = [n for n in widths if getattr(wanted, n) != getattr(has, n)]
    if differ and start == "layers":
        must = f"be slices or random: {', '.join(differ)} differ from the teacher's"
        raise ParameterError("start", "make_student", must, start)


def _config(config: Any, stack: Stack, wanted: StudentShape, tokenizer: Tokenizer | None) -> Any:
    made = copy.deepcopy(config)
    # Configs have other names for the same (`dim` of DistilBERT); these are written to.
    width = made.attribute_map.get("hidden_size", "hidden_size")
    if getattr(made, "embedding_size", None) == getattr(made, width):
        made.embedding_size = wanted.hidden
    for name, value in (
        (stack.layers, wanted.layers),
        (stack.heads, wanted.heads),
        (stack.mlp_size, wanted.intermediate),
        (width, wanted.hidden),
    ):
        setattr(made, name, value)
    if tokenizer is not None:
        made.vocab_size = len(tokenizer)
        made.pad_token_id = tokenizer.pad_token_id
    return made


def _rows(own: Tokenizer | None, its: Tokenizer | None) -> Mapping[int, int] | None:
    """Which row of the teacher's vocabulary each piece of the student's is, if it is one."""
    if own is None:
        return None
    if its is None:
        must = "be given with a tokenizer of the student's own"
        raise ParameterError("teacher_tokenizer", "make_student", must, None)
    there = its.get_vocab()
    return {i: there[piece] for piece, i in own.get_vocab().items() if piece in there}


def _take(
    student: Any,
    encoder: Encoder,
    stack: Stack,
    layers: Sequence[int],
    rows: Mapping[int, int] | None,
) -> None:
    """Give the student what it takes of the teacher's weights."""
    given: Mapping[str, Tensor] = encoder.model.state_dict()
    prefix = f"{encoder.model.base_model_prefix}."
    prefix = prefix if any(name.startswith(prefix) for name in given) else ""
    places = {
        f"{prefix}{stack.block.format(i=i)}.": f"{prefix}{stack.block.format(i=layer - 1)}."
        for i, layer in enumerate(layers)
    }
    had, has = encoder.shape, Encoder(student).shape
    by_head = _entries(had.head_size, has.heads, has.head_size)
    split = {f"{stack.attention.rpartition('{i}')[2]}.{name}" for name in stack.qkv}
    joined = str(stack.projection).rpartition("{i}")[2]
    by_piece = _by_piece(encoder.model)
    with torch.no_grad():
        for name, own in student.state_dict().items():
            at = next((p for p in places if name.startswith(p)), "")
            named = places[at] + name.removeprefix(at) if at else name
            source = given[named]
            inside = "." + name.removeprefix(at).rpartition(".")[0] if at else ""
            axes: list[Tensor | None] = [None] * source.dim()
            if inside in split:
                axes[0] = by_head
            elif inside == joined and source.dim() == 2:
                axes[1] = by_head
            if rows is not None and named in by_piece:
                here = torch.tensor(sorted(rows))
                there = torch.tensor([rows[i] for i in sorted(rows)])
                axes[0] = there
                taken = _cut(source, axes, (len(here), *own.shape[1:]))
                own[here.to(own.device)] = taken.to(own.device, own.dtype)
                continue
            own.copy_(_cut(source, axes, own.shape))


def _by_piece(model: Any) -> set[str]:
    """The names of weights that have a row for each piece of the vocabulary."""
    modules = [model.get_input_embeddings(), model.get_output_embeddings()]
    there = {p.data_ptr() for m in modules if m is not None for p in m.parameters()}
    return {name for name, weight in model.state_dict().items() if weight.data_ptr() in there}


def _entries(size: int, heads: int, kept: int) -> Tensor:
    """The first `kept` entries of each of the first heads, of `size` entries each."""
    return torch.cat([torch.arange(kept) + head * size for head in range(heads)])


def _cut(source: Tensor, axes: Sequence[Tensor | None], shape: Sequence[int]) -> Tensor:
    """These entries along each axis, or the first ones."""
    found = source.detach()
    for axis, (entries, length) in enumerate(zip(axes, shape, strict=True)):
        if entries is not None:
            found = found.index_select(axis, entries.to(found.device))
        elif found.shape[axis] != length:
            found = found.narrow(axis, 0, length)
    return found


def _int(value: int | None) -> int:
    assert value is not None
    return value
