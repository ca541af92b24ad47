"""Which ways to fine-tune are compared: variants by name, and ways as they are written.

A variant is a name of `VARIANTS`, which fits its way to the size of the model, or ways as
`bertology finetune --way` takes them, several of them joined by `+`:
`mixout:share=0.9+layer_rates:decay=0.95`. Names may be joined, too:
`early-stopping+adapters:size=64`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bertology.errors import ParameterError


@dataclass(frozen=True)
class Variant:
    """A way to fine-tune, or several, by their texts."""

    title: str
    ways: tuple[str, ...] = ()
    start: str = "pretrained"
    patience: int | None = None  # epochs without a better score; None for no early stopping

    def filled(self, **values: object) -> Variant:
        """With numbers in place of {names}, as they suit the model."""
        from bertology.train.written_options import filled

        def fill(text: str) -> str:
            return filled(text, values, parameter="ways", of="FinetuningVariants")

        return replace(self, ways=tuple(fill(text) for text in self.ways))


PLAIN, INTERMEDIATE = "plain", "intermediate"
# What ways say of a model with so many layers: {half} of them, {top} a quarter.
VARIANTS: dict[str, Variant] = {
    PLAIN: Variant("plain fine-tuning"),
    "layer-mix": Variant("learnt mix of all layers", ("layer_mix",)),
    "joined-layers": Variant("last four layers joined", ("layer_choice:which=last-4,how=joined",)),
    "chosen-layers": Variant(
        "mean of the last four layers", ("layer_choice:which=last-4,how=mean",)
    ),
    "features": Variant("head on frozen features", start="frozen-features"),
    "frozen-bottom": Variant("lower half frozen", ("frozen_bottom:layers={half}",)),
    "top-again": Variant("top quarter drawn anew", ("top_again:layers={top}",)),
    "layer-rates": Variant("rates falling by layer", ("layer_rates:decay=0.9",)),
    "bias-only": Variant("bias terms only", ("bias_only",)),
    "adapters": Variant("adapters", ("adapters:size=16",)),
    "lora": Variant("LoRA", ("lora:rank=8",)),
    "mixout": Variant("mixout", ("mixout:share=0.7",)),
    "adversarial": Variant("adversarial embeddings", ("adversarial:steps=2",)),
    "substitution": Variant("tokens substituted", ("substitution:share=0.1",)),
    "masked-lm": Variant("more masked-LM first", ("masked_lm:epochs=1",)),
    INTERMEDIATE: Variant(
        "another task first", ("intermediate:task={task},split={split},limit={limit}",)
    ),
    "early-stopping": Variant("early stopping", patience=1),
}
TITLES = {name: variant.title for name, variant in VARIANTS.items()}
NAMED = tuple(name for name in VARIANTS if name not in (PLAIN, INTERMEDIATE))
"""Names that may be asked for; another task must be named by an option of its own."""
# LoRA needs another package; the mean of the last layers came later.
USUAL = tuple(name for name in NAMED if name not in ("lora", "chosen-layers"))


def chosen_variants(given: Sequence[str]) -> dict[str, Variant]:
    """Variants by their names, in the order given; what ways say is read later, with the model.

    The text of a variant that has no name of its own is its title.
    """
    from bertology.train.written_options import plain_name, separated

    texts = [_dashed(text) for text in separated(given)]
    names = [text if text in NAMED else plain_name(text) for text in texts]
    taken = [name for name in names if name in (PLAIN, INTERMEDIATE)]
    if taken or len(set(names)) < len(names):
        must = (
            f"be some of {', '.join(NAMED)}, or ways of `bertology finetune` (several joined by "
            "`+`), none twice; another task is named by --intermediate"
        )
        raise ParameterError("ways", "FinetuningVariants", must, taken or list(given))
    return {name: _variant(text) for name, text in zip(names, texts, strict=True)}


def _dashed(text: str) -> str:
    """Names of variants may be written with either line, as those of ways."""
    name = text.replace("_", "-")
    return name if name in (*NAMED, PLAIN, INTERMEDIATE) else text


def _variant(text: str) -> Variant:
    from bertology.train.written_options import apart

    if text in NAMED:
        return VARIANTS[text]
    parts = [
        VARIANTS[n] if (n := _dashed(one)) in NAMED else Variant(one, (one,)) for one in apart(text)
    ]
    return Variant(
        text,
        tuple(way for part in parts for way in part.ways),
        next((part.start for part in parts if part.start != "pretrained"), "pretrained"),
        next((part.patience for part in parts if part.patience is not None), None),
    )
