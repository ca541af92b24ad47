"""Numeracy: are the values of numbers in the states, and also of numbers larger than any learnt?"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from bertology.annotated.numbers import DEV, FAR, NEAR, PIECES, TRAIN, WRITINGS, Numbers
from bertology.errors import DataError
from bertology.parameters import check_some_of, parameter, pooling_of
from bertology.results.provenance import Provenance
from bertology.results.result import Result
from bertology.stats import Estimate
from bertology.studies.designs.blocks import Sampled
from bertology.studies.designs.shuffled_copies import COPIES
from bertology.studies.probing.numeracy.results import (
    NumeracyResult,
    by_group,
    by_layer,
    by_number,
    by_tuned,
)
from bertology.studies.probing.numeracy.scores import BASELINES, GroupScores, apart, mean_of
from bertology.studies.study import Context, Needs

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

    from bertology.data.corpus import Corpus
    from bertology.model.encoder import Encoder
    from bertology.model.shape import Shape

Key = tuple[str, str]  # writing and group

_MODEL, _SHUFFLED, _TUNED = "model", "shuffled", "tuned"
_WHOLE, _DECIMAL = "integers to 999", "decimals to 99.9"  # as many numbers of as many digits
_DIGITS = "digits"
_UNDECODED = "no numbers are surely decoded beyond every baseline"


@dataclass(frozen=True)
class Numeracy(Sampled):
    """Are the values of numbers in the states, and also of numbers larger than any learnt?

    Method: the states of a number's pieces are pooled. A ridge regression reads its value off each
    layer, or the sum of two numbers off both; of lists of five, a linear score says which is the
    largest. Probes learn from one split; another one chooses penalty and layer. They are scored on
    numbers within the range that were not learnt (`near`), and on larger ones (`far`). A value is
    right if it is off by no more than the tolerance, a share of the range of training values.
    Numbers are written as in the corpus, which the tokenizer cuts into pieces, with their digits
    apart (1 2 3), and with a power of ten (1.23e2). Baselines: the mean, or most frequent place;
    the length of the number; a random vector for each piece; ten copies of the model with its
    weights in random order. The input of the first layer is a layer of its own. Groups, which are
    notations and ranges, are judged only if they are surely decoded beyond all baselines.
    Intervals are over numbers and seeds; each seed draws four fifths of the training examples.

    Source: Wallace et al. (2019), "Do NLP Models Know Numbers?". Limits: probes are linear, those
    of the paper were not; what they cannot read may still be there. Larger numbers here also have
    more digits. A number may take part in several lists or sums; only examples with the same
    largest (of lists) or first (of sums) number are taken as one. Small ranges have few numbers.
    """

    needs: ClassVar[Needs] = Needs(
        fields=frozenset({"text", "label", "words", "offsets", "group"}), task=True
    )
    finds_words: ClassVar[bool] = True
    result_type: ClassVar[type[Result]] = NumeracyResult
    version: ClassVar[int] = 3  # bounds allow for rare answers that were not seen
    measured_version: ClassVar[int] = 2
    copies: ClassVar[int] = COPIES
    fewest: ClassVar[int] = 10
    fewest_numbers: ClassVar[int] = 10  # of a group, near and far

    writings: tuple[str, ...] = parameter(
        WRITINGS, "How numbers are written: as they are, digits apart, with a power of ten."
    )
    pooling: str = pooling_of("a number")
    tolerance: float = parameter(
        0.05,
        "A value may be off by this share of the range.",
        minimum=0.0,
        maximum=1.0,
        concludes=True,
    )
    seeds: int = parameter(5, "Draws of what is learnt from.", minimum=2)
    finetune: bool = parameter(False, "Also fine-tune the whole model; wants a GPU.")
    epochs: int = parameter(20, "Passes over the numbers when fine-tuning.", minimum=1)
    train_split: str = parameter("train", "The split to learn from.")
    tune_split: str = parameter(
        "", "The split that chooses penalty and layer; if not given, test, or validation."
    )
    far_split: str = parameter("extrapolation", "The split with larger numbers.")
    train_examples: int | None = parameter(
        None, "Learn from so many examples; all if not given.", minimum=20, option="train-limit"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_some_of(self, "writings", WRITINGS)

    def splits(self, corpus: Corpus) -> dict[str, Corpus]:
        """What each role is asked on."""
        from bertology.data.loading import load_split

        tune = self.tune_split or ("validation" if corpus.split == "test" else "test")
        return {
            TRAIN: load_split(corpus, self.train_split, limit=self.train_examples),
            DEV: load_split(corpus, tune, limit=self.examples),
            NEAR: self.shown(corpus),
            FAR: load_split(corpus, self.far_split, limit=self.examples),
        }

    def numbers(self, corpus: Corpus) -> Numbers:
        """All examples, checked."""
        return Numbers.of(self.splits(corpus))

    def check(self, encoder: Encoder, corpus: Corpus) -> None:
        """Refuse what does not ask about numbers, or whose numbers are learnt from as well."""
        super().check(encoder, corpus)
        if not self._groups(self.numbers(corpus), PIECES):
            raise DataError(
                f"No group of {corpus.name!r} has {self.fewest_numbers} numbers both within the "
                "range and beyond it.",
                hint="Give more of them, with a larger --limit.",
            )

    def ingredients(self, corpus: Corpus) -> dict[str, str]:
        """The other splits."""
        splits = self.splits(corpus)
        return {f"{role}_data": splits[role].fingerprint for role in (TRAIN, DEV, FAR)}

    def texts_read(self, corpus: Corpus) -> Sequence[str | tuple[str, str]]:
        """Those of all splits and writings."""
        numbers = self.numbers(corpus)
        return [text for writing in self.writings for text in numbers.texts(writing).texts]

    def parts(self, shape: Shape, corpus: Corpus) -> Sequence[str]:
        """For each writing the model, copies with shuffled weights, and fine-tuned models."""
        kinds = [_MODEL, *(f"{_SHUFFLED}-{copy}" for copy in range(self.copies))]
        kinds += [f"{_TUNED}-{seed}" for seed in range(self.seeds)] if self.finetune else []
        return [f"{writing}-{kind}" for writing in self.writings for kind in kinds]

    def steps(self, part: str, shape: Shape, corpus: Corpus) -> int:
        """All examples are read once."""
        return sum(len(of) for of in self.splits(corpus).values())

    def measure(self, encoder: Encoder, corpus: Corpus, part: str, context: Context) -> xr.Dataset:
        """What probes, or a fine-tuned model, say of every number that was not learnt."""
        import xarray as xr

        from bertology.annotated.states import word_states
        from bertology.model.weight_noise import shuffled_copy
        from bertology.studies.probing.numeracy import decoding
        from bertology.studies.probing.numeracy.decoding import tuned

        writing, kind, copy = (*part.split("-"), "0")[:3]
        numbers = self.numbers(corpus)
        texts, groups = numbers.texts(writing), self._groups(numbers, writing)
        if kind == _TUNED:
            told = tuned(
                encoder, texts, numbers, groups,
                epochs=self.epochs, seed=self.seed + int(copy), advance=context.advance,
            )  # fmt: skip
            return xr.Dataset(_by_role(numbers, told, ()))
        reader, seeds = encoder, [1000 * self.seed + draw for draw in range(self.seeds)]
        if kind == _SHUFFLED:
            seed = self.copies * self.seed + int(copy)
            reader, seeds = shuffled_copy(encoder, seed=seed), [seeds[int(copy) % self.seeds]]
        states = word_states(
            reader, texts, pooling=self.pooling,
            folder=context.states if kind == _MODEL else None,
            batch_tokens=context.batch_tokens, advance=context.advance,
        )  # fmt: skip
        if states.missing:
            raise DataError(
                f"{states.missing} numbers of {corpus.name!r} have no piece that the model reads.",
                hint="Take a model that reads longer texts, or another of --writings.",
            )
        device = encoder.device if encoder.device.type == "cuda" else "cpu"
        features = decoding.features_of(states, encoder.shape.layers + 1, numbers)
        found = decoding.decode(features, numbers, groups, seeds=seeds, device=device)
        dev = {"dev": (("seed", "group", "layer"), found.dev)}
        said = _by_role(numbers, found.said, ("seed", "layer"))
        if kind == _SHUFFLED:
            return xr.Dataset(said | dev)
        alone = np.broadcast_to(decoding.constant(numbers), (len(seeds), len(numbers.target)))
        sizes = decoding.decode(decoding.lengths(numbers), numbers, groups, seeds=seeds)
        drawn = decoding.random_vectors(encoder, texts, numbers, pooling=self.pooling, seeds=seeds)
        vectors = [
            decoding.decode(one, numbers, groups, seeds=[seed], device=device).said[0, 0]
            for seed, one in zip(seeds, drawn, strict=True)
        ]
        base = np.stack([alone, sizes.said[:, 0], np.stack(vectors)])
        about = {
            "target": numbers.target, "group": numbers.group, "cluster": numbers.clusters,
            "word": np.array([" ".join(row) for row in numbers.words.tolist()]),
        }  # fmt: skip
        for name, values in about.items():
            said |= _by_role(numbers, values, (), ending=f"_{name}")
        said |= _by_role(numbers, base, ("baseline", "seed"), ending="_base")
        return xr.Dataset(
            said | dev | {"range": ("group", _ranges(numbers))},
            coords={"group": numbers.groups, "baseline": list(BASELINES)},
            attrs={
                "lists": int(numbers.lists),
                "asked": " ".join(str(numbers.groups.index(group)) for group in groups),
            },
        )

    def _groups(self, numbers: Numbers, writing: str) -> list[str]:
        """The groups with enough numbers, which can be written so."""
        found = []
        for group in numbers.groups:
            own = numbers.group == group
            asked = [numbers.clusters[own & (numbers.role == role)] for role in (NEAR, FAR)]
            figures = writing == PIECES or bool(numbers.in_figures[own].all())
            if figures and min(len(np.unique(of)) for of in asked) >= self.fewest_numbers:
                found.append(group)
        return found

    def conclude(self, measured: Mapping[str, xr.Dataset], provenance: Provenance) -> Result:
        """Shares and errors by writing, group and layer; losses, gains; what claims need."""
        parts = {name: measured[name] for name in measured}  # each is read once
        seen = dict[Key, GroupScores]()
        for writing in self.writings:
            model = parts[f"{writing}-{_MODEL}"]
            copies = [parts[f"{writing}-{_SHUFFLED}-{copy}"] for copy in range(self.copies)]
            names = model["group"].to_numpy().tolist()
            for at in map(int, model.attrs["asked"].split()):
                seen[writing, names[at]] = GroupScores(model, copies, names[at], self.tolerance)
        gains = {key: one.gain(1 - (1 - self.level) / len(seen)) for key, one in seen.items()}
        evidence = self._evidence(seen, {key for key, gain in gains.items() if gain.surely_there})
        tables = {
            "groups": by_group(seen, gains, level=self.level),
            "layers": by_layer(seen, level=self.level),
            "numbers": by_number(seen, parts[f"{self.writings[0]}-{_MODEL}"], self.writings[0]),
        }
        if self.finetune:
            said = {
                writing: [parts[f"{writing}-{_TUNED}-{seed}"] for seed in range(self.seeds)]
                for writing in self.writings
            }
            tables["tuned"], lost = by_tuned(seen, said, level=self.level)
            evidence["tuned_extrapolation_loss"] = lost
        return self.result(
            provenance,
            tables,
            evidence=evidence,
            reasons={
                "": f"not judged: {_UNDECODED}",
                "decimal_loss": f"not judged: {_WHOLE} are not surely decoded beyond every "
                f"baseline, or {_DECIMAL} were not asked, or a baseline alone decodes as many of "
                "these",
                "digits_gain": "not judged: neither with digits apart nor in pieces numbers are "
                "surely decoded beyond every baseline, or only one writing was asked",
                "decoding_gain": f"not judged: {_WHOLE} were not asked as the corpus writes them",
                "tuned_extrapolation_loss": "not judged: no model was fine-tuned, or none surely "
                "learnt more than the length of numbers",
            },
            facts={
                "lists": int(next(iter(seen.values())).lists),
                "tolerance": self.tolerance,
                "seeds": self.seeds,
                "writing": self.writings[0],
            },
        )

    def _evidence(
        self, seen: Mapping[Key, GroupScores], decoded: Collection[Key]
    ) -> dict[str, Estimate | None]:
        """Of groups that are decoded; as the corpus writes numbers, where not said otherwise."""
        near = {key: one.share(one.best(NEAR), NEAR, self.level) for key, one in seen.items()}
        far = {key: one.share(one.best(FAR), FAR, self.level) for key, one in seen.items()}
        whole, decimal = (PIECES, _WHOLE), (PIECES, _DECIMAL)
        own = [key for key in seen if key[0] == PIECES]
        digits = [(_DIGITS, group) for _, group in own if (_DIGITS, group) in seen]
        either = [key for key in digits if {key, (PIECES, key[1])} & set(decoded)]
        return {
            "decoding_gain": seen[whole].gain(self.level) if whole in seen else None,
            "extrapolation_loss": mean_of(
                [apart(near[key], far[key]) for key in own if key in decoded]
            ),
            "decimal_loss": apart(near[whole], near[decimal])
            if whole in decoded
            and decimal in seen
            and seen[decimal].best_baseline() < near[whole].value
            else None,
            "digits_gain": mean_of(
                [seen[key].over(seen[PIECES, key[1]], self.level) for key in either]
            ),
        }


def _by_role(
    numbers: Numbers, values: NDArray[Any], axes: tuple[str, ...], ending: str = ""
) -> dict[str, tuple[tuple[str, ...], NDArray[Any]]]:
    """The last axis cut into the numbers within the range, and the larger ones."""
    return {
        f"{role}{ending}": ((*axes, role), values[..., numbers.role == role])
        for role in (NEAR, FAR)
    }


def _ranges(numbers: Numbers) -> list[float]:
    """How far the training values of each group reach."""
    learnt = numbers.role == TRAIN
    return [float(np.ptp(numbers.target[learnt & (numbers.group == g)])) for g in numbers.groups]
