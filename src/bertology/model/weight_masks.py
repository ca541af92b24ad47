"""Which single weights of a model stay, and which are gone: unstructured masks.

A mask covers some weights of a model by their names, one bit each, and is kept packed: 110 million
weights take 14 MB, in memory and as a safetensors file. What it covers, unless it is told, are all
matrices of the model, its head included, but the embeddings (`prunable`). Prasanna et al. (2020)
prune "the entire fine-tuned model (except the embeddings)"; biases and LayerNorms, which are 0.1 %
of the weights and have another scale, stay here.

    mask = WeightMask.full(encoder.model)
    mask = without_smallest(encoder.model, mask, share=0.1)      # model/weight_ranks.py
    encoder.run(texts, do=KeepWeights(mask))                     # for one run
    with weights_removed(encoder.model, mask): ...               # for a while; undone to the bit
    with weights_held_at_zero(model, mask): finetune(model, …)   # for a training; not undone
    mask.save(path); WeightMask.load(path).digest == mask.digest

A mask applies to every model that has weights of the same names and shapes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bertology.drafts import draft_file, make_readable
from bertology.errors import ModelError, StoreError
from bertology.model.addressing import AddressedModel
from bertology.model.weight_edits import WeightEdit

Bits = NDArray[np.uint8]
_VECTORS = ("bias", "emb", "embed")  # what XLNet calls parameters of two axes that are no matrices
_OUTSIDE = -1  # the layer of what is in no layer


def prunable(model: nn.Module) -> dict[str, nn.Parameter]:
    """All matrices of a model, in its order, but the embeddings and what is tied to them."""
    embedded = {
        id(weight)
        for module in model.modules()
        if isinstance(module, nn.Embedding)
        for weight in module.parameters(recurse=False)
    }
    return {
        name: weight
        for name, weight in model.named_parameters()
        if weight.dim() > 1 and id(weight) not in embedded and not name.endswith(_VECTORS)
    }


@dataclass(frozen=True, eq=False)
class WeightMask:
    """One bit for each weight: 1 stays, 0 is gone. `bits` are packed by name, unused ones are 0."""

    shapes: Mapping[str, tuple[int, ...]]
    bits: Mapping[str, Bits]

    @classmethod
    def full(cls, model: nn.Module) -> WeightMask:
        """All weights that can be pruned stay."""
        shapes = {name: tuple(weight.shape) for name, weight in prunable(model).items()}
        bits = {name: np.packbits(np.ones(size_of(shape), bool)) for name, shape in shapes.items()}
        return cls(shapes, bits)

    @classmethod
    def of(cls, kept: Mapping[str, NDArray[np.bool_]]) -> WeightMask:
        """Of plain arrays, by the weights' names."""
        shapes = {name: tuple(array.shape) for name, array in kept.items()}
        return cls(shapes, {name: np.packbits(array.ravel()) for name, array in kept.items()})

    @property
    def size(self) -> int:
        """How many weights it covers."""
        return sum(size_of(shape) for shape in self.shapes.values())

    @property
    def kept(self) -> int:
        """How many of them stay."""
        return sum(self.kept_in(name) for name in self.bits)

    def kept_in(self, name: str) -> int:
        """How many weights of one matrix stay."""
        return int(np.bitwise_count(self.bits[name]).sum(dtype=np.int64))

    @property
    def share(self) -> float:
        """The share that stays."""
        return self.kept / self.size

    def keeps(self, name: str) -> NDArray[np.bool_]:
        """Which weights of one matrix stay."""
        shape = self.shapes[name]
        return np.unpackbits(self.bits[name], count=size_of(shape)).view(bool).reshape(shape)

    def removed(self) -> WeightMask:
        """The mask that keeps what this one removes."""
        gone = {name: np.packbits(~self.keeps(name).ravel()) for name in self.bits}
        return WeightMask(self.shapes, gone)

    def joined(self) -> Bits:
        """All bits in one array, names in their order, each beginning a byte: to be compared."""
        return np.concatenate([self.bits[name] for name in self.shapes])

    @classmethod
    def from_joined(cls, shapes: Mapping[str, tuple[int, ...]], joined: Bits) -> WeightMask:
        """The mask of these shapes whose `joined` bits are given."""
        bits, start = {}, 0
        for name, shape in shapes.items():
            length = -(-size_of(shape) // 8)
            bits[name] = np.ascontiguousarray(joined[start : start + length])
            start += length
        if start != len(joined):
            raise ModelError(f"A mask of these shapes has {start} bytes. Got {len(joined)}.")
        return cls(dict(shapes), bits)

    @property
    def fingerprint(self) -> str:
        """A hash of names and shapes: what it can be applied to."""
        return _fingerprint(self.shapes)

    @property
    def digest(self) -> str:
        """A hash of the mask itself."""
        digest = blake2b(self.fingerprint.encode(), digest_size=16)
        for name in sorted(self.bits):
            digest.update(self.bits[name].tobytes())
        return digest.hexdigest()

    def check(self, model: nn.Module) -> dict[str, nn.Parameter]:
        """The weights of a model that the mask is about; refuses a model of another shape."""
        known = dict(model.named_parameters())
        for name, shape in self.shapes.items():
            found = tuple(known[name].shape) if name in known else None
            if found != shape:
                has = "has no such weight" if found is None else f"has {_by(found)} there"
                raise ModelError(
                    f"The mask is of another model: it covers {name} ({_by(shape)}), and this "
                    f"model {has}.",
                    hint="A mask applies to models of the same family, size and head.",
                )
        return {name: known[name] for name in self.shapes}

    def save(self, path: str | Path) -> None:
        """Write it as safetensors: packed bits, and the shapes beside them. All or nothing."""
        from safetensors import SafetensorError
        from safetensors.numpy import save_file

        place = Path(path)
        about = {
            "shapes": json.dumps({name: list(shape) for name, shape in self.shapes.items()}),
            "fingerprint": self.fingerprint,
        }
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            with draft_file(place) as draft:
                save_file(dict(self.bits), draft, metadata=about)
                make_readable(draft)
        except (OSError, SafetensorError) as error:  # the latter is raised for a full disk
            reason = getattr(error, "strerror", None) or error
            raise StoreError(
                f"The mask cannot be written to {place}: {reason}.",
                hint="Choose a folder you may write to, on a disk with space.",
            ) from error

    @classmethod
    def load(cls, path: str | Path) -> WeightMask:
        """Read what `save` wrote."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(path, framework="np") as file:
                about = file.metadata() or {}
                shapes = {n: tuple(s) for n, s in json.loads(about["shapes"]).items()}
                bits = {name: file.get_tensor(name) for name in shapes}
            whole = all(
                bits[n].dtype == np.uint8 and bits[n].shape == (-(-size_of(s) // 8),)
                for n, s in shapes.items()
            )
            if not whole or about["fingerprint"] != _fingerprint(shapes):
                raise ValueError("its shapes and its bits do not belong together")
        except (OSError, ValueError, KeyError, TypeError, AttributeError, SafetensorError) as error:
            raise StoreError(
                f"{path} is not a mask that bertology wrote: {error}.",
                hint="Make it again.",
            ) from error
        return cls(shapes, bits)


def size_of(shape: tuple[int, ...]) -> int:
    """How many weights a matrix of this shape has."""
    return int(np.prod(shape, dtype=np.int64))


def _by(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape))


def _fingerprint(shapes: Mapping[str, tuple[int, ...]]) -> str:
    plain = json.dumps(sorted((name, list(shape)) for name, shape in shapes.items()))
    return blake2b(plain.encode(), digest_size=8).hexdigest()


# Applied to a model ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class KeepWeights(WeightEdit):
    """Only the weights that a mask keeps, for one run; the others are zero."""

    mask: WeightMask

    def weights(self, encoder: AddressedModel) -> dict[str, Tensor]:
        return {
            name: weight.detach().masked_fill(gone_on(self.mask, name, weight.device), 0.0)
            for name, weight in self.mask.check(encoder.model).items()
        }


def gone_on(mask: WeightMask, name: str, device: torch.device) -> Tensor:
    """Which weights of a matrix are gone, as a tensor of truth values on a device."""
    return torch.from_numpy(~mask.keeps(name)).to(device)


@contextmanager
def weights_removed(model: nn.Module, mask: WeightMask) -> Iterator[None]:
    """The model without these weights inside the block; after it, every bit is as it was."""
    weights = mask.check(model)
    saved: dict[str, Tensor] = {}
    with torch.no_grad():
        try:
            for name, weight in weights.items():
                gone = gone_on(mask, name, weight.device)
                saved[name] = weight[gone]
                weight.masked_fill_(gone, 0.0)
            yield
        finally:
            for name, values in saved.items():
                weights[name][gone_on(mask, name, weights[name].device)] = values


@contextmanager
def weights_held_at_zero(model: nn.Module, mask: WeightMask) -> Iterator[None]:
    """Set these weights to zero, and hold them there under any optimizer inside the block.

    They get no gradient, so neither momentum nor weight decay moves them, and the norm by which
    gradients are clipped is that of the weights that stay. What was there before is lost.
    """
    holds = []
    try:
        with torch.no_grad():
            for name, weight in mask.check(model).items():
                gone = gone_on(mask, name, weight.device)
                weight.masked_fill_(gone, 0.0)
                hook = _without_gradient(gone)
                holds.append(weight.register_hook(hook))  # type: ignore[no-untyped-call]
        yield
    finally:
        for hold in holds:
            hold.remove()


class _without_gradient:  # noqa: N801  a function that holds a tensor
    def __init__(self, gone: Tensor) -> None:
        self._gone = gone

    def __call__(self, gradient: Tensor) -> Tensor:
        return gradient.masked_fill(self._gone, 0.0)


# What is said of masks ---------------------------------------------------------------------------


class Survival(NamedTuple):
    """How many weights of one kind of matrix stay in one layer."""

    layer: int
    """-1 for what is in no layer: pooler and classifier."""
    kind: str
    """The name of the matrix inside its layer, such as `attention.self.query`."""
    kept: int
    size: int


def survival(encoder: AddressedModel, mask: WeightMask) -> list[Survival]:
    """What stays, by layer and kind of matrix, in the order of the model."""
    mask.check(encoder.model)
    return [
        Survival(*place, mask.kept_in(name), size_of(mask.shapes[name]))
        for name, place in _places(encoder, mask.shapes).items()
    ]


def _places(encoder: AddressedModel, names: Iterable[str]) -> dict[str, tuple[int, str]]:
    """The layer and the kind of each matrix."""
    blocks: dict[str, tuple[int, str]] = {}
    body = "" if encoder.base is encoder.model else f"{encoder.model.base_model_prefix}."
    for stack, row in encoder.family.stacks.items():
        main = "" if stack == encoder.family.main_stack else f"{stack}."
        for layer in range(encoder.shapes[stack].layers):
            path = f"{body}{encoder.family.path(row.block, encoder.config, layer)}."
            blocks.setdefault(path, (layer, main))
    found = {}
    for name in names:
        block = next((path for path in blocks if name.startswith(path)), "")
        layer, main = blocks.get(block, (_OUTSIDE, ""))
        found[name] = (
            layer,
            main + name.removeprefix(block).removeprefix(body).removesuffix(".weight"),
        )
    return found


def prunable_in_layers(encoder: AddressedModel) -> dict[str, nn.Parameter]:
    """The matrices of all layers, without pooler and head."""
    weights = prunable(encoder.model)
    places = _places(encoder, weights)
    return {name: weight for name, weight in weights.items() if places[name][0] != _OUTSIDE}


def random_mask(mask: WeightMask, *, seed: int, by_matrix: bool = True) -> WeightMask:
    """As many weights stay as in `mask`, at random: in each matrix, or over the whole model."""
    rng = np.random.default_rng(seed)
    sizes = {name: size_of(shape) for name, shape in mask.shapes.items()}
    if by_matrix:
        counts = {name: mask.kept_in(name) for name in sizes}
    else:
        # How many fall into each matrix is all that is left to chance between matrices.
        drawn = rng.multivariate_hypergeometric(list(sizes.values()), mask.kept, method="marginals")
        counts = dict(zip(sizes, map(int, drawn), strict=True))
    kept = {}
    for name, shape in mask.shapes.items():
        flat = np.zeros(sizes[name], bool)
        flat[rng.choice(sizes[name], counts[name], replace=False, shuffle=False)] = True
        kept[name] = flat.reshape(shape)
    return WeightMask.of(kept)
