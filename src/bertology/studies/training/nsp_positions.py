"""NSP positions: is it next-sentence prediction that makes words depend on sentence position?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from bertology.errors import ParameterError
from bertology.parameters import parameter
from bertology.report import drawings
from bertology.report.figures import Band
from bertology.results.answers import NOTHING_SURE, points
from bertology.results.drawing import Drawing
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate, repeated
from bertology.studies.designs.position_scores import moved_scores
from bertology.studies.designs.trials import Runs, split_part
from bertology.studies.training.shared import NONE, PretrainingTrials, PretrainingTrialsResult

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.studies.training.shared import Found
    from bertology.train.pretrain.config import Pretraining
    from bertology.train.pretrain.trial import Trial

NSP, SAME_ROWS, NO_PAIRS = "mlm-nsp", "no-sentence-loss", "no-nsp"
_CONTRASTS = {"nsp": (NSP, SAME_ROWS), "nsp_over_no_pairs": (NSP, NO_PAIRS)}
_SHIFTS = ("position_shift", "place_shift", "segment_shift")
_TOLD = {
    "position_shift": "shift by sentence position (% of the spread)",
    "place_shift": "by places alone (%)",
    "segment_shift": "by segments alone (%)",
    "position_told": "first or second told from the state (%)",
    "sentence_accuracy": "next sentence told (%)",
    "mlm_accuracy": "masked-token accuracy (%)",
}


class NspPositionsResult(PretrainingTrialsResult):
    """How far words move with the position of their sentence, by pre-training objective.

    Tables: `objectives` (one row for each objective and measure: means over seeds, and differences
    to `mlm-nsp`, paired by seed), `layers` (the shift by layer; -1 is what enters the first), and
    `runs`. All shifts are squared, shares of the spread of all words' states, and beyond what
    another neighbour sentence does.
    """

    @property
    def answer(self) -> str:
        """What the loss of next sentences adds to the shift in the last layer."""
        found = self.evidence().get("nsp_position_shift")
        if found is None:
            why = self.reasons().get("nsp_position_shift", "not measured")
            return f"{NOTHING_SURE} of what next-sentence prediction does: {why}."
        what = (
            "next-sentence prediction changes the shift of words by the position of their sentence "
            f"by {points(found)} of the spread, against the same rows without its loss"
        )
        return f"Surely: {what}." if found.excludes(0) else f"{NOTHING_SURE}: {what}."

    def headline(self) -> str:
        """How many runs there are."""
        return f"{int(self.facts['seeds'])} seeds; differences are to {self.facts['reference']}"

    def drawings(self) -> Sequence[Drawing]:
        """All measures by objective, and the shift by layer."""
        seeds, table = int(self.facts["seeds"]), self.tables["layers"]
        about = f"trained on {self.provenance.corpus_name}"
        return [
            self.dots(
                "objectives",
                "What pre-training objectives do to words in first and second sentences",
                _TOLD,
                "One row for each pre-training objective: with next-sentence prediction, with the "
                "same rows without its loss, and without pairs. Dots are means over seeds with "
                "their intervals. Shifts are squared, in per cent of the spread of all words' "
                "states in the last layer, beyond what another neighbour sentence does.",
                about=about,
                reference=str(self.facts["reference"]),
            ),
            drawings.curve(
                "layers",
                [
                    Band.of_columns(str(name), rows, "position")
                    for name, rows in table[table["layer"] >= 0].groupby("objective", sort=False)
                ],
                None,
                about,
                title="Shift of words by sentence position",
                label="% of the spread",
                xlabel="layer",
                note=f"Layers are numbered from 0. Bands: intervals over {seeds} seeds.",
                caption="The squared shift of words by the position of their sentence after each "
                "layer, in per cent of the spread of all words' states, for models with and "
                f"without next-sentence prediction. Bands are intervals over {seeds} seeds.",
            ),
        ]


@dataclass(frozen=True)
class NspPositions(PretrainingTrials):
    """Is it next-sentence prediction that makes words depend on the position of their sentence?

    Method: small BERTs are trained from scratch on the corpus, with the vocabulary of the model
    that is given: with BERT's next-sentence prediction (`mlm-nsp`), on the same rows without its
    loss (`no-sentence-loss`), and on rows without pairs (`no-nsp`), each with several seeds. In
    each model sentences are moved from first to second place of a pair, as in `sentence-position`:
    squared shifts of the last states, beyond another neighbour, as shares of the spread of all
    words. The claim rests on the difference between the first two, paired by seed, with Student's
    interval. It is judged only where the first surely tells next sentences from others.

    Source: Mickus et al. (2019), as A Primer in BERTology (section 3) tells it ("likely due to NSP
    objective"). Limits: small models on little text say little about large ones. Without pairs a
    model never sees a second segment, so that its segment vector is what it was at the start.
    Examples in a row make documents; sentences that do not follow each other teach no NSP.
    """

    version: ClassVar[int] = 2
    result_type: ClassVar[type[Result]] = NspPositionsResult
    column: ClassVar[str] = "objective"
    reference: ClassVar[str] = NSP
    told: ClassVar[Mapping[str, str]] = _TOLD

    objectives: tuple[str, ...] = parameter(
        (NSP, SAME_ROWS, NO_PAIRS), "Objectives to compare: mlm-nsp and others of these three."
    )
    sentences: int = parameter(200, "Sentences that are moved in each model.", minimum=8)
    words: int = parameter(6, "At most so many words of each sentence.", minimum=1)
    pairs: str = parameter(NONE, "Corpus of minimal pairs, or none.")
    finetune: str = parameter(NONE, "Corpus to fine-tune on, or none.")

    def __post_init__(self) -> None:
        super().__post_init__()
        known = (NSP, SAME_ROWS, NO_PAIRS)
        if NSP not in self.objectives or not set(self.objectives) <= set(known):
            must = f"hold {NSP}, and otherwise {SAME_ROWS} or {NO_PAIRS}"
            raise ParameterError("objectives", "NspPositions", must, list(self.objectives))
        if self.hidden % self.heads:
            must = f"be a multiple of heads ({self.heads})"
            raise ParameterError("hidden", "NspPositions", must, self.hidden)

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Also sentences that can be moved, which would else be missed after training."""
        from bertology.annotated import moved_sentences as moved

        super().check(encoder, corpus)
        text = self.moved_text(corpus)
        moved.drawn_sentences(encoder, text, moved.FEWEST, seed=0, length=self.length)

    @property
    def variants(self) -> Sequence[str]:
        """The objectives."""
        return self.objectives

    def more(
        self, encoder: Encoder, corpus: Corpus, trial: Trial, *, variant: str, recipe: Pretraining
    ) -> Found:
        """The shifts of one model, and whether it tells next sentences."""
        from bertology.annotated import moved_sentences as moved
        from bertology.model.encoder import Encoder as Reader
        from bertology.train.pretrain.evaluate import evaluate_mlm

        # The same sentences and neighbours for all models of a seed, so that differences are
        # paired, and others for each seed, so that intervals tell of other sentences, too.
        tokenizer = encoder.tokenizer
        trained = Reader(trial.model, tokenizer, head="pretraining", name="trial")
        text, count = self.moved_text(corpus), moved.pool_size(self.sentences)
        pool = moved.drawn_sentences(trained, text, count, seed=recipe.seed)
        words = moved.moved_words(
            trained,
            pool[: self.sentences],
            pool,
            words=self.words,
            seed=recipe.seed,
            batch_tokens=16384,
        )
        scores = moved_scores(words)
        spread = scores["spread"].mean(1)
        by_layer = scores["position"].mean(1) / np.maximum(spread, 1e-300)
        found: dict[str, float] = {
            f"{name}_shift": float(scores[name][-1].mean() / max(spread[-1], 1e-300))
            for name in ("position", "place", "segment")
        }
        found["position_told"] = float(np.nanmean(scores["told"][-1]))
        found["sentence_accuracy"] = float("nan")
        if variant == NSP:
            judged = evaluate_mlm(
                trial.model, self.text(encoder, corpus), length=self.length, pairing="nsp"
            )
            found["sentence_accuracy"] = judged["sentence_accuracy"]
        return {**found, "position_by_layer": ("depth", by_layer)}

    def moved_text(self, corpus: Corpus) -> Corpus:
        """The text whose sentences are moved."""
        return corpus

    # The conclusion ----------------------------------------------------------------------------

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Means over seeds, and what the loss of next sentences adds."""
        needs = {
            f"{quantity}_{shift}": {
                "mlm_accuracy": pair,
                "sentence_accuracy": [NSP],
            }
            for quantity, pair in _CONTRASTS.items()
            for shift in _SHIFTS
        }
        return self.judged(
            provenance,
            self.runs(measured),
            evidence=_differences,
            needs=needs,
            tables={"layers": self._layers(measured)},
        )

    def runs(self, measured: Mapping[str, xr.Dataset]) -> Runs:
        """All runs; shares end where they must."""
        runs = super().runs(measured)
        shares = dict.fromkeys(("sentence_accuracy", "position_told"), (0.0, 1.0))
        return replace(runs, limits={**runs.limits, **shares})

    def _layers(self, measured: Mapping[str, xr.Dataset]) -> pd.DataFrame:
        import pandas as pd

        rows = []
        for name in self.objectives:
            curves = np.stack(
                [
                    part["position_by_layer"].to_numpy()
                    for at, part in measured.items()
                    if split_part(at)[0] == name
                ]
            )
            for depth, values in enumerate(curves.T):
                e = repeated(values, self.level)
                bounds = {"position": e.value, "low": e.low, "high": e.high}
                rows.append({"objective": name, "layer": depth - 1, **bounds})
        return pd.DataFrame(rows)


def _differences(runs: Runs) -> dict[str, Estimate | None]:
    """What next-sentence prediction adds to each shift."""
    found: dict[str, Estimate | None] = {}
    for shift in _SHIFTS:
        found |= runs.contrasts(shift, _CONTRASTS, ending=f"_{shift}")
    return found
