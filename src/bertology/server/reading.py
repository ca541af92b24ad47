"""One pass of the model over the shown text: its maps and its predictions, with changes applied."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bertology.errors import BertologyError, CapabilityError, ModelError
from bertology.server.sentences import Sentence, encode
from bertology.server.shown import Changes, Shown
from bertology.server.task_examples import is_about_pairs
from bertology.server.working import Kept, Worker

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.model.encoder import Encoder
    from bertology.model.interventions import Intervention
    from bertology.model.trace import Trace
    from bertology.train.records import TrainingRecord

Floats = NDArray[np.float32]
MAPS = "layer.*.head.*.pattern"
MEANS_OVER = 32
"""How many sentences of the bundled grammar a head's mean output is taken over."""
NEXT = ("follows", "does not follow")
"""The classes of a next-sentence head, as BERT numbers them."""
_PAIRS = ("nsp", "sop")  # the pairings of our recipes that have these classes
_ROOM = 64 * 2**20  # bytes of readings that are kept


@dataclass(frozen=True)
class Reading:
    """The result of one pass."""

    sentence: Sentence
    maps: Floats | None  # (layers, heads, queries, keys); NaN where a head was pruned
    hidden: Floats | None  # (masked, vocabulary) probabilities; None without such a head
    classes: tuple[float, ...] | None
    value: float | None

    @property
    def size(self) -> int:
        """About so many bytes."""
        arrays = (self.maps, self.hidden)
        return 4096 + sum(0 if a is None else a.nbytes for a in arrays)


class ModelReader:
    """Runs the model for all users of the page, in one thread; the last answers are kept."""

    def __init__(self, encoder: Encoder) -> None:
        encoder.require_tokenizer()
        self.encoder, self.worker = encoder, Worker()
        self._kept: Kept[Shown, Reading] = Kept(
            self.worker, self._read, size=lambda reading: reading.size, room=_ROOM
        )

    def begin(self, shown: Shown) -> Future[Reading]:
        """Start a reading, without waiting for it."""
        return self._kept.begin(shown)

    def read(self, shown: Shown) -> Reading:
        """Wait for a reading and return it."""
        return self._kept.get(shown)

    def maps(self, reading: Reading) -> Floats:
        """The maps of a reading; an error if the model does not give them."""
        if reading.maps is None:
            self.encoder.require("patterns")
        assert reading.maps is not None
        return reading.maps

    def close(self) -> None:
        """Stop the thread."""
        self.worker.close()

    # What the model can do -----------------------------------------------------------------------

    @cached_property
    def shows_maps(self) -> bool:
        """Whether the model gives attention maps."""
        return "patterns" in self.encoder.capabilities

    @cached_property
    def fills(self) -> bool:
        """Whether the model can predict masked words."""
        mask = self.encoder.tokenizer.mask_token_id
        return "masked-lm" in self.encoder.capabilities and mask is not None

    @cached_property
    def labels(self) -> tuple[str, ...] | None:
        """The names of the classes; None if there are none."""
        if self.encoder.head == "pretraining" and self._judges_pairs:
            return NEXT
        if self.encoder.head != "classification" or self.encoder.config.num_labels < 2:
            return None
        names = self.encoder.config.id2label
        return tuple(str(names[i]) for i in range(self.encoder.config.num_labels))

    @property
    def several_labels(self) -> bool:
        """Whether a text may have several classes at once, or none."""
        kind = getattr(self.encoder.config, "problem_type", None)
        return bool(kind == "multi_label_classification")

    @property
    def gives_value(self) -> bool:
        """Whether the answer is a number, as in regression."""
        return self.encoder.head == "classification" and self.encoder.config.num_labels == 1

    @cached_property
    def _judges_pairs(self) -> bool:
        head = getattr(getattr(self.encoder.model, "cls", None), "seq_relationship", None)
        return getattr(head, "out_features", 0) == len(NEXT) and _was_trained(self.encoder.name)

    @cached_property
    def takes_pairs(self) -> bool:
        """Whether it was fine-tuned on pairs of texts; known only for our own models."""
        is_classifier = self.encoder.head == "classification"
        return is_classifier and is_about_pairs(_record_of(self.encoder.name).get("task"))

    def check_answers(self) -> None:
        """Raise an error if the model has no head that predicts anything."""
        if not self.fills and self.labels is None and not self.gives_value:
            raise CapabilityError(
                f"{self.encoder.name!r} has neither a head for masked words nor a classifier, so "
                "it predicts nothing.",
                hint="Its maps can be seen. Fine-tune it with: bertology finetune MODEL TASK",
            )

    @cached_property
    def head_means(self) -> Tensor:
        """The mean output of each head. Called on the worker's thread only."""
        from bertology.data.loading import load_corpus

        return self.encoder.head_means(load_corpus("grammar", limit=MEANS_OVER).texts)

    # One pass ------------------------------------------------------------------------------------

    def _read(self, shown: Shown) -> Reading:
        from bertology.model.masked_lm.narrow_head import run_predicting

        sentence, batch = encode(self.encoder, shown)
        record = [MAPS] if self.shows_maps else []
        changes = self.interventions(shown.changes)
        hidden = None
        if self.fills:
            where = [sentence.masked]
            trace, logits = run_predicting(self.encoder, batch, where, record=record, do=changes)
            hidden = self._finite(logits[0].float().softmax(-1))
        else:
            trace = self.encoder.run(batch, record=record, do=changes)
        maps = trace[MAPS][:, 0].float().cpu().numpy() if self.shows_maps else None
        return Reading(
            sentence,
            maps,
            hidden,
            self._classes(trace, len(sentence.texts)),
            self._value(trace),
        )

    def interventions(self, changes: Changes) -> list[Intervention]:
        """What is switched off, as interventions for one run; they check what the model has."""
        from bertology.model.interventions import (
            MeanHead,
            SkipLayer,
            UniformAttention,
            ZeroDimensions,
            ZeroHead,
        )

        found: list[Intervention] = []
        if changes.heads and changes.how == "mean":
            found.append(MeanHead(changes.heads, self.head_means))
        elif changes.heads:
            kind = ZeroHead if changes.how == "zero" else UniformAttention
            found.append(kind(changes.heads))
        if changes.layers:
            found.append(SkipLayer(changes.layers))
        if changes.dimensions:
            found.append(ZeroDimensions(changes.dimensions))
        return found

    def _classes(self, trace: Trace, texts: int) -> tuple[float, ...] | None:
        if self.labels is None:
            return None
        if self.labels is NEXT:
            if texts == 1:
                return None  # the next-sentence head was trained on pairs only
            logits = trace.output.seq_relationship_logits
        else:
            logits = trace.output.logits
        scores = logits[0].float()
        shares = scores.sigmoid() if self.several_labels else scores.softmax(-1)
        return tuple(self._finite(shares).tolist())

    def _value(self, trace: Trace) -> float | None:
        return float(self._finite(trace.logits.float()).item()) if self.gives_value else None

    def _finite(self, answers: Tensor) -> Floats:
        found: Floats = answers.cpu().numpy()
        if not np.isfinite(found).all():
            raise ModelError(
                f"{self.encoder.name!r} answers with numbers that are not finite.",
                hint="Its weights may be broken, or what is off leaves nothing to compute with.",
            )
        return found

    def check_head(self, layer: int, head: int) -> None:
        """Raise an error if the model does not have this head."""
        from bertology.model.interventions import check_heads

        check_heads([(layer, head)], self.encoder, None)


def _was_trained(name: str) -> bool:
    """Whether a next-sentence head was trained: our own models say so in their record."""
    stages = _record_of(name).get("recipe", {}).get("stages", [])
    objectives = [stage.get("objective", {}) for stage in stages]
    told = [o for o in objectives if "sentence" in o.get("losses", []) and o["pairing"] in _PAIRS]
    return not objectives or bool(told)  # without a record: a BERT that others pre-trained


def _record_of(name: str) -> TrainingRecord:
    """The record of training that our own models carry; empty for other models."""
    from bertology.model.loading.names import locate
    from bertology.train.checkpoint import read_record

    try:
        return read_record(locate(name).source) or {}
    except BertologyError:
        return {}
