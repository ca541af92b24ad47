"""Models and corpora by name: loaded for a study, with notes on what the reader must know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from bertology.data.corpus import Corpus
from bertology.errors import CapabilityError, ModelError, ParameterError, UnknownNameError
from bertology.model.loading.names import DEFAULT_MODEL
from bertology.run.before import find_before
from bertology.run.others import resolve_others
from bertology.studies.study import Study

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder

Data = str | Path | Corpus | Sequence[str | tuple[str, str]]
"""The name of a corpus, its path, the corpus itself, or texts."""
_BODIES: WeakKeyDictionary[Encoder, tuple[object, Encoder]] = WeakKeyDictionary()


@dataclass(frozen=True)
class ModelSource:
    """A model by name, and how it may be loaded: the keywords of `Encoder.load`."""

    name: str = DEFAULT_MODEL
    device: str = "auto"
    num_labels: int | None = None
    dtype: str = "float32"
    allow_pickle: bool = False
    trust_remote_code: bool = False

    def load(self, head: str = "base") -> Encoder:
        """The model with this head."""
        from bertology.model.encoder import Encoder

        return Encoder.load(
            self.name,
            head=head,
            device=self.device,
            num_labels=self.num_labels,
            dtype=self.dtype,
            allow_pickle=self.allow_pickle,
            trust_remote_code=self.trust_remote_code,
        )

    def load_others(
        self, study: Study, encoder: Encoder, given: dict[str, Encoder]
    ) -> tuple[Study, dict[str, Encoder]]:
        """The other models that the study's parameters name, loaded under the same permissions.

        And the study, which then names the model before fine-tuning too.
        """
        allowed = {
            "allow_pickle": self.allow_pickle,
            "trust_remote_code": self.trust_remote_code,
        }
        study, known = find_before(study, encoder, given, **allowed)
        return study, resolve_others(study, encoder, known, **allowed)


LOADING = tuple(f.name for f in fields(ModelSource) if f.name != "name")
"""How a named model may be loaded: keywords of `bt.run`, which are those of `bt.load`."""


def resolve_corpus(
    given: Data,
    *,
    must_have_task: bool,
    labels: Mapping[str, str] | None = None,
    columns: Mapping[str, str] | None = None,
    **options: Any,
) -> Corpus:
    """The corpus itself, or one of some texts; a named one is loaded by `options` of `load_corpus`.

    `labels` are other names for its labels, such as those that the model has for them; `columns`
    say which column holds which field. Of what is loaded already, `limit` examples are drawn.
    """
    if not isinstance(columns, Mapping | None):
        must = "be a mapping of fields to columns, as {'text': 'review', 'label': 'stars'}"
        raise ParameterError("columns", "run", must, columns)
    if isinstance(given, str | Path):
        from bertology.data.loading import load_corpus

        given = load_corpus(given, **{**options, **(columns or {})})
    else:
        if not isinstance(given, Corpus):
            if must_have_task or not isinstance(given, list | tuple):
                raise ParameterError(
                    "task" if must_have_task else "corpus",
                    "run",
                    "be a name, a path or a Corpus"
                    + ("" if must_have_task else ", or a list of texts or of pairs of texts"),
                    type(given).__name__,
                )
            given = Corpus.of_texts(given)
        given = given.take(options.get("limit"))
    if must_have_task and given.task is None:
        raise CapabilityError(
            f"{given.name!r} has no task: it has {', '.join(sorted(given.fields))} and no label.",
            hint="Say which column holds the labels, as in label='gold' (--columns label=gold). "
            "A study that needs no labels takes it as corpus= (--corpus). See which corpora have "
            "a task with: bertology datasets",
        )
    return given.relabelled(labels) if labels else given


def notes_on(
    study: Study, encoder: Encoder, corpus: Corpus | None, labels: Mapping[str, object] | None
) -> Iterator[str]:
    """What makes the numbers of this run say less than they seem to."""
    head = study.needs.head
    if encoder.new_weights and head != "base":
        yield f"The {head} head has random weights: its scores are at chance level."
    origin = describe_model(encoder).get("tuned_from")
    learned = origin.get("task") if isinstance(origin, dict) else None
    if not study.needs.task or corpus is None or learned in (None, corpus.name):
        return
    # The names of two files do not say whether they are of one task; their labels do.
    if _is_listed(str(learned)) or labels is None or labels["by"] != "name":
        yield f"This model was fine-tuned for {learned}, not for {corpus.name}."


def _is_listed(name: str) -> bool:
    """Whether the catalogue has data of that name."""
    from bertology.data import catalog

    try:
        catalog.get(name)
    except UnknownNameError:
        return False
    return True


class Asked(NamedTuple):
    """Which data; None: another split of the others."""

    data: Corpus | str | Path | None
    split: str
    limit: int | None


def seen_and_unseen(train: Asked, held_out: Asked, **reading: Any) -> tuple[Corpus, Corpus]:
    """Two splits of one source, or two sources, each with a task."""
    from bertology.data.loading import load_split
    from bertology.train.encoded import learnable
    from bertology.train.tuning import check_apart

    if held_out.data is None:
        same = train.data
        other = load_split(same, held_out.split) if isinstance(same, Corpus) else same
        held_out = held_out._replace(data=other)
    seen, unseen = (
        resolve_corpus(data or "", must_have_task=True, split=split, limit=limit, **reading)
        for data, split, limit in (train, held_out)
    )
    for corpus in (seen, unseen):
        learnable(corpus)
    check_apart(seen, unseen)
    return seen, unseen


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


def describe_model(encoder: Encoder) -> dict[str, object]:
    """What a reader must know of the model. Only the fingerprint is part of a result's identity."""
    about = {
        "name": encoder.name,
        "fingerprint": encoder.fingerprint,
        "family": encoder.family.model_type,
        "shape": asdict(encoder.shape),
        "head": encoder.head,
        "parameters": encoder.parameters,
    }
    origin = _tuned_from(encoder.name)
    return about if origin is None else {**about, "tuned_from": origin}


def _tuned_from(name: str) -> dict[str, object] | None:
    """For a model that bertology fine-tuned: the model before fine-tuning, and the task."""
    from bertology.train.checkpoint import read_record

    try:
        record = read_record(name) or {}
    except ModelError:
        return None  # a damaged record is no reason to refuse the model
    base = record.get("base")
    if not isinstance(base, dict) or "fingerprint" not in base:
        return None
    return {
        "name": base.get("name"),
        "fingerprint": base["fingerprint"],
        "task": record.get("task"),
    }
