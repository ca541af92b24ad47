"""Attention explanations: does attention tell which words a classifier's answer hangs on?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bertology.arrays import Floats
from bertology.errors import CapabilityError, DataError, ParameterError
from bertology.model.attributions.method_names import TITLES
from bertology.parameters import drawn, parameter
from bertology.report import drawings
from bertology.report.figures import Dots
from bertology.results.answers import NOTHING_SURE, percent, points
from bertology.results.comparison import against_constant_answer
from bertology.results.drawing import Drawing
from bertology.results.number_text import number_text
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.stats.skewed_means import skewed_mean
from bertology.studies.attention.attention_explanations.scores import (
    NAMES,
    PLACES,
    RANDOM,
    SCORES,
    Explaining,
)
from bertology.studies.designs.blocks import Resampled
from bertology.studies.designs.parts import gather, start_of
from bertology.studies.designs.sweeps import NOT_INFORMED, class_order
from bertology.studies.designs.tables import labelled_table, with_bounds
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape
    from bertology.train.attention_adversary import AdversaryJob


OTHERS = {
    "permuted-last": "permuted: last layer, first token",
    "permuted-all": "permuted: all layers, all tokens",
    "found": "looked for, text by text",
    "trained": "of a model trained to differ",
}
"""Other attention than the model's own."""


class AttentionExplanationsResult(Result):
    """Methods beside random orders (table `methods`), and other attention (table `attention`).

    `methods` has a row for each score and method: the `mean` over examples, and the `gain` over
    random orders of the same words, turned so that above 0 is better; bounds and p-values of gains
    hold for all rows together. `attention` has a row for each kind of other attention: how far it
    is from the model's own (`divergence`, of the first token in the last layer, 0 to 1), how far
    the answer's probabilities are (`variation`, 0 to 1), and the share of answers that change.
    """

    @property
    def answer(self) -> str:
        """What words by attention are worth, and whether other attention gives the same answer."""
        found = self.evidence()
        if "attention_over_random" not in found:
            why = self.reasons().get("", "nothing was judged").removeprefix("not judged: ")
            return f"{NOTHING_SURE}: {why}."
        told = found["attention_over_random"]
        sure = (
            "surely matter more" if told.low > 0
            else "surely matter less" if told.high < 0
            else "do not surely matter more"
        )  # fmt: skip
        other = found["found_divergence"]
        return (
            f"Words by attention {sure} to the answer than words by chance: without them it loses "
            f"{points(told)} of its probability beyond what it loses without those (by integrated "
            f"gradients {points(found['integrated_over_random'])}). Other attention, "
            f"{percent(other)} as far from the model's own as can be, leaves the answer as it is."
        )

    def headline(self) -> str:
        """How good the classifier is, and how many words its texts have."""
        facts = self.facts
        return (
            f"{facts['task']}: accuracy {number_text(100 * float(facts['accuracy']), '.1f')} over "
            f"{facts['examples']} examples of {float(facts['words']):.0f} words in the mean; the "
            f"answer changes in {100 * float(facts['flips_without_all']):.0f} % when every word is "
            "left out"
        )

    def drawings(self) -> Sequence[Drawing]:
        """Methods beside each other; gains over random orders; other attention."""
        panels, names = self._panels("mean", level=None)
        panels_of_gains, names_of_gains = self._panels("gain", level=0.0)
        table = self.tables["attention"]
        labels = {
            "divergence": "divergence of attention (%)",
            "variation": "change of the answer's probabilities (%)",
            "changed": "answers that change (%)",
        }
        return [
            drawings.dots(
                "methods",
                panels,
                names,
                self.about,
                title="How faithful explanations are",
                caption="One row for each method, one panel for each score, means over examples "
                "with their intervals. The line is the mean of random orders of the same words. "
                "Comprehensiveness: what the answer loses without the top words, more is better. "
                "Sufficiency: what it loses by the top words alone; words erased until the answer "
                "flips: fewer are better. Agreement is Kendall's τ with leaving out single words.",
                reference=TITLES[RANDOM],
                note="Intervals over examples, each for itself.",
            ),
            drawings.dots(
                "gains",
                panels_of_gains,
                names_of_gains,
                self.about,
                title="Better than random orders of words",
                caption="For each method and score, by how much it is better than random orders of "
                "the same words: right of the dashed line is better, whatever the score. Intervals "
                "hold for all dots of the figure together.",
                note="Intervals hold for all methods and scores together.",
            ),
            drawings.dots(
                "attention",
                [Dots.of_columns(label, table, column) for column, label in labels.items()],
                [OTHERS[str(name)] for name in table["attention"]],
                self.about,
                title="Other attention than the model's own",
                caption="Other attention than the model's own: permuted, looked for text by text, "
                "or that of a model which was trained to differ. How far it is from the model's "
                "own, how far the answer's probabilities move, and how many answers change, in per "
                "cent. Far left in the last two panels and far right in the first: other "
                "attention, same answer.",
                note="Intervals over examples.",
            ),
        ]

    def _panels(self, column: str, *, level: float | None) -> tuple[list[Dots], list[str]]:
        table, panels, names = self.tables["methods"], list[Dots](), list[str]()
        if column == "gain":  # of random orders over themselves there is none
            table = table[table["method"] != RANDOM]
        for score in dict.fromkeys(table["score"]):
            rows, known = table[table["score"] == score], SCORES[str(score)]
            names = [TITLES[str(name)] for name in rows["method"]]
            unit = "" if known.whole else " (points)" if column == "gain" else " (%)"
            scale = 1.0 if known.whole else 100.0
            panels.append(
                Dots.of_columns(f"{known.title}{unit}", rows, column, scale=scale, level=level)
            )
        return panels, names


_ADVERSARY = "adversary"
_SINGLE = (
    "answer", "probability", "words", "flips", "found", "moved", "found_changed", "other_top",
)  # fmt: skip
_NOT_MEASURED = {
    "trained_less_than_found": "not judged: no model was trained to differ (--adversary)",
    "attention_rationales": "not judged: the corpus has no words that people marked (rationales)",
    "norms_over_attention": "not judged: what one word brings through adapters cannot be told",
}


@dataclass(frozen=True)
class AttentionExplanations(Resampled):
    """Does attention tell which words a classifier's answer hangs on?

    Method: seven methods say how much every word matters to the classifier's answer: attention of
    the last layer from the token that the classifier reads, the same over all layers, rollout,
    norm-based attention, gradient × input, integrated gradients, and leaving the word out. An order
    of words is judged by the probability that the answer loses without its top words
    (comprehensiveness) and with these alone (sufficiency), mean over six shares of the words; by
    how many words must go until the answer flips; by its rank correlation with leaving single words
    out; and, where people marked the words that decide (RATIONALES), by average precision and F1.
    Every score is set against random orders of the same words, text by text; bounds of the table
    hold for all methods and scores together.

    Then other attention: weights dealt out anew among tokens; attention that is looked for, text by
    text, as far from the model's own as can be while the answer stays (`tolerance`); and that of a
    copy which is trained to give the same answers with other attention (`adversary`).

    Source: Jain and Wallace (2019), Attention is not Explanation; Wiegreffe and Pinter (2019);
    Serrano and Smith (2019); DeYoung et al. (2020) for the scores; A Primer in BERTology. Limits:
    texts without some words are not what the classifier was trained on; comprehensiveness and
    leaving out share that flaw and so favour each other. The papers asked models with one layer of
    attention. Classifiers with adapters are not asked for norms. Claims are judged only where the
    classifier surely beats a constant answer.
    """

    version: ClassVar[int] = 4  # bounds follow Student's law where many values make a mean
    result_type: ClassVar[type[Result]] = AttentionExplanationsResult
    needs: ClassVar[Needs] = Needs(
        capabilities=frozenset({"patterns", "qkv", "residual"}),
        fields=frozenset({"text", "label"}),
        head="classification",
        task=True,
    )
    block: ClassVar[int] = 16
    block_on_gpu: ClassVar[int | None] = 128
    all_heads: ClassVar[bool] = True
    fills_gpu: ClassVar[bool] = True

    examples: int = drawn(200)
    erase: str = parameter(
        "hidden",
        "What becomes of a word that is left out: nobody attends to it, or it is [MASK].",
        choices=("hidden", "masked"),
    )
    orders: int = parameter(5, "Random orders of the words of each text.", minimum=1)
    path_steps: int = parameter(16, "Gradients along the path of integrated gradients.", minimum=2)
    permutations: int = parameter(5, "Permutations of the attention of each text.", minimum=1)
    search_steps: int = parameter(
        40, "Steps of the search for other attention with the same answer.", minimum=1
    )
    tolerance: float = parameter(
        0.01,
        "The most that the answer's probabilities may move under other attention.",
        minimum=1e-4,
        maximum=0.5,
    )
    adversary: int = parameter(
        0,
        "Train a copy to give the same answers with other attention, on so many texts; 0: none.",
        minimum=0,
    )
    train: str = parameter("", "Other data to train it on; if not given, those of the corpus.")
    train_split: str = parameter("train", "The split to train it on.")

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse what is no classifier, labels that it does not know, and lacking texts."""
        from bertology.model.attributions.answering import Eraser, check_classifier

        super().check(encoder, corpus)
        check_classifier(encoder)
        Eraser(encoder, self.erase)
        if corpus.task is not None and corpus.task.kind != "classification":
            raise CapabilityError(
                f"{corpus.task.name!r} is a {corpus.task.kind} task; answers are explained where "
                "they are classes."
            )
        class_order(encoder, corpus.task)
        if self.adversary == 1:
            raise ParameterError("adversary", "AttentionExplanations", "be 0, or at least 2", 1)
        if self.adversary:
            self._job(encoder, corpus)

    def ingredients(self, corpus: Corpus) -> dict[str, str]:
        """The texts that an adversary is trained on."""
        if not self.adversary:
            return {}
        return {"training_data": self._train(corpus).fingerprint}

    def _train(self, corpus: Corpus) -> Corpus:
        from bertology.data.loading import load_split

        return load_split(corpus, self.train_split, other=self.train, limit=self.adversary)

    def _job(self, encoder: Encoder, corpus: Corpus) -> AdversaryJob:
        from bertology.train.attention_adversary import AdversaryJob
        from bertology.train.starts import STARTS, default_rate
        from bertology.train.tuning import check_apart

        train = self._train(corpus)
        check_apart(train, corpus)
        rate = default_rate(STARTS["pretrained"], encoder.shape.hidden)
        return AdversaryJob(encoder, train, learning_rate=rate, seed=self.seed)

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """Blocks of examples, and the model that is trained to differ."""
        return [*super().parts(shape, corpus), *([_ADVERSARY] if self.adversary else [])]

    def plan(self, encoder: Encoder, corpus: Corpus) -> Sequence[str]:
        """The same, with blocks that suit the device."""
        found = [part for part in super().plan(encoder, corpus) if part != _ADVERSARY]
        return [*found, *([_ADVERSARY] if self.adversary else [])]

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """One step for each example; per cent of the training."""
        return 100 if part == _ADVERSARY else super().steps(part, shape, corpus)

    # Measuring -----------------------------------------------------------------------------------

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """Scores of every method by example, and what other attention does."""
        import xarray as xr

        if part == _ADVERSARY:
            return self._against(encoder, corpus, context)
        block, start = self.of_block(part, corpus), start_of(part)
        size = len(block)
        scores = np.full((size, len(NAMES), len(SCORES)), np.nan)
        single = {name: np.full(size, np.nan) for name in _SINGLE}
        permuted = np.full((size, len(PLACES), 3), np.nan)
        explaining = self._explaining(encoder, context)
        # Gradients hold a whole pass, and every text is read in many variants anyway.
        tokens = max(1, context.batch_tokens // 4)
        for batch in encoder.batches(block.texts, tokens_per_batch=tokens):
            at = list(batch.indices)
            numbers = [start + i for i in at]
            scores[at], known = explaining.scores(batch, [block[i] for i in at], numbers)
            permuted[at] = explaining.permuted(batch, known, numbers)
            for name, values in explaining.single(batch, known, numbers).items():
                single[name][at] = values
            # An answer that stays without any word tells nothing of which words must go.
            stays = [i for i in at if not single["flips"][i]]
            scores[stays, :, list(SCORES).index("erased")] = np.nan
            context.advance(len(at))
        order = class_order(encoder, corpus.task)
        labels = [order[int(label)] for label in block.labels]
        return xr.Dataset(
            {
                "scores": (("example", "method", "score"), scores),
                "permuted": (("example", "place", "what"), permuted),
                "label": ("example", np.asarray(labels, float)),
                **{name: ("example", values) for name, values in single.items()},
            },
            coords={"method": list(NAMES), "score": list(SCORES), "place": list(PLACES)},
            attrs={"task": corpus.task.name if corpus.task else corpus.name},
        )

    def _explaining(self, encoder: Encoder, context: Context) -> Explaining:
        return Explaining(
            encoder,
            erase=self.erase,
            orders=self.orders,
            path_steps=self.path_steps,
            permutations=self.permutations,
            search_steps=self.search_steps,
            tolerance=self.tolerance,
            seed=self.seed,
            tokens=context.batch_tokens,
        )

    def _against(self, encoder: Encoder, corpus: Corpus, context: Context) -> xr.Dataset:
        """Train the adversary, or find it trained, and compare it on all examples."""
        import xarray as xr

        from bertology.model.attributions.other_attention import find_attention
        from bertology.studies.designs.trials import reaching
        from bertology.train.attention_adversary import attention_adversary, how_far_apart

        reach = reaching(context)
        job = self._job(encoder, corpus)
        rival = attention_adversary(
            job, folder=context.trained, tell=lambda done: reach(int(95 * done))
        )
        texts = self.shown(corpus).texts
        names = ("divergence", "variation", "changed", "found_as_near")
        found = {name: np.full(len(texts), np.nan) for name in names}
        for batch in encoder.batches(texts, tokens_per_batch=max(1, context.batch_tokens // 4)):
            apart = how_far_apart(encoder, rival, batch)
            at = list(batch.indices)
            # The search may move each answer as far as the trained model did: a fair comparison.
            near = find_attention(
                encoder,
                batch,
                steps=self.search_steps,
                tolerance=apart.variation.clamp_min(self.tolerance),
                seeds=[self.seed * 10**6 + number for number in at],
            )
            told = (apart.divergence, apart.variation, ~apart.same, near.divergence)
            for name, values in zip(found, told, strict=True):
                found[name][at] = values.double().cpu().numpy()
        reach(100)
        return xr.Dataset({name: ("example", values) for name, values in found.items()})

    # Concluding ----------------------------------------------------------------------------------

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Means, gains over random orders, other attention, and what claims are judged on."""
        blocks = {name: measured[name] for name in measured if name != _ADVERSARY}
        trained = measured.get(_ADVERSARY)
        seen = gather(blocks, concatenate=("scores", "permuted", "label", *_SINGLE))
        if np.isfinite(seen["scores"][:, 0, 0]).sum() < 2:
            raise DataError("Fewer than two texts have two words or more: nothing can be ranked.")
        informed = against_constant_answer(seen["answer"], seen["label"], classes=True) > 0
        tables = {
            "methods": self._methods(seen["scores"]),
            "attention": self._attention(seen, trained),
        }
        evidence = self._evidence(seen, trained) if informed else {}
        lacking = {name: why for name, why in _NOT_MEASURED.items() if evidence.get(name) is None}
        if "norms" in set(tables["methods"]["method"]):
            lacking.pop("norms_over_attention", None)
        return self.result(
            provenance,
            tables,
            evidence=evidence,
            reasons=lacking if informed else {"": NOT_INFORMED},
            facts={
                "task": seen.facts["task"],
                "examples": len(seen["label"]),
                "accuracy": float((seen["answer"] == seen["label"]).mean()),
                "words": float(seen["words"].mean()),
                "flips_without_all": float(seen["flips"].mean()),
                "erase": self.erase,
            },
        )

    def _methods(self, scores: Floats) -> pd.DataFrame:
        """A row for each score and method; those that no example has are left out."""
        import pandas as pd

        there = [s for s in range(len(SCORES)) if np.isfinite(scores[:, -1, s]).sum() > 1]
        asked = [m for m in range(len(NAMES)) if np.isfinite(scores[:, m]).any()]
        rows = scores[:, asked][:, :, there].transpose(2, 1, 0)  # (score, method, example)
        signs = np.array([list(SCORES.values())[s].better for s in there])[:, None, None]
        gains = signs * (rows - rows[:, -1:])
        flat = gains[:, :-1].reshape(-1, gains.shape[-1])
        own = self.means(rows.reshape(-1, rows.shape[-1]))
        better = self.means(flat)
        table = labelled_table(
            {"score": [list(SCORES)[s] for s in there], "method": [NAMES[m] for m in asked]},
            {"mean": own.value, "mean_low": own.low, "mean_high": own.high, "examples": own.n},
        )
        columns = pd.DataFrame(with_bounds("gain", better))
        return table.join(columns.set_axis(table.index[table["method"] != RANDOM]))

    def _attention(self, seen: Any, trained: xr.Dataset | None) -> pd.DataFrame:
        """A row for each kind of other attention."""
        import pandas as pd

        of = {place: seen["permuted"][:, at].T for at, place in enumerate(PLACES)}
        of["found"] = np.stack([seen[name] for name in ("found", "moved", "found_changed")])
        if trained is not None:
            names = ("divergence", "variation", "changed")
            of["trained"] = np.stack([trained[name].to_numpy() for name in names])
        rows = []
        for name in OTHERS:
            if name not in of:
                continue
            means = self.means(of[name], within=(0.0, 1.0))
            row: dict[str, object] = {"attention": name}
            for at, what in enumerate(("divergence", "variation", "changed")):
                row |= {what: means.value[at], f"{what}_low": means.low[at]}
                row[f"{what}_high"] = means.high[at]
            row["other_top"] = float(seen["other_top"].mean()) if name == "found" else np.nan
            rows.append(row)
        return pd.DataFrame(rows)

    def _evidence(self, seen: Any, trained: xr.Dataset | None) -> dict[str, Estimate | None]:
        """Comparisons that were chosen before looking, each with its own interval."""

        def of(score: str, method: str) -> Floats:
            values: Floats = seen["scores"][:, NAMES.index(method), list(SCORES).index(score)]
            return values

        def one(values: Floats, within: tuple[float, float] = (-1.0, 1.0)) -> Estimate | None:
            return skewed_mean(values, self.level, within=within)

        def apart(score: str, first: str, second: str) -> Estimate | None:
            widest = 2.0 if SCORES[score].whole else 1.0
            return one(of(score, first) - of(score, second), (-widest, widest))

        found = {
            "attention_over_random": apart("comprehensiveness", "attention", RANDOM),
            "integrated_over_random": apart("comprehensiveness", "integrated-gradients", RANDOM),
            "norms_over_attention": apart("comprehensiveness", "norms", "attention"),
            "attention_less_gradients_tau": apart("tau_size", "attention", "gradient-x-input"),
            "attention_erased_over_gradients": apart("erased", "attention", "gradient-x-input"),
            "attention_erased_over_random": apart("erased", "attention", RANDOM),
            "permuted_variation": one(seen["permuted"][:, 0, 1], (0.0, 1.0)),
            "permuted_all_variation": one(seen["permuted"][:, 1, 1], (0.0, 1.0)),
            "found_divergence": one(seen["found"], (0.0, 1.0)),
            "attention_rationales": apart("precision", "attention", RANDOM),
        }
        if trained is not None:
            far = trained["divergence"].to_numpy()
            found["trained_divergence"] = one(far, (0.0, 1.0))
            found["trained_agreement"] = one(1 - trained["changed"].to_numpy(), (0.0, 1.0))
            found["trained_less_than_found"] = one(far - trained["found_as_near"].to_numpy())
        return found
