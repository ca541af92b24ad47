"""Beginning with a model that is there: another domain, longer rows, one more objective."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

import torch
from torch import Tensor

from bertology.errors import ModelError
from bertology.plain_files import local_path, read_json

_POSITIONS = "bert.embeddings.position_embeddings.weight"
_HEADS = ("bert.pooler.", "cls.")  # what a checkpoint may lack


def fingerprint(folder: str | Path) -> str:
    """A hash of the weights in a folder; where there are none, of nothing."""
    file = _weights(folder)
    digest = blake2b(digest_size=16)
    if file.is_file():
        with file.open("rb") as data:
            while block := data.read(1 << 22):
                digest.update(block)
    return digest.hexdigest()


def _weights(folder: str | Path) -> Path:
    return local_path(folder, error=ModelError) / "model.safetensors"


def start_from(folder: str | Path, fresh: dict[str, Tensor], *, heads: int) -> dict[str, Tensor]:
    """The weights of a BERT folder, by the names of the network's; heads it lacks stay fresh.

    A model with more positions keeps its fresh ones where the folder has none.
    """
    found = _read(folder)
    # Refuse what would fit and still be another model: heads cut otherwise, layers left out
    place = local_path(folder, error=ModelError) / "config.json"
    config = read_json(place, error=ModelError)
    said = config.get("num_attention_heads") if isinstance(config, dict) else None
    if said != heads:
        raise ModelError(
            f"The model in {str(folder)!r} has {said} heads; this one is to have {heads}.",
            hint="Start from a model of the same shape.",
        )
    more = [n for n in found if ".encoder.layer." in n and f"model.{n}" not in fresh]
    if more:
        raise ModelError(
            f"The model in {str(folder)!r} has more layers than this one begins with: "
            f"{sorted(more)[0]!r} would be left out.",
            hint="Start from a model of the same shape.",
        )
    begun = dict(fresh)
    for name, weight in fresh.items():
        own = name.removeprefix("model.")
        if own == name:
            continue  # of a loss: not part of a saved model
        if own not in found:
            if not own.startswith(_HEADS):
                raise ModelError(f"{str(folder)!r} lacks the weights {own!r} of a BERT.")
            continue
        begun[name] = _fitted(own, found[own], weight, folder)
    return begun


def _read(folder: str | Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        found = load_file(_weights(folder))
    except (OSError, SafetensorError) as error:
        raise ModelError(
            f"There is no model to start from in {str(folder)!r}: {error}.",
            hint="Give a folder with config.json and model.safetensors, such as RUN/model.",
        ) from error
    # The first BERTs call scales and biases of LayerNorms so; transformers renames them, too.
    return {
        n.replace("LayerNorm.gamma", "LayerNorm.weight").replace(
            "LayerNorm.beta", "LayerNorm.bias"
        ): w
        for n, w in found.items()
    }


def _fitted(name: str, found: Tensor, fresh: Tensor, folder: str | Path) -> Tensor:
    if found.shape == fresh.shape:
        return found.to(fresh.dtype)
    if name == _POSITIONS and found.shape[1] == fresh.shape[1] and len(found) < len(fresh):
        return torch.cat([found.to(fresh), fresh[len(found) :]])
    raise ModelError(
        f"{name!r} of {str(folder)!r} is {tuple(found.shape)}; this model's is "
        f"{tuple(fresh.shape)}.",
        hint="Start from a model of the same vocabulary and shape.",
    )
