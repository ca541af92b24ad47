"""Results of one study on several tasks: what else than the task differs is refused in words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from bertology.errors import DataError
from bertology.results.answers import listed
from bertology.results.result import Result

_FEWEST = 2
Settings = Callable[[Result], Mapping[str, object]]


def refuse_unlike(results: Sequence[Result], names: Sequence[str], settings: Settings) -> None:
    """Refuse what is not one model on several tasks, by their `names`, with the same settings.

    A setting that a result does not have is not compared.
    """
    study = results[0].provenance.study if results else ""
    about = [result.provenance for result in results]
    if len(results) < _FEWEST:
        raise DataError(
            f"Tasks are compared of two results or more. Got {len(results)}.",
            hint=f"bertology list --study {study} shows which there are.",
        )
    models = {str(p.model["fingerprint"]): p.model_name for p in about}
    if len(models) > 1:
        raise DataError(
            f"The results are of {len(models)} models, {listed(models.values())}; tasks are "
            "compared of one.",
            hint=f"Give results of {study} of the same model.",
        )
    data = [p.ingredients.get("training_data", name) for p, name in zip(about, names, strict=True)]
    for what, keys in (("of the same task", names), ("of the same training data", data)):
        if twice := [name for name, key in zip(names, keys, strict=True) if keys.count(key) > 1]:
            raise DataError(
                f"Several results are {what}: {listed(twice)}. Their errors are not independent.",
                hint="Give one result for each task.",
            )
    given = {name: settings(result) for name, result in zip(names, results, strict=True)}
    if odd := _differing(given):
        told = "; ".join(
            f"{key} = {listed(f'{own[key]} ({name})' for name, own in given.items() if key in own)}"
            for key in odd
        )
        raise DataError(
            f"Models were fine-tuned with different settings: {told}.",
            hint=f"Run {study} on each task with the same --model and settings.",
        )


def settings_but(result: Result, free: Collection[str]) -> dict[str, object]:
    """The study's version, its parameters that are not `free`, and what was learnt from beside.

    These are told by their fingerprints; the task is its own.
    """
    about = result.provenance
    found: dict[str, object] = {"the study's version": about.study_version}
    found |= {key: value for key, value in about.parameters.items() if key not in free}
    others = {k: v for k, v in about.ingredients.items() if k != "training_data"}
    return found | {f"data of {key}": value[:8] for key, value in others.items()}


def _differing(given: Mapping[str, Mapping[str, object]]) -> list[str]:
    keys = dict.fromkeys(key for own in given.values() for key in own)
    return [k for k in keys if len({repr(own[k]) for own in given.values() if k in own}) > 1]
