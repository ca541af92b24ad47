"""What training uses of transformers' models and tokenizers, which come without types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Protocol, Self, overload

from bertology.model.protocols import Tokenizer as TextTokenizer

if TYPE_CHECKING:  # recipes are read without torch
    import torch
    from torch import Tensor, nn


class Savable(Protocol):
    """A model or a tokenizer that can be written to a folder."""

    def save_pretrained(self, save_directory: str | PathLike[str]) -> object: ...


class SizedVocabulary(Protocol):
    """As much of a tokenizer as a new model needs."""

    @property
    def pad_token_id(self) -> int | None: ...

    def __len__(self) -> int: ...


class Encoded(Protocol):
    """One text as pieces."""

    @property
    def ids(self) -> list[int]: ...

    @property
    def offsets(self) -> list[tuple[int, int]]: ...


class Backend(Protocol):
    """The tokenizer of the `tokenizers` library inside a fast tokenizer."""

    encode_special_tokens: bool

    def encode_batch(
        self, input: Sequence[str], *, add_special_tokens: bool
    ) -> Iterable[Encoded]: ...

    def encode_batch_fast(
        self, input: Sequence[str], *, add_special_tokens: bool
    ) -> Iterable[Encoded]: ...

    def to_str(self) -> str: ...


class Tokenizer(TextTokenizer, SizedVocabulary, Savable, Protocol):
    """A fast tokenizer."""

    model_max_length: int
    pad_token_type_id: int
    mask_token: str
    unk_token: str

    @property
    def backend_tokenizer(self) -> Backend: ...


class Config(Protocol):
    """The settings of a model."""

    model_type: str
    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    max_position_embeddings: int
    num_labels: int
    problem_type: str | None
    id2label: dict[int, str]
    label2id: dict[str, int]
    _attn_implementation: str


class HasParameters(Protocol):
    """A module whose weights can be trained."""

    def parameters(self) -> Iterator[nn.Parameter]: ...

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]: ...

    @overload
    def to(self, device: torch.device, /) -> Self: ...

    @overload
    def to(self, dtype: torch.dtype, /) -> Self: ...


class Model(HasParameters, Savable, Protocol):
    """Any model of transformers."""

    config: Config
    training: bool

    @property
    def device(self) -> torch.device: ...

    def eval(self) -> Self: ...

    def load_state_dict(
        self, state_dict: Mapping[str, Tensor], *, strict: bool = True
    ) -> object: ...

    def named_buffers(self) -> Iterable[tuple[str, Tensor]]: ...

    def num_parameters(self) -> int: ...

    def requires_grad_(self, requires_grad: bool = True) -> Self: ...

    def state_dict(self) -> Mapping[str, Tensor]: ...

    def tie_weights(self) -> object: ...

    def train(self, mode: bool = True) -> Self: ...

    def zero_grad(self, set_to_none: bool = True) -> None: ...


class States(Protocol):
    """What the body of a model returns."""

    last_hidden_state: Tensor


class Logits(Protocol):
    """What a classifier returns."""

    logits: Tensor


class Part(Protocol):
    """A part of a model that can be compiled by itself."""

    def compile(self, *, dynamic: bool) -> None: ...


class Embeddings(Part, Protocol):
    """The input layer of a BERT."""

    word_embeddings: nn.Embedding

    def __call__(self, **inputs: Tensor) -> Tensor: ...


class Layers(Protocol):
    """The layers of a BERT."""

    layer: Iterable[Part]

    def __call__(self, states: Tensor, *, attention_mask: Tensor | None) -> States: ...


class Pooler(Protocol):
    """The layer that turns the last [CLS] state into one vector for each row."""

    dense: nn.Linear

    def __call__(self, states: Tensor) -> Tensor: ...


class Bert(Model, Protocol):
    """BertModel: a BERT without heads."""

    embeddings: Embeddings
    encoder: Layers
    pooler: Pooler

    def __call__(self, **inputs: Tensor) -> States: ...


class Classifier(Model, Protocol):
    """A sequence classifier of any family."""

    @property
    def base_model(self) -> Model: ...

    def __call__(self, **inputs: Tensor) -> Logits: ...


class BertClassifier(Classifier, Protocol):
    """BertForSequenceClassification."""

    bert: Bert

    @property
    def base_model(self) -> Bert: ...


class Predictions(Part, Protocol):
    """The head that predicts tokens."""

    decoder: Callable[[Tensor], Tensor]

    def __call__(self, states: Tensor) -> Tensor: ...


class BertHeads(Protocol):
    """The heads of BertForPreTraining."""

    predictions: Predictions
    seq_relationship: Callable[[Tensor], Tensor]


class MaskedHead(Protocol):
    """The head of BertForMaskedLM."""

    predictions: Predictions


class MaskedBert(Model, Protocol):
    """BertForMaskedLM."""

    bert: Bert
    cls: MaskedHead


class PretrainingBert(Model, Protocol):
    """BertForPreTraining."""

    bert: Bert
    cls: BertHeads
