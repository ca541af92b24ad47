"""Models and corpora by name: loaded for a study, with notes on what the reader must know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertology.data.corpus import Corpus
from bertology.errors import CapabilityError, ParameterError, UnknownNameError
from bertology.model.loading.names import DEFAULT_MODEL
from bertology.run.before import find_before
from bertology.run.model_description import describe_model
from bertology.run.others import resolve_others
from bertology.run.requirements import label_match
from bertology.studies.study import Study

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder

Data = str | Path | Corpus | Sequence[str | tuple[str, str]]
"""The name of a corpus, its path, the corpus itself, or texts."""


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
            given = _of_texts(given, must_have_task)
        given = given.take(options.get("limit"))
    if must_have_task and given.task is None:
        raise CapabilityError(
            f"{given.name!r} has no task: it has {', '.join(sorted(given.fields))} and no label.",
            hint="Say which column holds the labels, as in label='gold' (--columns label=gold). "
            "A study that needs no labels takes it as corpus= (--corpus). See which corpora have "
            "a task with: bertology datasets",
        )
    return given.relabelled(labels) if labels else given


def _of_texts(given: object, must_have_task: bool) -> Corpus:
    if must_have_task or not isinstance(given, list | tuple):
        raise ParameterError(
            "task" if must_have_task else "corpus",
            "run",
            "be a name, a path or a Corpus"
            + ("" if must_have_task else ", or a list of texts or of pairs of texts"),
            type(given).__name__,
        )
    return Corpus.of_texts(given)


def notes_on(study: Study, encoder: Encoder, corpus: Corpus | None) -> Iterator[str]:
    """What makes the numbers of this run say less than they seem to."""
    head = study.needs.head
    if encoder.new_weights and head != "base":
        yield f"The {head} head has random weights: its scores are at chance level."
    origin = describe_model(encoder).get("tuned_from")
    learned = origin.get("task") if isinstance(origin, dict) else None
    if not study.needs.task or corpus is None or learned in (None, corpus.name):
        return
    # The names of two files do not say whether they are of one task; their labels do.
    if _is_listed(str(learned)) or not _same_labels(study, encoder, corpus):
        yield f"This model was fine-tuned for {learned}, not for {corpus.name}."


def _same_labels(study: Study, encoder: Encoder, corpus: Corpus) -> bool:
    match = label_match(study, encoder, corpus)
    return match is not None and match["by"] == "name"


def _is_listed(name: str) -> bool:
    """Whether the catalogue has data of that name."""
    from bertology.data import catalog

    try:
        catalog.get(name)
    except UnknownNameError:
        return False
    return True
