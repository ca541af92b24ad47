"""How a result was made, and the hash that shows whether it is in the store already."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import Any, Protocol, runtime_checkable

from bertology.errors import ParameterError

IDENTITY_LENGTH = 16
MANY_UNKNOWN = 0.03  # the share of unknown pieces above which a result carries a warning

# A folder's name that says nothing without that of the folder above.
_NO_NAME = re.compile(r"model|best|final|last|((seed|step|epoch|run|checkpoint)[-_]?\d*)")
_LIBRARIES = ("bertology", "torch", "transformers", "numpy", "scipy", "pandas", "xarray")


@runtime_checkable
class _Scalar(Protocol):
    """A scalar of numpy, or an array without dimensions."""

    def item(self) -> object: ...


def identity_of(
    study: str,
    study_version: int,
    *,
    parameters: Mapping[str, object],
    model: str,
    corpus: str | None,
) -> str:
    """The identity of a job: 16 hex digits made from the study, its parameters, model and data.

    `model` and `corpus` are fingerprints. Names, devices, batch sizes, dates and library versions
    do not enter, so the same work is recognised wherever and however it was done.
    """
    asked = {
        "study": study,
        "study_version": study_version,
        "parameters": parameters,
        "model": model,
        "corpus": corpus,
    }
    text = json.dumps(
        asked, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=_plain_scalar
    )
    return hashlib.sha256(text.encode()).hexdigest()[:IDENTITY_LENGTH]


def short(name: str) -> str:
    """A name without the folders that it lies in."""
    return name.rstrip("/").rsplit("/", 1)[-1]


def short_model(name: str) -> str:
    """A model's name without the folders it lies in; with one where the last says nothing.

    `results/mrpc-pretrained/seed-0` is `mrpc-pretrained/seed-0`.
    """
    parts = [part for part in name.rstrip("/").split("/") if part]
    named_by_last = len(parts) < 2 or not _NO_NAME.fullmatch(parts[-1])
    return "/".join(parts[-1:] if named_by_last else parts[-2:]) or name


def library_versions() -> dict[str, str]:
    """Versions of Python and of the libraries that numbers depend on, without importing them."""
    return dict(_versions())


@cache  # they stay what they are, and reading them takes longer than many a conclusion
def _versions() -> Mapping[str, str]:
    found = {"python": python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class Provenance:
    """Which study, model and corpus a result is of; and when, how long and with what it was made.

    Values are kept as plain JSON (tuples become lists), so that reading gives exactly what was
    written. A seed that changes numbers is a parameter of the study and so part of the identity;
    `seed` repeats it for the reader.
    """

    study: str
    study_version: int
    parameters: dict[str, object]
    model: dict[str, Any]  # name, fingerprint, family, shape, head
    corpus: dict[str, Any] | None = None
    """Name, fingerprint, size, split, drawn_from; `labels`: how they match those of the model."""
    others: dict[str, Any] = field(default_factory=dict)
    """Further models, by the parameter that names each; described as `model` is."""
    ingredients: dict[str, str] = field(default_factory=dict)
    """What else the numbers rest on (bundled weights, other data), with fingerprints."""
    results: dict[str, object] = field(default_factory=dict)
    """Identities of the results that it was combined from; none where it was measured."""
    measured: dict[str, Any] | None = None
    """The measurement that it was concluded from: `key`, when it was `created`, `versions`. None
    for what was combined, and for results from before measurements were kept."""
    over: str = ""
    """What it is over, where that is no single corpus, such as `all tasks`."""
    seed: int | None = None
    versions: dict[str, str] = field(default_factory=library_versions)
    created: str = field(default_factory=now)
    duration: float = 0.0  # seconds
    command: str | None = None
    cut: dict[str, Any] | None = None
    """Texts that were too long: `texts` of `of` were cut to `tokens`, which the study was `asked`
    to do or else is all that the model takes. None where there is no limit or nobody counted."""
    unknown: dict[str, Any] | None = None
    """Pieces that the tokenizer does not know: `pieces` of `of` are its `token` for them."""

    def __post_init__(self) -> None:
        plain = ("parameters", "model", "corpus", "others", "ingredients", "results", "versions")
        for name in (*plain, "measured", "cut", "unknown"):
            value = getattr(self, name)
            object.__setattr__(self, name, _as_json(value, name))
        for name, thing in {"model": self.model, "corpus": self.corpus, **self.others}.items():
            if thing is not None and "fingerprint" not in thing:
                raise ParameterError(name, "Provenance", "hold a 'fingerprint'", sorted(thing))

    @cached_property
    def identity(self) -> str:
        """The same for the same study, parameters, model and corpus; nothing else matters."""
        # The model under a name or folder may change; its fingerprint identifies it.
        meant = {name: other["fingerprint"] for name, other in self.others.items()}
        made_of = {"results": self.results} if self.results else {}
        return identity_of(
            self.study,
            self.study_version,
            parameters=self.parameters | meant | self.ingredients | made_of,
            model=self.model["fingerprint"],
            corpus=None if self.corpus is None else self.corpus["fingerprint"],
        )

    @property
    def key(self) -> str:
        """`study/identity`, the address of the result in a store."""
        return f"{self.study}/{self.identity}"

    @property
    def model_name(self) -> str:
        """The model in words: `bertology-mini fine-tuned on mrpc (seed 0)`, or its short name."""
        name, origin = str(self.model.get("name")), self.model.get("tuned_from") or {}
        if not (origin.get("name") and origin.get("task")):
            return short_model(name)
        seed = re.fullmatch(r"seed[-_]?(\d+)", short(name))
        of = f" (seed {seed[1]})" if seed else ""
        return f"{short_model(str(origin['name']))} fine-tuned on {origin['task']}{of}"

    @property
    def corpus_name(self) -> str:
        """The corpus's name; empty where there is none."""
        return str((self.corpus or {}).get("name") or "")

    @property
    def about(self) -> str:
        """`bertology-mini on grammar`, for titles."""
        if self.corpus is None:
            return self.model_name
        split = self.corpus.get("split")
        data = self.corpus_name + (f" ({split})" if split not in (None, "validation") else "")
        if self.model_name.endswith(f" fine-tuned on {data}"):
            return self.model_name
        tuned = " fine-tuned on " in self.model_name
        return f"{self.model_name}{', over' if tuned else ' on'} {data}"

    @property
    def drawn_note(self) -> str:
        """`drawn at random from 1,725`, where the corpus has more examples than were used."""
        there = (self.corpus or {}).get("drawn_from")
        return "" if there is None else f"drawn at random from {there:,}"

    @property
    def labels_note(self) -> str:
        """`Labels (data = model, by name): good = positive, …`; empty where there are none."""
        found = (self.corpus or {}).get("labels")
        if not found:
            return ""
        told = ", ".join(f"{label} = {name}" for label, name in found["pairs"])
        return f"Labels (data = model, by {found['by']}): {told}"

    def cut_note(self, model: str | None = None) -> str:
        """A sentence for the reader where texts were cut, else nothing.

        `model` stands for the model's name, which may be a folder that does not belong on a page.
        """
        if self.cut is None or not self.cut["texts"]:
            return ""
        n, of = self.cut["texts"], self.cut["of"]
        kind = "pairs of texts" if (self.corpus or {}).get("pair") else "texts"
        most = f"the most that {model or self.model.get('name')} takes"
        return (
            f"{n:,} of {of:,} {kind} {'was' if n == 1 else 'were'} cut to {self.cut['tokens']:,} "
            f"tokens, {'as was asked' if self.cut.get('asked') else most}."
        )

    def unknown_note(self) -> str:
        """A warning where the tokenizer does not know much of the text, else nothing."""
        if self.unknown is None or not self.unknown["pieces"]:
            return ""
        share = self.unknown["pieces"] / max(self.unknown["of"], 1)
        if share <= MANY_UNKNOWN:
            return ""
        return (
            f"{100 * share:.1f} % of the text's pieces are {self.unknown['token']}: the model's "
            "tokenizer does not know them, so the model reads only the rest. The intervals do not "
            "show this."
        )

    def text_notes(self, model: str | None = None) -> list[str]:
        """What the reader must know of the texts: cut ones, unknown pieces; mostly empty."""
        return [note for note in (self.cut_note(model), self.unknown_note()) if note]

    def as_json(self) -> dict[str, object]:
        """All fields as plain JSON values; `from_json` gives an equal object."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Provenance:
        """Read what `as_json` wrote; raises TypeError where a needed field is missing."""
        known = {f.name for f in fields(cls)}
        return cls(**{name: value for name, value in record.items() if name in known})


def _as_json(value: object, name: str) -> object:
    try:
        return json.loads(json.dumps(value, allow_nan=False, default=_plain_scalar))
    except (TypeError, ValueError):
        raise ParameterError(
            name, "Provenance", "hold only plain JSON values (finite numbers, text, lists …)", value
        ) from None


def _plain_scalar(value: object) -> object:
    # numpy's scalars come in through parameters computed from arrays.
    if getattr(value, "ndim", None) == 0 and isinstance(value, _Scalar):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not a plain value")
