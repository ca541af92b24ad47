"""Earlier training steps of a model in a quarter of their size.

A matrix is kept as bytes and one scale for each row: the largest entry of a row becomes 127, so
that no entry is off by more than 1/254 of it. Vectors (biases, LayerNorms) are kept in float16,
tied weights once. The file is an ordinary safetensors file; its metadata names the step and
where its config differs from the model's (a stacked model first had fewer layers).

Step 0 is kept like the others, not as a seed: torch does not draw the same numbers on every
processor, and then the fingerprint would depend on the machine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from bertology.drafts import draft_file, make_readable
from bertology.errors import ModelError, ParameterError
from bertology.model.loading.fingerprint import settings_of
from bertology.model.loading.names import STEPS, step_name
from bertology.model.protocols import ModelConfig, PretrainedModel

_FORMAT, _VERSION = "bertology-step", "1"
_SCALE = "scale:"  # before a matrix's name: the scales of its rows
_LEVELS = 127


def save_step(folder: str | Path, model: PretrainedModel, step: int) -> Path:
    """Write the weights of `model` as a step of the model in `folder`; `NAME@STEP` loads it."""
    import transformers

    if step < 0:
        raise ParameterError("step", "save_step", "be at least 0", step)
    known = _plain(transformers.AutoConfig.from_pretrained(folder))
    own = _plain(model.config)
    if own["model_type"] != known["model_type"]:
        raise ModelError(
            f"A step of {str(folder)!r} must be a {known['model_type']} model, "
            f"not {own['model_type']}."
        )
    changed = {k: v for k, v in own.items() if k not in known or v != known[k]}
    metadata = {
        "format": _FORMAT,
        "version": _VERSION,
        "step": str(step),
        "config": json.dumps(changed, sort_keys=True),
    }
    path = Path(folder) / STEPS / f"{step_name(step)}.safetensors"
    path.parent.mkdir(exist_ok=True)
    with draft_file(path) as draft:  # no incomplete file has the final name
        save_file(compress(model.state_dict()), draft, metadata)
        make_readable(draft)
    return path


def _plain(config: ModelConfig) -> dict[str, object]:
    """A config as JSON gives it back: its keys are texts, also where they were numbers."""
    plain: dict[str, object] = json.loads(json.dumps(settings_of(config), default=str))
    return plain


def compress(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Matrices as int8 with a float32 scale a row, vectors as float16, tied weights once."""
    small: dict[str, Tensor] = {}
    seen: set[tuple[int, torch.Size, tuple[int, ...]]] = set()
    for name, tensor in weights.items():
        place = (tensor.data_ptr(), tensor.shape, tensor.stride())
        if tensor.numel() and place in seen:
            continue  # tied: loading ties it again
        seen.add(place)
        kept = tensor.detach().cpu()
        if not kept.is_floating_point():
            small[name] = kept.clone()
            continue
        if not kept.isfinite().all():
            raise ModelError(f"The weights {name!r} are not finite, so no step can be made of it.")
        kept = kept.float()
        if kept.dim() < 2 or not kept.numel():
            half = kept.half()
            small[name] = half if half.isfinite().all() else kept
            continue
        scale = kept.abs().amax(-1, keepdim=True) / _LEVELS
        whole = (kept / scale.where(scale > 0, 1)).round().clamp(-_LEVELS, _LEVELS)
        small[name] = whole.to(torch.int8)
        small[_SCALE + name] = scale
    return small


def settings_at(path: Path) -> dict[str, object]:
    """The fields in which the config of a step differs from that of its model."""
    with safe_open(path, framework="pt") as file:
        about = file.metadata() or {}
    if about.get("format") != _FORMAT or about.get("version") != _VERSION:
        raise ModelError(
            f"{str(path)!r} is no training step of version {_VERSION}, which this release reads.",
            hint="Write it again with `bertology.model.loading.steps.save_step`, or update.",
        )
    settings: dict[str, object] = json.loads(about["config"])
    return settings


def restore(path: Path) -> dict[str, Tensor]:
    """The weights of a compressed step, in float32, under the names the model has for them."""
    weights = {}
    with safe_open(path, framework="pt") as file:
        names = set(file.keys())
        for name in sorted(n for n in names if not n.startswith(_SCALE)):
            tensor = file.get_tensor(name)
            if _SCALE + name in names:
                tensor = tensor.float().mul_(file.get_tensor(_SCALE + name))
            weights[name] = tensor.float() if tensor.is_floating_point() else tensor
    return weights
