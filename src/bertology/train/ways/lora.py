"""LoRA: low-rank changes of the attention's maps (Hu et al. 2021), through `peft`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import torch

from bertology.data.corpus import Corpus
from bertology.errors import CapabilityError, MissingExtraError
from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.train.ways.way import Lesson, Way

_NOTED = "peft_config"  # where peft notes in a model what it put into it


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

    def ingredients(self, train: Corpus) -> dict[str, str]:
        """How it draws: models and results of before drew otherwise, and have other names."""
        return {"lora draws": "by the seed alone"}

    def check(self, lesson: Lesson, ways: Sequence[Way]) -> None:
        """The extra must be there, and the maps: a stage before may take hours."""
        try:
            import peft  # noqa: F401
        except ImportError:
            raise MissingExtraError("peft", needed_for="The way 'lora'") from None
        _changed_maps(lesson)

    def prepare(self, lesson: Lesson) -> None:
        """Put the changes into the model; nothing changes by them at first."""
        from peft import LoraConfig, inject_adapter_in_model

        config = LoraConfig(
            r=self.rank,
            lora_alpha=self.alpha,
            lora_dropout=self.dropout,
            target_modules=_changed_maps(lesson),
        )
        learning = [weight for weight in lesson.model.parameters() if weight.requires_grad]
        with _drawing_by(lesson.seed_of(self), lesson.model.device):
            inject_adapter_in_model(config, lesson.model)
        for weight in learning:
            weight.requires_grad_(True)  # peft freezes all but its own; here `train_only` decides
        lesson.train_only(lambda name: "lora_" in name)

    def finish(self, lesson: Lesson) -> None:
        """Add the changes to the maps, and leave these alone."""
        from peft.tuners.tuners_utils import BaseTunerLayer

        for name, module in list(lesson.model.named_modules()):
            if isinstance(module, BaseTunerLayer):
                module.merge()
                home, _, own = name.rpartition(".")
                setattr(lesson.model.get_submodule(home), own, module.get_base_layer())
        if hasattr(lesson.model, _NOTED):
            delattr(lesson.model, _NOTED)  # else peft takes the next training for a second adapter


def _changed_maps(lesson: Lesson) -> list[str]:
    """What the query and the value map are called in the attention of each layer."""
    encoder = Encoder(lesson.model)
    stack = encoder.family.stacks[encoder.family.main_stack]
    if len(stack.qkv) == 3:
        names = [stack.qkv[0], stack.qkv[2]]
        attention = [encoder.module(stack.attention, i) for i in range(encoder.shape.layers)]
        found = [module._modules.get(name) for module in attention for name in names]
        if all(isinstance(one, torch.nn.Linear) for one in found):
            return names
    raise CapabilityError(
        f"{encoder.family.title} has no query and value maps of their own.",
        hint="BERT, RoBERTa, DistilBERT and their like have.",
    )


@contextmanager
def _drawing_by(seed: int, device: torch.device) -> Iterator[None]:
    """peft draws from torch's own generators, which a stage before may have left anywhere.

    A stage draws where it is done, and does not where its file is read: so the seed alone decides.
    """
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield
