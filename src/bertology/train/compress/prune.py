"""Layers, MLPs, heads or single weights go as far as the score allows, as in `bertology prune`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

from bertology.data.corpus import Corpus
from bertology.model.encoder import Encoder
from bertology.model.weight_masks import WeightMask, survival, weights_held_at_zero
from bertology.train.answers import in_order
from bertology.train.checkpoint import described
from bertology.train.compress.method import SHAPE, ZEROS, Method, epochs_text
from bertology.train.compress.work import Work
from bertology.train.encoded import task_of
from bertology.train.prune import Progress, Shrunk, shrink
from bertology.train.prune_judge import Judge, PruneData, learned_texts, split_training
from bertology.train.prune_settings import THINNING, PruneSettings
from bertology.train.prune_weights import shrink_by_magnitude, shrink_by_movement

_SLOWER = 0.5  # than a fine-tuning: the model knows the task already
_CHOSEN = {
    "measured": "Layers and MLPs were ranked by how far the answers move without each of them, "
    "heads by the mean size of the gradients of their gates (Michel et al., 2019)",
    "importance": "Heads and MLPs were ranked by the mean size of the gradients of their gates "
    "(Michel et al., 2019; those of heads divided by their length in each layer), and anew after "
    "each cut of a tenth of all heads and one MLP (Prasanna et al., 2020)",
    "magnitude": "The weights of the smallest size went, over all matrices together",
    "movement": "Weights went that a training moved towards zero (movement pruning, Sanh et al., "
    "2020): as many in each matrix, first fast, then slowly",
}


@dataclass(frozen=True, kw_only=True)
class Prune(PruneSettings, Method):
    """Some training examples rank what may go, others say how much of it; a training may follow.

    It is what `bertology prune` does, with the same options.
    """

    summary: ClassVar[str] = "what costs least is cut, as far as the score allows"

    @property
    def kind(self) -> str:
        """A smaller model, or zeros, which another training would fill."""
        return ZEROS if self.method in THINNING else SHAPE

    @property
    def begins(self) -> bool:
        """What may be lost is lost against the original."""
        return True

    def apply(self, work: Work) -> Encoder:
        """Rank, cut, and train what is left."""
        data = split_training(
            work.data or work.train,
            seed=work.seed,
            limit=self.limit,
            learned=learned_texts(work.teacher.name),
            method=self.method,
        )
        work.watch.tell(_uses(data))
        training = data.training.take(self.recover_limit, seed=work.seed)
        training = in_order(work.teacher, training)
        found = self._shrunk(work, data, training)
        if self.recover:
            work.watch.tell(f"training what is left on {len(training):,} examples")
            mask = found.mask
            work.train_on(
                found.encoder,
                epochs=self.recover,
                rate=_SLOWER * work.recipe(found.encoder).learning_rate,
                on=training,
                held=lambda model: nullcontext() if mask is None
                else weights_held_at_zero(model, mask),
            )  # fmt: skip
        work.found |= {
            "settings": {f.name: getattr(self, f.name) for f in fields(PruneSettings)},
            "cut": asdict(found.cut),
            "ranking": None if data.ranking is None else described(data.ranking),
            "selection": described(data.selection),
            "training": len(training),
            "seen": data.seen,
            "allowed": found.allowed,
            "selection_scores": [found.intact, found.score],
            "tried": found.tried,
            **({} if found.mask is None else _weights(found.encoder, found.mask)),
        }
        metric = task_of(data.selection).metrics[0]
        work.notes += [*_gone(found, work.found), *self._told(found, data, metric)]
        return found.encoder

    def _shrunk(self, work: Work, data: PruneData, training: Corpus) -> Shrunk:
        """The smaller model, by the method that was asked for."""
        progress = Progress(work.folder and work.folder / "cuts.json")
        tell, most = work.watch.tell, work.batch_tokens
        if data.ranking is not None:
            return shrink(
                work.encoder, data.ranking, data.selection, self,
                progress=progress, tell=tell, batch_tokens=most,
            )  # fmt: skip
        judge = Judge(work.encoder, data.selection, self, tell, most)
        if self.method == "magnitude":
            return shrink_by_magnitude(judge, progress)
        return shrink_by_movement(work, training, judge, progress)

    def _told(self, found: Shrunk, data: PruneData, metric: str) -> Iterator[str]:
        """By what was chosen what went, and how much of it."""
        on = "" if data.ranking is None else f", on {len(data.ranking):,} training examples"
        yield f"{_CHOSEN[self.method]}{on}."
        examples = f"{len(data.selection):,} {'other ' if on else ''}training examples"
        scores = f"from {found.intact:.4f} to {found.score:.4f}"
        if found.allowed is None:
            yield (
                f"How many stay was given ({self.weights:g} of all). On {examples}, which decided "
                f"nothing, {metric} went {scores}."
            )
        else:
            models = "1 model was" if found.tried == 1 else f"{found.tried} models were"
            yield (
                f"Cuts were made as long as the loss of {metric}, and its standard error, were at "
                f"most {found.allowed:.3g} points on {examples} ({scores}; {models} tried)."
            )
        if self.keep is not None:
            yield (
                f"{100 * self.keep:g} % of the score were to be kept, and at least half of what "
                "the model is better than a constant answer."
            )
        if data.seen:
            yield "As far as is known, the model was trained on the examples that decided."
        if self.method == "movement":
            yield (
                f"The training took {epochs_text(self.trained)} on examples that decided nothing, "
                "from the weights of the model before; so what changed is due to both, more "
                "training and fewer weights."
            )
        elif self.recover:
            held = "" if found.mask is None else ", with zeros held at zero"
            yield f"What was left then trained at half the rate{held}; nothing was chosen by it."
        else:
            yield "Nothing was trained after the cut."


def _uses(data: PruneData) -> str:
    """What each training example is for, in words."""
    known = "the model may have been trained on them" if data.seen else "it was not trained on them"
    if data.ranking is None:
        return f"{len(data.selection):,} of them say how much may go ({known})"
    return (
        f"{len(data.ranking):,} of them rank parts, {len(data.selection):,} others say how much "
        f"may go ({known})"
    )


def _weights(encoder: Encoder, mask: WeightMask) -> dict[str, Any]:
    """How many single weights are left."""
    kinds: dict[str, list[int]] = {}
    for row in filter(lambda row: row.size, survival(encoder, mask)):
        sums = kinds.setdefault(row.kind, [0, 0])
        sums[0] += row.kept
        sums[1] += row.size
    return {
        "weights": {"kept": mask.kept, "of": mask.size, "by_kind": kinds},
        "mask": mask.digest,
    }


def _gone(found: Shrunk, numbers: Mapping[str, Any]) -> Iterator[str]:
    """What was cut, part by part."""
    if found.mask is None:
        rows = {
            "layers": ", ".join(str(i) for i in found.cut.layers),
            "heads": ", ".join(f"{i}.{h}" for i, h in found.cut.heads),
            "MLPs": ", ".join(str(i) for i in found.cut.mlps),
        }
        told = "; ".join(f"{part} {which or '(none)'}" for part, which in rows.items())
        yield f"Cut, by their numbers in the original, from 0: {told}."
        return
    weights = numbers["weights"]
    every = {f"`{kind}`": counts for kind, counts in weights["by_kind"].items()}
    every["all"] = weights["kept"], weights["of"]
    told = "; ".join(f"{k} {n:,} of {of:,} ({100 * n / of:.1f} %)" for k, (n, of) in every.items())
    yield (
        f"Weights that are left: {told}. Embeddings, biases, LayerNorms, and what is not named "
        "here, are whole."
    )
    yield (
        "The weights that are gone are zeros in the file: it gets smaller only when it is packed "
        "(gzip, quickest level). Matrices are multiplied as a whole, zeros and all, so the model "
        "is not faster: where speeds differ, it is by chance. Only software for sparse matrices "
        "gains from zeros."
    )
