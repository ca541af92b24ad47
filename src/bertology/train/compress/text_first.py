"""Students that learn on text from the model before fine-tuning, and then on the task."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any, ClassVar

from bertology.data.corpus import Corpus
from bertology.errors import CapabilityError, DataError, ParameterError
from bertology.model.encoder import Encoder
from bertology.parameters import parameter
from bertology.plain_files import local_path, read_bytes, read_utf8
from bertology.train.compress.method import READ, SHAPE, epochs_text
from bertology.train.compress.students import LAYER_BY_LAYER, Teaching
from bertology.train.compress.work import Work
from bertology.train.distil.soft_labels import Distilled
from bertology.train.distil.students import make_student
from bertology.train.distil.teacher import Teacher
from bertology.train.distil.text import distil_text

_EPOCHS, _RATE = 3, 1e-4


@dataclass(frozen=True)
class TextFirst(Teaching):
    """A student that may learn on text first, where its teacher is the masked LM.

    The text is a file with a text in each line.
    """

    file: str | None = parameter(
        None, "A file of text, on which the model before fine-tuning teaches first.", place=READ
    )
    text_epochs: int | None = parameter(
        None, f"Epochs on the text; {_EPOCHS} if not given.", minimum=1
    )
    text_rate: float | None = parameter(
        None, f"Their highest learning rate; {_RATE:g} if not given.", minimum=1e-9
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.on_text and getattr(self, "first_epochs", None) == 0:
            must = "be at least 1 where no text comes first (file=…)"
            raise ParameterError("first_epochs", self.name, must, 0)
        for name in ("text_epochs", "text_rate"):
            if not self.on_text and getattr(self, name) is not None:
                must = "be left out where no text is given (file=…)"
                raise ParameterError(name, self.name, must, getattr(self, name))

    @property
    def on_text(self) -> bool:
        """Whether it learns on text first."""
        return self.file is not None

    @property
    def kind(self) -> str:
        """A student of the masked LM is a model of its own."""
        return SHAPE if self.on_text else super().kind

    @property
    def begins(self) -> bool:
        """With the model before fine-tuning, which nothing of what came before is in."""
        return self.on_text or super().begins

    @property
    def uses_base(self) -> bool:
        """It teaches on text."""
        return self.on_text

    @property
    def epochs_before(self) -> int:
        """Those on text, too."""
        return super().epochs_before + (self.text_epochs or _EPOCHS) * self.on_text

    def ingredients(self) -> dict[str, str]:
        """The text itself, wherever it lies."""
        found = super().ingredients()
        if self.file is not None:
            found["text"] = sha256(read_bytes(local_path(self.file))).hexdigest()[:16]
        return found

    def student(self, work: Work) -> Encoder:
        """The model that learns the task; before, its body has learnt on text."""
        if not self.on_text:
            return super().student(work)
        teacher = self._masked_lm(work)  # refused before any work, if at all
        texts, found = self._texts(work), super().student(work)
        masked = self._masked_student(teacher, work.seed)
        epochs = self.text_epochs or _EPOCHS
        recipe = work.recipe(work.encoder, epochs=epochs, rate=self.text_rate or _RATE)
        with work.shown("on text", epochs) as line:
            distil_text(
                Teacher(teacher),
                masked,
                work.encoder.tokenizer,
                texts,
                settings=recipe,
                way=self.text_way(teacher),
                memory=work.memory("text"),
                progress=line.step,
                stages=work.stages,
            )
        work.trained(epochs)
        work.say(f"{epochs_text(epochs)} on {len(texts):,} texts came first")
        self.after_text(work, masked)
        body: dict[str, Any] = masked.base_model.state_dict()
        found.model.base_model.load_state_dict(body, strict=False)  # it has no pooler
        return found

    def text_way(self, teacher: Any) -> Distilled:
        """How a masked LM learns from the masked LM `teacher`."""
        raise NotImplementedError

    def after_text(self, work: Work, masked: Any) -> None:
        """The masked LM is there; the task comes next."""

    def _masked_student(self, teacher: Any, seed: int) -> Any:
        """The student as a masked LM, with a head like that of its teacher."""
        if self._given:
            return self._given_model(str(teacher.device), "mlm").model
        shape, start = self.shaped()
        return make_student(teacher, shape, start=start, which=self.which, seed=seed)

    def _masked_lm(self, work: Work) -> Any:
        """The model before fine-tuning, with its head for hidden words."""
        spec = None if work.base is None else work.base.spec
        if spec is None:
            raise CapabilityError(
                f"The model that {work.teacher.name!r} was fine-tuned from is not known, or not "
                "here, so no masked LM can teach.",
                hint="Give the pre-trained model itself, which is then fine-tuned first.",
            )
        device = str(work.teacher.device)
        return Encoder.load(**{**spec, "head": "mlm", "num_labels": None, "device": device}).model

    def _texts(self, work: Work) -> Corpus:
        if self.file is None:
            return work.train
        lines = read_utf8(local_path(self.file)).splitlines()
        found = [line.strip() for line in lines if line.strip()]
        if not found:
            raise DataError(f"{self.file} has no text.")
        return Corpus.of_texts(found, name=self.file)


@dataclass(frozen=True)
class TwoStages(TextFirst):
    """A student that first follows the inside of the original, layer by layer, then its answers."""

    against: ClassVar[dict[str, str]] = LAYER_BY_LAYER
    follows: ClassVar[str] = ""  # what the first stage is on

    first_epochs: int = parameter(
        3, "Epochs of the first stage on the task; 0 for none, after text.", minimum=0
    )
    first_rate: float = parameter(0.0, "Its highest rate; 0: as of the second.", minimum=0)

    @property
    def epochs_before(self) -> int:
        """Those of the first stage on the task, and on text."""
        return super().epochs_before + self.first_epochs

    @property
    def first_stage(self) -> str:
        """Its epochs."""
        if not self.first_epochs:
            return ""
        return f"{epochs_text(self.first_epochs)} on {self.follows} came first"
