"""Which head a checkpoint was saved with, by its config."""

from __future__ import annotations

from bertology.errors import ModelError
from bertology.model.families import Capability, family_of
from bertology.model.loading.names import DEFAULT_MODEL, locate
from bertology.model.loading.own_type import config_at

# How the names end of the transformers classes that predict masked words.
_FILLING = ("ForMaskedLM", "WithLMHeadModel", "ForConditionalGeneration")


def saved_head(name: str = DEFAULT_MODEL) -> str:
    """`classification`, `pretraining`, `mlm`, `causal`; `base` without a head we can use."""
    import bertology.model.compressed.bilstm  # noqa: F401 - lets transformers know its model type

    place = locate(name)
    options = {} if place.revision is None else {"revision": place.revision}
    try:
        config = config_at(place.source, **options)
    except ModelError:
        raise
    except Exception:
        return "base"  # loading the model reports what is wrong with it
    saved = str(next(iter(getattr(config, "architectures", None) or ()), ""))
    if saved.endswith("ForSequenceClassification"):
        return "classification"
    family = family_of(config.model_type)
    if Capability.MASKED_LM not in family.capabilities:
        return "causal" if family.causal and saved.endswith("LMHeadModel") else "base"
    # ELECTRA is pre-trained to tell which words were replaced, which fills no blank.
    if saved.endswith("ForPreTraining") and config.model_type != "electra":
        return "pretraining"
    return "mlm" if saved.endswith(_FILLING) else "base"
