"""LoRA: low-rank changes of the attention's maps (Hu et al. 2021), through `peft`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bertology.errors import CapabilityError, MissingExtraError
from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.train.ways.way import Lesson, Way

__all__ = ["Lora"]


@dataclass(frozen=True)
class Lora(Way):
    """Trained: a low-rank change of each layer's query and value maps, and the head.

    After the training the changes are added to the maps, and the model is an ordinary one.
    """

    summary: ClassVar[str] = "low-rank changes of queries and values are trained"
    order: ClassVar[int] = 3
    usual_rate: ClassVar[float | None] = 1e-3
    starts: ClassVar[frozenset[str]] = frozenset({"pretrained"})

    rank: int = parameter(8, "Rank of the changes.", minimum=1)
    alpha: float = parameter(16.0, "They are scaled by alpha / rank.", minimum=1e-9)
    dropout: float = parameter(0.1, "Dropout before them.", minimum=0, maximum=0.99)

    def prepare(self, lesson: Lesson) -> None:
        """Put the changes into the model; nothing changes by them at first."""
        try:
            from peft import LoraConfig, inject_adapter_in_model
        except ImportError:
            raise MissingExtraError("peft", needed_for="The way 'lora'") from None
        encoder = Encoder(lesson.model)
        maps = encoder.family.stacks[encoder.family.main_stack].qkv
        if len(maps) != 3:
            raise CapabilityError(
                f"{encoder.family.title} has no query and value maps of their own.",
                hint="BERT, RoBERTa, DistilBERT and their like have.",
            )
        config = LoraConfig(
            r=self.rank,
            lora_alpha=self.alpha,
            lora_dropout=self.dropout,
            target_modules=[maps[0], maps[2]],
        )
        inject_adapter_in_model(config, lesson.model)
        lesson.train_only(lambda name: "lora_" in name)
        for name, weight in lesson.model.named_parameters():
            if name in lesson.head:
                weight.requires_grad_(True)  # peft freezes all but its own

    def finish(self, lesson: Lesson) -> None:
        """Add the changes to the maps, and leave these alone."""
        from peft.tuners.tuners_utils import BaseTunerLayer

        for name, module in list(lesson.model.named_modules()):
            if isinstance(module, BaseTunerLayer):
                module.merge()
                home, _, own = name.rpartition(".")
                setattr(lesson.model.get_submodule(home), own, module.get_base_layer())
