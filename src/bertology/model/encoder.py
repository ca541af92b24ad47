"""The instrumented encoder: load any BERT-like model, look into it, change it for one run."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, TypedDict
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from bertology.errors import CapabilityError, ModelError, ParameterError, UnknownNameError
from bertology.model.added_parts import ADAPTERS, added_parts
from bertology.model.batch import Batch, Texts, Tokenized, by_length, texts_of, tokenize
from bertology.model.compressed.forms import check_one_pass, compressed_forms, parameters
from bertology.model.families import Capability, Family, family_of
from bertology.model.hooks.instrument import Instrument, Reducer, swapped_weights, switched_configs
from bertology.model.hooks.walking import evaluating, submodule
from bertology.model.interventions import Intervention
from bertology.model.label_match import LabelMatch, match_labels
from bertology.model.loading.config_checks import check_pieces
from bertology.model.loading.fingerprint import fingerprint_of, state_of
from bertology.model.loading.models import find_device, load_model
from bertology.model.loading.names import DEFAULT_MODEL
from bertology.model.loading.saved_head import saved_head
from bertology.model.numbering import HeadNumbering, layers_without_mlp
from bertology.model.shape import Shape
from bertology.model.sites import Kind, Sites, parse_sites
from bertology.model.trace import Trace
from bertology.model.weight_edits import WeightEdit

_LOCKS: WeakKeyDictionary[nn.Module, threading.RLock] = WeakKeyDictionary()
_LOCKS_GUARD = threading.Lock()

_NEEDED = {
    Kind.PATTERN: Capability.PATTERNS,
    Kind.SCORES: Capability.PATTERNS,
    Kind.QUERY: Capability.QKV,
    Kind.KEY: Capability.QKV,
    Kind.VALUE: Capability.QKV,
    Kind.OUTPUT: Capability.HEADS,
    Kind.CONTRIBUTION: Capability.CONTRIBUTIONS,
    Kind.ATTENTION: Capability.HEADS,
    Kind.RESIDUAL: Capability.RESIDUAL,
    Kind.EMBEDDINGS: Capability.RESIDUAL,
    Kind.MLP: Capability.MLP,
    Kind.ACTIVATION: Capability.MLP,
}


class _LoadOptions(TypedDict):
    """What `load` passes on, and what another process needs to load the same model."""

    num_labels: int | None
    dtype: str
    allow_pickle: bool
    trust_remote_code: bool


class Encoder:
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
        self.model, self.tokenizer, self.head = model, tokenizer, head
        self.family: Family = family_of(model.config.model_type)
        self.name = name or model.config.name_or_path or self.family.title
        self.spec = None if spec is None else dict(spec)
        self.new_weights: list[str] = []
        self._known: tuple[object, str] | None = None  # state of the weights, their fingerprint
        self._means: tuple[object, Tensor] | None = None  # what was asked last, its head means
        self._names: dict[int, str] = {}  # of parameters, by identity; looked up once
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
    def config(self) -> Any:
        return self.model.config

    @property
    def base(self) -> nn.Module:
        """The model without its head."""
        base: nn.Module = self.model.base_model
        return base

    @property
    def device(self) -> torch.device:
        where: torch.device = next(self.model.parameters()).device
        return where

    @property
    def parameters(self) -> int:
        """How many numbers the model is made of: packed ones one by one, shared ones once."""
        return parameters(self.model)

    @cached_property
    def shapes(self) -> dict[str, Shape]:
        """The shape of each stack."""
        found = {}
        for name, stack in self.family.stacks.items():
            layers = getattr(self.config, stack.layers)
            if self.family.model_type == "albert":
                layers *= self.config.inner_group_num
            heads = getattr(self.config, stack.heads)
            hidden = self.config.hidden_size
            mlp = getattr(self.config, stack.mlp_size, None) if stack.mlp_size else None
            size = getattr(self.config, "d_kv", None) or getattr(self.config, "d_head", None)
            width = getattr(self.config, "true_hidden_size", hidden)
            found[name] = Shape(layers, heads, hidden, size or width // heads, mlp or 4 * hidden)
        return found

    def stack_name(self, stack: str | None) -> str:
        """A stack's name, checked; the main one's when none is given."""
        name = stack or self.family.main_stack
        if name not in self.shapes:
            raise UnknownNameError("stack", name, self.shapes)
        return name

    @property
    def shape(self) -> Shape:
        """The shape of the main stack."""
        return self.shapes[self.family.main_stack]

    @cached_property
    def numbering(self) -> HeadNumbering:
        """Which heads a pruned model still has; an unpruned one has them all."""
        return HeadNumbering(self.config, self.family, self.shapes)

    @cached_property
    def capabilities(self) -> frozenset[Capability]:
        """What this model can give: its family's, less what its head cannot."""
        found = set(self.family.capabilities)
        if self.head not in ("mlm", "pretraining"):
            found.discard(Capability.MASKED_LM)
        if getattr(self.config, "is_decoder", False) and self.family.model_type != "gpt2":
            found.discard(Capability.FAST_REPLAY)
        if self.numbering.removed or layers_without_mlp(self.config):
            found.discard(Capability.FAST_REPLAY)  # it takes all layers to be alike
        if (parts := added_parts(self.config)) or compressed_forms(self.config):
            # They know no adapters, no readers of other layers than the last, no packed weights.
            found -= {Capability.FAST_REPLAY, Capability.PRUNING}
            if ADAPTERS in parts:  # a function of all heads together
                found.discard(Capability.CONTRIBUTIONS)
        return frozenset(found)

    def require(self, *capabilities: Capability | str) -> None:
        """Raise an error, before any work, if this model lacks one of these capabilities."""
        missing = sorted({Capability(c) for c in capabilities} - self.capabilities)
        if missing:
            raise CapabilityError(
                f"{self.name!r} ({self.family.title}, head {self.head!r}) cannot give "
                f"{', '.join(missing)}.",
                hint="Load it with head='mlm'."
                if missing == [Capability.MASKED_LM]
                else "`bertology families` shows what each family can give.",
            )

    def require_tokenizer(self) -> None:
        """Raise an error if there is no tokenizer to read texts."""
        if self.tokenizer is None:
            raise ModelError(
                f"{self.name!r} came without a tokenizer, so it takes tensors, not texts.",
                hint="Save its tokenizer beside it with tokenizer.save_pretrained(folder).",
            )

    def check_sites(self, sites: Iterable[Sites]) -> None:
        """Raise an error for sites that this model does not have."""
        for s in sites:
            self.require(_NEEDED[s.kind])
            if s.one_layer and s.one_head:
                self.numbering.check(str(s.stack), s.layers[0], s.heads[0])
            stack = self.family.stacks[str(s.stack)]
            # Cross-attention lies inside the decoder's blocks: the stream there is the decoder's.
            shares = next(n for n, o in self.family.stacks.items() if o.block == stack.block)
            inside = s.kind in (Kind.RESIDUAL, Kind.EMBEDDINGS) and shares != s.stack
            if (
                inside
                or (s.kind in (Kind.MLP, Kind.ACTIVATION) and stack.mlp is None)
                or (s.kind is Kind.ATTENTION and stack.projection is None)
            ):
                raise CapabilityError(
                    f"{self.family.title} has no site {s.kind.value!r} in its {s.stack} stack."
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

    # Where its parts are -----------------------------------------------------------------------

    def module(self, template: str, layer: int) -> nn.Module:
        """The module a family's path template names for a layer."""
        return submodule(self.base, self.family.path(template, self.config, layer))

    def unique_modules(self, template: str, stack: str) -> list[nn.Module]:
        """All modules a template names, each once, in the order of the layers."""
        layers = range(self.shapes[stack].layers)
        return list(dict.fromkeys(self.module(template, i) for i in layers))

    @property
    def shares_layers(self) -> bool:
        """Whether one module serves several layers, as in ALBERT."""
        block = self.family.stacks[self.family.main_stack].block
        modules = self.unique_modules(block, self.family.main_stack)
        return len(modules) < self.shape.layers

    def parameter_name(self, wanted: nn.Parameter) -> str:
        """The full name of one of the model's parameters, the first where it has several."""
        name = self._names.get(id(wanted))
        if name is None or self.model.get_parameter(name) is not wanted:
            self._names = {id(p): n for n, p in self.model.named_parameters()}
            name = self._names[id(wanted)]
        return name

    def projection_weight(self, layer: int, stack: str | None = None) -> Tensor:
        """The output projection cut into the heads the layer has: (H, D, M)."""
        name = stack or self.family.main_stack
        row, shape = self.family.stacks[name], self.shapes[name]
        if row.projection is None:  # XLNet keeps it as a bare parameter (M, H, D)
            return self.module(row.attention, layer).get_parameter("o").permute(1, 2, 0)
        module: Any = self.module(row.projection, layer)
        # (H·D, M); Conv1D, which has no `in_features`, already lies this way
        weight: Tensor = module.weight.T if hasattr(module, "in_features") else module.weight
        return weight.reshape(-1, shape.head_size, weight.shape[-1])

    def attention_switched(self, implementation: str) -> AbstractContextManager[None]:
        """This model with another attention implementation, its config left as it is."""
        return switched_configs(self.model, implementation)

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
