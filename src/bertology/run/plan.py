"""Jobs as plain data, so that any process on any machine can do them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from importlib import import_module
from typing import TypedDict

from bertology.errors import CapabilityError
from bertology.studies.study import Study


class ModelReference(TypedDict):
    """How another process loads a model, and checks that it is the same."""

    model: Mapping[str, object] | None  # keywords of Encoder.load; None: it lives in memory only
    model_fingerprint: str


class StoreReference(TypedDict):
    """How another process opens a store."""

    url: str
    options: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Resources:
    """What one job needs of its machine; an engine must not start more than fits."""

    cpus: int = 1
    gpus: int = 0
    memory: int | None = None  # bytes


@dataclass(frozen=True, slots=True)
class Job:
    """One part of one study on one model and corpus.

    Pure data and a pure function: the same model, corpus and parameters give the same numbers,
    in every process, so a job may be run again and its part of the result may be stored.
    """

    study: str  # its name for users
    target: str  # "module:Class", how another process finds it
    version: int  # of what is measured
    parameters: Mapping[str, object]  # those that measuring reads
    part: str
    measurement: str  # key of the measurement that this is a part of
    model: Mapping[str, object] | None  # see `ModelReference`
    model_fingerprint: str
    corpus: Mapping[str, object] | None  # keywords of load_corpus
    corpus_fingerprint: str | None
    store: StoreReference | None
    others: Mapping[str, ModelReference] = field(default_factory=dict)
    """Further models, by the parameter that names them."""
    steps: int = 1
    batch_tokens: int = 4096
    resources: Resources = field(default_factory=Resources)

    @property
    def identity(self) -> str:
        """A hash of all that can change the numbers, and of nothing else."""
        what = [
            self.study,
            self.version,
            self.parameters,
            self.model_fingerprint,
            self.corpus_fingerprint,
            self.part,
            *[[name, o["model_fingerprint"]] for name, o in sorted(self.others.items())],
        ]
        return sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Job:
        """Read back what `to_json` wrote."""
        data = json.loads(text)
        return cls(**{**data, "resources": Resources(**data["resources"])})

    def make_study(self) -> Study:
        """The study with this job's parameters; those that only conclude cannot be read."""
        module, _, name = self.target.partition(":")
        return study_from(getattr(import_module(module), name), self.parameters).measuring()

    def check_shippable(self) -> None:
        """Refuse to send to another process what exists only in the memory of this one."""
        named = {f"The model of {name!r}": other["model"] for name, other in self.others.items()}
        for what, model in {"The model": self.model, **named}.items():
            if model is None:
                raise CapabilityError(
                    f"{what} was made in memory, so another process cannot load it.",
                    hint="Save it with encoder.model.save_pretrained(folder) (and its tokenizer), "
                    "then load it with bt.load(folder); or use workers=1.",
                )
        if self.corpus_fingerprint is not None and not _is_plain(self.corpus):
            raise CapabilityError(
                "The corpus was made in memory, so another process cannot load it.",
                hint="Load it with bt.load_corpus(…), or use workers=1.",
            )
        if self.store is None:
            raise CapabilityError(
                "A store in memory cannot be used by other processes.",
                hint="Give a folder or an object store, such as store='results' or store='s3://…'.",
            )
        if self.target.startswith("__main__:") or "<locals>" in self.target:
            raise CapabilityError(
                f"Study {self.study!r} is defined in a script or notebook, where another process "
                "cannot find it.",
                hint="Move its class into a module that can be imported, or use workers=1.",
            )


def _is_plain(origin: Mapping[str, object] | None) -> bool:
    try:
        json.dumps(origin)
    except TypeError:  # loaded with an object, such as a Task that the user made
        return False
    return origin is not None and "name_or_path" in origin


def target_of(study: type[Study]) -> str:
    """Where a study's class is found: `module:Class`."""
    return f"{study.__module__}:{study.__qualname__}"


def study_from(kind: type[Study], parameters: Mapping[str, object]) -> Study:
    """A study from parameters that were read from JSON, which has lists but no tuples."""
    return kind(**{name: as_tuples(value) for name, value in parameters.items()})


def as_tuples(value: object) -> object:
    """A value that was read from JSON, with tuples in place of its lists."""
    return tuple(as_tuples(v) for v in value) if isinstance(value, list) else value
