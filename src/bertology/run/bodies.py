"""A study of the body of a model has one result, whatever head the model was loaded with."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from bertology.studies.study import Study

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder

_BODIES: WeakKeyDictionary[Encoder, tuple[object, Encoder]] = WeakKeyDictionary()


def as_needed(study: Study, encoder: Encoder) -> Encoder:
    """The model without its head where the study needs none, so that its identity is the same."""
    return encoder if study.needs.head != "base" else body_of(encoder)


def body_of(encoder: Encoder) -> Encoder:
    """The model without its head, loaded from where the encoder was loaded from.

    One that was made in memory, or whose weights were changed since, stays as it is.
    """
    if encoder.head == "base" or encoder.spec is None:
        return encoder
    from bertology.model.loading.fingerprint import state_of

    state = state_of(encoder.model)
    if encoder not in _BODIES or _BODIES[encoder][0] != state:
        _BODIES[encoder] = state, _body(encoder)
    return _BODIES[encoder][1]


def _body(encoder: Encoder) -> Encoder:
    import torch

    from bertology.errors import ModelError
    from bertology.model.encoder import Encoder

    how = {**(encoder.spec or {}), "head": "base", "num_labels": None}
    try:
        found = Encoder.load(**how, device=str(encoder.device))
    except ModelError:  # the folder has changed, or is gone
        return encoder
    own, there = encoder.base.state_dict(), found.base.state_dict()
    same = all(name in there and torch.equal(own[name], there[name]) for name in own)
    return found if same else encoder
