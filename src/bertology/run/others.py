"""Other models that a study's parameters name: loading them, and checks before comparing."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from bertology.errors import CapabilityError, ParameterError
from bertology.run.requirements import check_model
from bertology.studies.study import Study

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from bertology.data.corpus import Corpus
    from bertology.model.batch import Text
    from bertology.model.encoder import Encoder

_COMPARED_TEXTS = 32  # on which tokenizers must agree


def resolve_others(
    study: Study,
    encoder: Encoder,
    given: Mapping[str, Encoder] | None = None,
    *,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
) -> dict[str, Encoder]:
    """The models that parameters declared with `model=True` name, by parameter.

    Those not in `given` are loaded with the head the study needs, beside `encoder` and in its
    precision.
    """
    from bertology.model.encoder import Encoder

    found = dict(given or {})
    for parameter in _parameters(type(study)):
        name = getattr(study, parameter)
        if name and parameter not in found:
            precision = (encoder.spec or {}).get("dtype", "float32")
            found[parameter] = Encoder.load(
                name,
                head=study.needs.head,
                device=str(encoder.device),
                dtype=precision,
                allow_pickle=allow_pickle,
                trust_remote_code=trust_remote_code,
            )
    return found


def separate_models(
    kind: type[Study], parameters: Mapping[str, object]
) -> tuple[dict[str, object], dict[str, Encoder]]:
    """Parameters with names in place of the encoders that were given, and those encoders."""
    named = dict(parameters)
    models: dict[str, Encoder] = {}
    for name in _parameters(kind):
        value = named.get(name, "")
        if isinstance(value, os.PathLike):
            named[name] = os.fspath(value)
        elif not isinstance(value, str):
            models[name] = _loaded(value, name, kind)
            named[name] = models[name].name
    return named, models


def _loaded(value: object, parameter: str, kind: type[Study]) -> Encoder:
    """The encoder that was given; anything else is refused."""
    from bertology.model.encoder import Encoder

    if not isinstance(value, Encoder):
        raise ParameterError(parameter, kind.__name__, "be a model's name or an encoder", value)
    return value


def _parameters(kind: type[Study]) -> list[str]:
    return [f.name for f in fields(kind) if f.metadata.get("model")]


def check_others(
    name: str,
    study: Study,
    encoder: Encoder,
    others: Mapping[str, Encoder],
    corpus: Corpus | None,
) -> None:
    """Refuse a model that cannot be compared with the studied one, head by head.

    Where models are compared word by word, they may be built otherwise.
    """
    for other in others.values():
        check_model(name, study, other)
        if study.by_words:
            given: Any = corpus  # one that needs no fields may get none
            study.check(other, given)
            continue
        one, two = (
            (e.family.model_type, e.shape.layers, e.shape.heads, e.numbering.removed)
            for e in (encoder, other)
        )
        if one != two:
            first, second = (f"{e.family.title}, {e.shape}" for e in (encoder, other))
            pruned = " with other heads pruned" if first == second else ""
            raise CapabilityError(
                f"{other.name!r} ({second}{pruned}) cannot be compared with {encoder.name!r} "
                f"({first}): layers and heads must be the same.",
                hint="Give the model that the other was trained from, or another step of it.",
            )
        if corpus is not None:
            other.require_tokenizer()
            _check_reading(encoder, other, corpus)


def _check_reading(encoder: Encoder, other: Encoder, corpus: Corpus) -> None:
    """Refuse another tokenizer: both models read the same batches."""
    texts = corpus.texts[:_COMPARED_TEXTS]
    one, two = encoder.tokenizer, other.tokenizer
    same = one.get_vocab() == two.get_vocab()
    if not same or _ids(one, texts) != _ids(two, texts):
        raise CapabilityError(
            f"{other.name!r} has another tokenizer than {encoder.name!r}.",
            hint="Give the model that the other was trained from, or another step of it.",
        )
    longest, most = encoder.max_length, other.max_length
    if most is not None and (longest is None or most < longest):
        raise CapabilityError(
            f"{other.name!r} reads at most {most} tokens, and {encoder.name!r} may read "
            f"{longest or 'any number'}.",
            hint="Swap the two models.",
        )


def _ids(tokenizer: PreTrainedTokenizerBase, texts: Sequence[Text]) -> list[list[int]]:
    return [
        tokenizer(*(t if isinstance(t, tuple) else (t,)), verbose=False)["input_ids"] for t in texts
    ]
