"""From a name to a model, with the head a task needs; safe weights only by default."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertology.errors import ModelError, ParameterError, UnknownNameError
from bertology.model.families import FAMILIES, Family, family_of
from bertology.model.loading.config_checks import (
    check_config,
    check_sizes,
    check_tokenizer,
    check_weights,
)
from bertology.model.loading.names import Location, bundled_models, locate
from bertology.model.loading.online import hub_is_offline, hub_is_reachable
from bertology.model.protocols import ModelConfig, PretrainedModel, Tokenizer

if TYPE_CHECKING:
    import torch

HEADS = {
    "base": "AutoModel",
    "mlm": "AutoModelForMaskedLM",
    "causal": "AutoModelForCausalLM",
    "pretraining": "AutoModelForPreTraining",
    "classification": "AutoModelForSequenceClassification",
    "token-classification": "AutoModelForTokenClassification",
    "multiple-choice": "AutoModelForMultipleChoice",
}
_PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
# Errors whose words are about somebody's code, and tell a user nothing.
_OF_PYTHON = (AttributeError, LookupError, TypeError, AssertionError, RecursionError, NameError)
_SAFE = ("model.safetensors", "model.safetensors.index.json")


@dataclass
class Loaded:
    """A model that was loaded, with all that belongs to it."""

    model: PretrainedModel
    tokenizer: Tokenizer | None
    family: Family
    new_weights: list[str]  # parameters the checkpoint did not have, drawn by the seed


def load_model(
    name: str,
    head: str,
    *,
    num_labels: int | None = None,
    dtype: str = "float32",
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
    seed: int = 0,
) -> Loaded:
    """Load a model, its tokenizer and its family row; every failure is a ModelError with a hint."""
    import torch

    import bertology.model.compressed.bilstm  # noqa: F401 - lets transformers know its model type
    from bertology.model.loading.own_type import config_at
    from bertology.model.loading.steps import settings_at

    if head not in HEADS:
        raise UnknownNameError("model head", head, HEADS)
    kind = _dtype(dtype)
    place = locate(name)
    where = place.source
    if not allow_pickle and place.weights is None:
        _refuse_pickles(name, where)
    options: dict[str, object] = {"trust_remote_code": trust_remote_code}
    if place.revision is not None:
        options["revision"] = place.revision
    if Path(where).is_dir():
        check_config(name, Path(where))
    else:
        options |= _hub_options(name, place)
    try:
        config = config_at(where, **options)
        if place.weights is not None:
            config.update(settings_at(place.weights))
    except ModelError:
        raise
    except Exception as error:
        raise _explained(name, where, error) from error
    family = family_of(config.model_type)
    check_sizes(name, config, family)
    options |= {
        "dtype": kind,
        "use_safetensors": None if allow_pickle else True,
        "weights_only": True,
    }
    if num_labels is not None:
        config.num_labels = num_labels
        options["ignore_mismatched_sizes"] = True  # a head of another size is started anew
    state = torch.random.get_rng_state()
    try:
        torch.manual_seed(seed)  # heads that a checkpoint lacks start from this seed
        model, new = _read(place, _auto_class(config, head), config, options)
    except ModelError:
        raise
    except ValueError as error:
        if "Unrecognized configuration class" in str(error):
            raise ModelError(
                f"{family.title} models have no {head!r} head in transformers.",
                hint=f"Heads: {', '.join(HEADS)}.",
            ) from error
        raise _explained(name, where, error) from error
    except Exception as error:
        raise _explained(name, where, error) from error
    finally:
        torch.random.set_rng_state(state)
    _check_new_weights(name, head, new, num_labels, total=len(model.state_dict()))
    body = [n for n in new if head == "base" or n.startswith(f"{model.base_model_prefix}.")]
    body = [n for n in body if "pooler" not in n]
    if body:
        raise ModelError(
            f"{name!r} lacks weights of the model itself: {', '.join(body[:3])} …",
            hint="The checkpoint is incomplete; download or save it again.",
        )
    check_weights(name, model)
    only_here = bool(options.get("local_files_only"))
    tokenizer = _tokenizer(place, trust_remote_code, only_here=only_here)
    if tokenizer is not None:
        check_tokenizer(name, tokenizer, model)
    return Loaded(model.eval(), tokenizer, family, new)


def _read(
    place: Location, auto: Any, config: ModelConfig, options: dict[str, object]
) -> tuple[PretrainedModel, list[str]]:
    """The model, and the names of the weights that the checkpoint did not give."""
    from bertology.model.loading.pruning import load_pruned
    from bertology.model.loading.steps import restore

    folder: str | None = place.source
    if place.weights is not None:
        # transformers takes weights from a folder or from here, and then sees no folder at all.
        folder, options = None, options | {"state_dict": restore(place.weights)}
    model, info = load_pruned(folder, auto, config=config, output_loading_info=True, **options)
    model.config.name_or_path = place.source
    other_size = [key if isinstance(key, str) else key[0] for key in info["mismatched_keys"]]
    inside = [k for k in other_size if k.startswith(f"{model.base_model_prefix}.")]
    if inside:
        raise ValueError(f"size mismatch for {', '.join(inside[:3])}")
    return model, sorted({*info["missing_keys"], *other_size})


def _auto_class(config: ModelConfig, head: str) -> Any:
    import transformers

    if config.model_type == "t5" and head == "base":
        return transformers.T5EncoderModel
    return getattr(transformers, HEADS[head])


def _dtype(name: str) -> torch.dtype | str:
    import torch

    known = ("float32", "bfloat16", "float16", "auto")
    if name not in known:
        raise ParameterError("dtype", "load", f"be one of {', '.join(known)}", name)
    if name == "auto":
        return name
    found: torch.dtype = getattr(torch, name)
    return found


def _refuse_pickles(name: str, where: str) -> None:
    folder = Path(where)
    if not folder.is_dir() or any((folder / f).exists() for f in _SAFE):
        return
    if any((folder / f).exists() for f in _PICKLES):
        raise ModelError(
            f"{name!r} has its weights as a pickle only, and pickles are not read by default.",
            hint="allow_pickle=True (--allow-pickle) reads the tensors in it and refuses all "
            "else, so no code of it runs. Save the model again with save_pretrained: that writes "
            "safetensors.",
        )
    raise ModelError(
        f"{name!r} has a config.json but no weights (model.safetensors).",
        hint="Copy the weights there, or save the model again with save_pretrained.",
    )


def _check_new_weights(
    name: str, head: str, new: list[str], num_labels: int | None, *, total: int
) -> None:
    if len(new) > total / 2:
        raise ModelError(
            f"{name!r} holds almost none of the weights its config.json asks for "
            f"({len(new)} of {total} are missing).",
            hint="The weights and the config are not of the same model.",
        )
    head_weights = [n for n in new if "pooler" not in n]
    if head_weights and head != "base" and num_labels is None:
        chance = (
            "Fine-tune it first: `bertology finetune MODEL TASK`. (`bertology run` also takes "
            "num_labels=… or --num-labels: a head that starts at random, at chance level.)"
        )
        raise ModelError(
            f"{name!r} has no trained {head} head ({', '.join(head_weights[:3])} …).",
            hint="Take a checkpoint that was pre-trained with this head."
            if head in ("mlm", "pretraining")
            else chance,
        )


def _tokenizer(
    place: Location, trust_remote_code: bool, *, only_here: bool = False
) -> Tokenizer | None:
    """The tokenizer beside the weights; for a step without one, that of its model."""
    options: dict[str, object] = {"trust_remote_code": trust_remote_code}
    if only_here:
        options["local_files_only"] = True
    if place.revision is not None:
        options["revision"] = place.revision
    found = _tokenizer_at(place.source, options)
    if found is None and place.home is not None:
        return _tokenizer_at(place.home, options)
    return found


def _tokenizer_at(where: str, options: dict[str, object]) -> Tokenizer | None:
    import transformers

    try:
        found = transformers.AutoTokenizer.from_pretrained(where, use_fast=True, **options)
    except Exception:
        return None  # a model without a tokenizer still runs on tensors; texts are refused later
    # Where there are no files, transformers makes one that knows special tokens only, and every
    # text would silently become unknown words.
    known = set(found.get_vocab()) - set(found.all_special_tokens)
    return found if known else None


def _hub_options(name: str, place: Location) -> dict[str, object]:
    """Without the hub: only what is in the cache; an error at once where nothing is."""
    from huggingface_hub import try_to_load_from_cache

    if hub_is_reachable():
        return {}
    with suppress(ValueError):  # for what cannot be the name of a model on the hub
        kept = try_to_load_from_cache(place.source, "config.json", revision=place.revision)
        if isinstance(kept, str):
            return {"local_files_only": True}
    raise _unknown(name)


def _explained(name: str, where: str, error: Exception) -> ModelError:
    """One clear sentence for the many ways in which loading fails."""
    import safetensors

    text = str(error)
    if Path(where).is_dir():
        if isinstance(error, safetensors.SafetensorError) or "safetensors" in type(error).__name__:
            return ModelError(
                f"The weights of {name!r} are corrupt: {text}.",
                hint="Download or copy the checkpoint again; the file was cut short or altered.",
            )
        if "Weights only load failed" in text:
            return ModelError(
                f"The pickle of {name!r} holds more than tensors, so it is not read: to open it "
                "could run code.",
                hint="Ask for a checkpoint with model.safetensors.",
            )
        if "`model_type`" in text:
            return ModelError(
                f"The config.json of {name!r} does not say which family the model is of.",
                hint=f'Add a line such as "model_type": "bert" to it. '
                f"Known: {', '.join(FAMILIES.names())}.",
            )
        if "trust_remote_code" in text:
            return _remote_code(name)
        if "size mismatch" in text or "mismatched" in text.lower():
            return ModelError(
                f"The weights of {name!r} do not fit its config.json.", hint=text.splitlines()[-1]
            )
        if wrong := re.search(r"Field '(\w+)' expected (.+?), got .+? \(value: (.*?)\)", text):
            field, kind, value = wrong.groups()
            return ModelError(
                f"The config.json of {name!r} says {field} = {value:.60}.",
                hint=f"It must be of the type {kind}.",
            )
        if not text.strip() or isinstance(error, _OF_PYTHON):
            return ModelError(
                f"{name!r} could not be loaded: its config.json or its weights are not what "
                f"transformers takes for a model of this family.",
                hint="Save it again with save_pretrained. What transformers stumbled over: run "
                "with -v.",
            )
        first = " ".join(line.strip() for line in text.strip().splitlines()[:2])
        return ModelError(f"{name!r} could not be loaded: {first}")
    if "trust_remote_code" in text:
        return _remote_code(name)
    if "safetensors" in text and "not appear" in text:
        return ModelError(
            f"{name!r} has no safetensors weights on the hub.",
            hint="allow_pickle=True (--allow-pickle) also reads pickled weights: tensors only, "
            "no code of them runs.",
        )
    return _unknown(name, "the Hugging Face hub did not give it")


def _unknown(name: str, reason: str = "the Hugging Face hub cannot be reached") -> ModelError:
    if hub_is_offline():
        reason = "HF_HUB_OFFLINE is set"
    bundled = list(bundled_models())
    near = get_close_matches(name.rpartition("/")[2], bundled, n=1, cutoff=0.5)
    guess = f"Did you mean {near[0]!r}? " if near else ""
    return ModelError(
        f"Unknown model {name!r}: it is no folder here, not bundled, not in the local cache, "
        f"and {reason}.",
        hint=f"{guess}Give a folder with a checkpoint, or download the model where the hub can be "
        "reached." + (f" Bundled: {', '.join(bundled)}." if bundled else ""),
    )


def _remote_code(name: str) -> ModelError:
    return ModelError(
        f"{name!r} asks to run its own Python code.",
        hint="If you trust it, pass trust_remote_code=True (--trust-remote-code).",
    )


def find_device(name: str) -> torch.device:
    """The device called `name`; "auto" takes a GPU where there is one."""
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ParameterError("device", "load", "be auto, cpu, cuda or cuda:N", name) from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise ModelError(
            f"There is no GPU for device {name!r} on this machine.",
            hint="Use device='cpu' (--device cpu).",
        )
    return device
