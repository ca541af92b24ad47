"""The instrumented encoder: load any BERT-like model, look into it, change it for one run."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any, TypedDict
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from bertology.errors import ModelError, ParameterError
from bertology.model.addressing import AddressedModel
from bertology.model.batch import Batch, Texts, Tokenized, by_length, texts_of, tokenize
from bertology.model.compressed.forms import check_one_pass, parameters
from bertology.model.hooks.instrument import Instrument, Reducer, swapped_weights
from bertology.model.hooks.walking import evaluating
from bertology.model.interventions import Intervention
from bertology.model.label_match import LabelMatch, match_labels
from bertology.model.loading.config_checks import check_pieces
from bertology.model.loading.fingerprint import fingerprint_of, state_of
from bertology.model.loading.models import find_device, load_model
from bertology.model.loading.names import DEFAULT_MODEL
from bertology.model.loading.saved_head import saved_head
from bertology.model.sites import parse_sites
from bertology.model.trace import Trace
from bertology.model.weight_edits import WeightEdit

_LOCKS: WeakKeyDictionary[nn.Module, threading.RLock] = WeakKeyDictionary()
_LOCKS_GUARD = threading.Lock()


class _LoadOptions(TypedDict):
    """What `load` passes on, and what another process needs to load the same model."""

    num_labels: int | None
    dtype: str
    allow_pickle: bool
    trust_remote_code: bool


class Encoder(AddressedModel):
    """A Hugging Face model whose parts have names, can be recorded, and can be changed.

    The model itself is never changed: hooks, replaced methods and weights are put in place for
    one run and removed after it, also when it fails. Runs of one encoder go one after the other.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any = None,
        *,
        head: str = "base",
        name: str | None = None,
        spec: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(model, head=head, name=name)
        self.tokenizer = tokenizer
        self.spec = None if spec is None else dict(spec)
        self.new_weights: list[str] = []
        self._known: tuple[object, str] | None = None  # state of the weights, their fingerprint
        self._means: tuple[object, Tensor] | None = None  # what was asked last, its head means
        self._here = threading.local()  # the changes of the `doing` blocks of this thread
        with _LOCKS_GUARD:
            # One lock for each model: encoders of the same model run one after the other too.
            self._turn = _LOCKS.setdefault(model, threading.RLock())

    @classmethod
    def load(
        cls,
        name: str = DEFAULT_MODEL,
        *,
        head: str = "base",
        device: str = "auto",
        num_labels: int | None = None,
        dtype: str = "float32",
        allow_pickle: bool = False,
        trust_remote_code: bool = False,
    ) -> Encoder:
        """Load a bundled model, a folder or a Hugging Face id, with the head a task needs.

        Without a name it is the bundled `bertology-mini`. `head` is base, mlm, causal, pretraining,
        classification (regression: one label), token-classification or multiple-choice; or saved:
        the one that the checkpoint was saved with.
        `NAME@STEP` is an earlier training step of a bundled model or a folder (see `steps`), or
        a revision of a hub id. Weights are read from safetensors; a pickle only with
        `allow_pickle`, code from the hub only with `trust_remote_code`.
        """
        options: _LoadOptions = {
            "num_labels": num_labels,
            "dtype": dtype,
            "allow_pickle": allow_pickle,
            "trust_remote_code": trust_remote_code,
        }
        where = find_device(device)
        head = saved_head(name) if head == "saved" else head
        loaded = load_model(name, head, **options)
        spec = {"name": name, "head": head, **options}
        encoder = cls(loaded.model.to(where), loaded.tokenizer, head=head, name=name, spec=spec)
        encoder.new_weights = loaded.new_weights
        return encoder

    def __repr__(self) -> str:
        return f"Encoder({self.name!r}, {self.family.title}, {self.shape}, head {self.head!r})"

    # What it is --------------------------------------------------------------------------------

    @property
    def device(self) -> torch.device:
        where: torch.device = next(self.model.parameters()).device
        return where

    @property
    def parameters(self) -> int:
        """How many numbers the model is made of: packed ones one by one, shared ones once."""
        return parameters(self.model)

    def require_tokenizer(self) -> None:
        """Raise an error if there is no tokenizer to read texts."""
        if self.tokenizer is None:
            raise ModelError(
                f"{self.name!r} came without a tokenizer, so it takes tensors, not texts.",
                hint="Save its tokenizer beside it with tokenizer.save_pretrained(folder).",
            )

    @property
    def fingerprint(self) -> str:
        """A hash of weights, config and tokenizer; computed anew when weights have changed."""
        state = state_of(self.model)
        if self._known is None or self._known[0] != state:
            self._known = (state, fingerprint_of(self.model, self.tokenizer, head=self.head))
        return self._known[1]

    @property
    def max_length(self) -> int | None:
        """The most tokens the model takes, special ones included; None when there is no limit."""
        limits = []
        positions = getattr(self.config, "max_position_embeddings", None)
        if positions and positions > 0 and not self.family.relative_positions:
            limits.append(positions - self.family.position_offset)
        if self.tokenizer is not None and self.tokenizer.model_max_length < 10**9:
            limits.append(self.tokenizer.model_max_length)
        return min(limits) if limits else None

    def match_labels(self, labels: Sequence[str], *, ordered: bool = True) -> LabelMatch:
        """Which of the head's outputs stands for each label; see `model.label_match`."""
        named = {int(i): name for i, name in (getattr(self.config, "id2label", None) or {}).items()}
        outputs = int(self.config.num_labels)
        return match_labels(named, outputs, labels, ordered=ordered, model=self.name)

    # Texts ---------------------------------------------------------------------------------------

    def encode(
        self,
        texts: Texts,
        *,
        indices: Sequence[int] | None = None,
        too_long: str = "error",
    ) -> Batch:
        """Texts, pairs of texts or a corpus as one padded batch.

        `too_long` says what to do with a text the model cannot take whole: "error" or "truncate".
        """
        many = texts_of(texts)
        batch = self.tokenize(many, too_long=too_long).batch(range(len(many)), self.device)
        return replace(batch, indices=list(indices or batch.indices))

    def batches(
        self,
        texts: Texts,
        *,
        tokens_per_batch: int = 4096,
        too_long: str = "truncate",
        equal_length: bool = False,
    ) -> Iterator[Batch]:
        """All texts in batches of similar (or equal) length: almost no padding is computed."""
        tokenized = self.tokenize(texts, too_long=too_long)
        for chosen in by_length(tokenized.lengths, tokens_per_batch, equal=equal_length):
            yield tokenized.batch(chosen, self.device)

    def tokenize(self, texts: Texts, *, too_long: str = "truncate") -> Tokenized:
        """Texts in tokens, cut as in all batches, but not padded."""
        self.require_tokenizer()
        found = tokenize(
            self.tokenizer,
            texts_of(texts),
            limit=self.max_length,
            too_long=too_long,
            name=self.name,
        )
        check_pieces(self.name, found.largest, self.model)
        return found.with_segments(getattr(self.config, "type_vocab_size", None))

    # Running -------------------------------------------------------------------------------------

    def run(
        self,
        inputs: Texts | Batch | Mapping[str, Tensor],
        *,
        record: str | Iterable[str] = (),
        do: Intervention | WeightEdit | Iterable[Intervention | WeightEdit] = (),
        reduce: Mapping[str, Reducer] | None = None,
        gradients: bool = False,
    ) -> Trace:
        """One forward pass: change what `do` says, keep what `record` names, feed `reduce`.

        With `gradients`, `trace.backward(scalar)` then `trace.gradient(site)` give the gradient
        of any scalar at any recorded site.
        """
        check_one_pass(self.config)
        batch = self._as_batch(inputs)
        asked = [do] if isinstance(do, Intervention | WeightEdit) else list(do)
        changes = [*self.standing, *asked]
        main = self.family.main_stack
        trace = Trace(batch, None, self.shapes, main)
        grad = torch.enable_grad() if gradients else torch.no_grad()
        with self.turn(), grad, ExitStack() as undo:
            instrument = Instrument(
                self,
                [c for c in changes if isinstance(c, Intervention)],
                parse_sites(record, self.shapes, main),
                [(parse_sites(s, self.shapes, main)[0], r) for s, r in (reduce or {}).items()],
                trace,
                gradients,
            )
            for change in changes:
                if isinstance(change, WeightEdit):
                    # Each sees what the one before it put in place, so that edits add up.
                    undo.enter_context(swapped_weights(self.model, change.weights(self)))
            undo.enter_context(instrument.installed())
            trace.output = self.model(**batch.inputs, **self._forward_options())
        return trace

    @property
    def standing(self) -> tuple[Intervention | WeightEdit, ...]:
        """The changes made in this thread by the `doing` blocks around the call."""
        return getattr(self._here, "standing", ())

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Exclusive use of the model, without dropout; what `run` takes for each pass."""
        with self._turn, evaluating(self.model):
            yield

    @contextmanager
    def doing(self, *changes: Intervention | WeightEdit) -> Iterator[Encoder]:
        """Changes that hold for every run inside the block, in this thread; blocks may nest."""
        before = self.standing
        self._here.standing = (*before, *changes)
        try:
            yield self
        finally:
            self._here.standing = before

    def head_means(self, texts: Texts, *, tokens_per_batch: int = 4096) -> Tensor:
        """Mean output of each head over the real tokens of some texts: (layers, heads, D).

        The last result is kept, because the parts of a study need the same means many times.
        """
        from bertology.model.reducers.statistics import MeanOutput

        question = (state_of(self.model), tuple(texts_of(texts)), self.standing)
        if self._means is None or self._means[0] != question:
            mean = MeanOutput(self.shape)
            for batch in self.batches(texts, tokens_per_batch=tokens_per_batch):
                self.run(batch, reduce={"layer.*.head.*.output": mean})
            self._means = (question, mean.value)
        return self._means[1]

    def _as_batch(self, inputs: Texts | Batch | Mapping[str, Tensor]) -> Batch:
        if isinstance(inputs, Batch):
            return inputs.to(self.device)
        if isinstance(inputs, Mapping):
            tensors = {k: v.to(self.device) for k, v in inputs.items()}
            return Batch(tensors, range(len(tensors["input_ids"])), self.tokenizer)
        if not isinstance(inputs, str | Sequence) and not hasattr(inputs, "texts"):
            must = "be a text, texts, pairs of texts, a corpus, a Batch or tensors"
            raise ParameterError("inputs", "run", must, inputs)
        return self.encode(inputs)

    def _forward_options(self) -> dict[str, bool]:
        """Caches of keys and values would only cost memory here."""
        causal = self.family.model_type in ("gpt2", "bart")
        return {"use_cache": False} if causal else {}
