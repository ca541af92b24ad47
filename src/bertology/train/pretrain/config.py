"""Everything that decides how a model is pre-trained; values are checked when they are given."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from itertools import pairwise

from bertology.errors import ParameterError, UnknownNameError
from bertology.train.fresh import Architecture
from bertology.train.pretrain.pairings import find_pairing

UNITS = ("tokens", "words", "ngrams", "spans", "entities")
LOSSES = ("mlm", "sentence", "boundary", "order", "permutation", "replaced")
OPTIMIZERS = ("adamw", "lamb")
SCHEDULES = ("linear", "cosine", "constant")
PRECISIONS = ("auto", "float32", "bfloat16")


def _check(owner: str, **rules: tuple[bool, str, object]) -> None:
    """Each rule: whether the value follows it, what the value must do, and the value."""
    for name, (kept, must, value) in rules.items():
        if not kept:
            raise ParameterError(name, owner, must, value)


@dataclass(frozen=True)
class Vocabulary:
    """The WordPiece vocabulary that is made from the text."""

    size: int = 16384
    lowercase: bool = True
    alphabet: int = 1000  # characters beyond the most frequent ones become [UNK]

    def __post_init__(self) -> None:
        _check(
            "Vocabulary",
            size=(self.size >= 32, "be at least 32", self.size),
            alphabet=(self.alphabet >= 1, "be at least 1", self.alphabet),
        )


@dataclass(frozen=True)
class Masking:
    """Which tokens are masked, and what is put in their place."""

    units: str = "tokens"  # what is masked together
    share: float = 0.15  # of the tokens
    masked: float = 0.8  # of the masked tokens: replaced by the mask token
    random: float = 0.1  # … by a random piece; the rest are left as they are
    token: str = "mask"  # or "unk": [UNK] in the place of [MASK]
    copies: int = 0  # masks of a row: 0 for a new one in every pass, n for n fixed ones in turn
    subsample: float = 0.0  # pieces more frequent than this are masked less often; 0 for all alike
    longest: int = 10  # of a span, in words; n-grams have 1 to 3 words
    ends: float = 0.2  # the chance that a span ends after each of its words

    def __post_init__(self) -> None:
        if self.units not in UNITS:
            raise UnknownNameError("unit of masking", self.units, UNITS)
        _check(
            "Masking",
            share=(0 < self.share < 1, "lie between 0 and 1", self.share),
            masked=(0 <= self.masked <= 1, "be from 0 to 1", self.masked),
            random=(0 <= self.random <= 1 - self.masked + 1e-9, "fit beside masked", self.random),
            token=(self.token in ("mask", "unk"), "be mask or unk", self.token),
            copies=(self.copies >= 0, "be at least 0", self.copies),
            subsample=(0 <= self.subsample < 1, "be from 0 to below 1", self.subsample),
            longest=(self.longest >= 1, "be at least 1", self.longest),
            ends=(0 < self.ends <= 1, "lie above 0 and be at most 1", self.ends),
        )


@dataclass(frozen=True)
class Objective:
    """What the model is trained on: how text is paired, what is masked, and what is predicted.

    `losses`: `mlm` (the masked tokens), `sentence` (the relation of the parts), `boundary` (masked
    spans from the tokens beside them), `order` (shuffled n-grams), `permutation` (tokens in a
    random order) or `replaced` (which tokens a small generator put in).
    """

    pairing: str = "nsp"
    masking: Masking = field(default_factory=Masking)
    losses: tuple[str, ...] = ("mlm", "sentence")
    shuffled: float = 0.05  # share of the tokens in shuffled n-grams, for the loss `order`
    # Ways to cut the text into rows, used in turn. 0: a new one in every pass, or, with fixed
    # masks, as many as there are masks, since a mask belongs to a row.
    cuts: int = 0

    def __post_init__(self) -> None:
        pairing = find_pairing(self.pairing)
        for loss in self.losses:
            if loss not in LOSSES:
                raise UnknownNameError("loss", loss, LOSSES)
        alone = [n for n in ("permutation", "replaced") if n in self.losses]
        needs_relation = "sentence" in self.losses
        _check(
            "Objective",
            losses=(
                bool(self.losses) and len(set(self.losses)) == len(self.losses),
                "name at least one loss, and none twice",
                list(self.losses),
            ),
            pairing=(
                not needs_relation or bool(pairing.relations),
                "be nsp, sop or three-way, or there is no relation for the loss `sentence`",
                self.pairing,
            ),
            shuffled=(0 < self.shuffled < 1, "lie between 0 and 1", self.shuffled),
            cuts=(self.cuts >= 0, "be at least 0", self.cuts),
        )
        if alone and len(self.losses) > 1:
            raise ParameterError(
                "losses", "Objective", f"hold {alone[0]} alone, if at all", list(self.losses)
            )


@dataclass(frozen=True)
class Stage:
    """An objective, the step from which it is used, and how often it is used from then on."""

    objective: Objective
    begins: float = 0.0  # share of the steps after which it is used
    weight: float = 1.0  # relative to the other stages that are in use

    def __post_init__(self) -> None:
        _check(
            "Stage",
            begins=(0 <= self.begins < 1, "be from 0 to below 1", self.begins),
            weight=(self.weight > 0, "be above 0", self.weight),
        )


@dataclass(frozen=True)
class Phase:
    """A part of training with rows of one length and a fixed number of layers."""

    length: int = 128
    share: float = 1.0  # of the steps
    layers: int | None = None  # None for all; fewer first is progressive stacking

    def __post_init__(self) -> None:
        _check(
            "Phase",
            length=(self.length >= 8, "be at least 8", self.length),
            share=(0 < self.share <= 1, "lie above 0 and be at most 1", self.share),
            layers=(self.layers is None or self.layers >= 1, "be at least 1", self.layers),
        )


@dataclass(frozen=True)
class Pretraining:
    """The whole recipe. The same recipe and text give the same model; on a CPU, to the bit."""

    model: Architecture = field(default_factory=Architecture)
    stages: tuple[Stage, ...] = (Stage(Objective()),)
    steps: int = 1000
    batch_tokens: int = 8192  # of one update, over all devices
    accumulate: int = 1  # parts an update's batch is computed in, to save memory
    phases: tuple[Phase, ...] = (Phase(),)
    optimizer: str = "adamw"
    learning_rate: float = 1e-3
    schedule: str = "linear"  # after the warm-up
    warmup: float = 0.05  # share of the steps
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.98)
    clip: float = 1.0
    precision: str = "auto"  # bfloat16 on a GPU, float32 elsewhere
    compile: bool | None = None  # None: on a GPU only
    seed: int = 0
    log_every: int = 50
    evaluate_every: int = 1000
    save_every: int = 1000  # the state from which a killed run continues
    start: str | None = None  # the folder of a model to begin with; None for random weights
    milestones: int = 0  # number of checkpoints, at logarithmic distances; the first is step 0

    def __post_init__(self) -> None:
        longest = max((p.length for p in self.phases), default=0)
        depths = [p.layers or self.model.layers for p in self.phases]
        _check(
            "Pretraining",
            stages=(
                bool(self.stages) and self.stages[0].begins == 0,
                "hold a stage that begins at 0, first",
                len(self.stages),
            ),
            steps=(self.steps >= 1, "be at least 1", self.steps),
            phases=(
                bool(self.phases) and abs(sum(p.share for p in self.phases) - 1) < 1e-6,
                "have shares that sum to 1",
                [p.share for p in self.phases],
            ),
            accumulate=(self.accumulate >= 1, "be at least 1", self.accumulate),
            batch_tokens=(
                self.batch_tokens >= longest * self.accumulate,
                f"be at least {longest * self.accumulate}: one row for each part of a batch",
                self.batch_tokens,
            ),
            model=(
                self.model.max_length >= longest,
                f"have a max_length of at least {longest}, the longest phase",
                self.model.max_length,
            ),
            optimizer=(self.optimizer in OPTIMIZERS, _one_of(OPTIMIZERS), self.optimizer),
            schedule=(self.schedule in SCHEDULES, _one_of(SCHEDULES), self.schedule),
            precision=(self.precision in PRECISIONS, _one_of(PRECISIONS), self.precision),
            learning_rate=(self.learning_rate > 0, "be above 0", self.learning_rate),
            warmup=(0 <= self.warmup < 1, "be from 0 to below 1", self.warmup),
            weight_decay=(self.weight_decay >= 0, "be at least 0", self.weight_decay),
            clip=(self.clip > 0, "be above 0", self.clip),
            log_every=(self.log_every >= 1, "be at least 1", self.log_every),
            evaluate_every=(self.evaluate_every >= 1, "be at least 1", self.evaluate_every),
            save_every=(self.save_every >= 1, "be at least 1", self.save_every),
            milestones=(self.milestones >= 0, "be at least 0", self.milestones),
        )
        grows = all(b % a == 0 for a, b in pairwise(depths))
        if not grows or depths[-1] != self.model.layers:
            raise ParameterError(
                "phases",
                "Pretraining",
                f"grow by whole copies up to the model's {self.model.layers} layers",
                depths,
            )

    def as_dict(self) -> dict[str, object]:
        """Plain values, as they are kept beside the model."""
        return asdict(self)


def _one_of(names: tuple[str, ...]) -> str:
    return f"be one of {', '.join(names)}"
