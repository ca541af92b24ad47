"""The network that comes with the package, ready for a device."""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files

import torch
from safetensors.torch import load_file

from bertology.annotated.map_types.network import WEIGHTS, MapTypeNetwork
from bertology.annotated.map_types.unrolled import UnrolledNetwork


@cache
def bundled_network(device: str = "cpu") -> MapTypeNetwork | UnrolledNetwork:
    """The network that comes with the package, made by `benchmarks/train_map_types.py`."""
    with as_file(files("bertology") / "checkpoints" / "map-types" / WEIGHTS) as path:
        weights = load_file(path)
    network = MapTypeNetwork().eval().requires_grad_(False)
    network.load_state_dict({name: value.float() for name, value in weights.items()})
    if torch.device(device).type != "cpu":
        return UnrolledNetwork(network).to(device)
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]
