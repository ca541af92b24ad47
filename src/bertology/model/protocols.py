"""What we use of a tokenizer, a config and a model of transformers, which has no types for us."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class Tokenizer(Protocol):
    """A tokenizer of transformers, fast or slow."""

    @property
    def model_max_length(self) -> int:
        """The most tokens of a text; a huge number where there is no limit."""
        ...

    @property
    def unk_token_id(self) -> int | None:
        """The token for pieces that are not in the vocabulary; None where there is none."""
        ...

    @property
    def pad_token_id(self) -> int | None:
        """The token that fills rows up; None where there is none."""
        ...

    @property
    def all_special_ids(self) -> list[int]:
        """The ids of all special tokens."""
        ...

    @property
    def padding_side(self) -> str:
        """`left` or `right`."""
        ...

    @property
    def truncation_side(self) -> str:
        """`left` or `right`."""
        ...

    def __call__(
        self,
        *texts: list[str],
        padding: bool = ...,
        truncation: bool | str = ...,
        max_length: int | None = ...,
        verbose: bool = ...,
    ) -> Mapping[str, list[list[int]]]:
        """Token ids and masks of texts, or of the first and second texts of pairs."""
        ...

    def pad(
        self, rows: Mapping[str, list[list[int]]], /, *, return_tensors: str
    ) -> Mapping[str, Tensor]:
        """Rows of different lengths as one tensor for each name."""
        ...

    def convert_ids_to_tokens(self, ids: list[int], /) -> list[str]:
        """The wordpieces of token ids."""
        ...

    def get_vocab(self) -> Mapping[str, int]:
        """All wordpieces and their ids."""
        ...


class ModelConfig(Protocol):
    """The config of a model; its other fields depend on the model type."""

    @property
    def model_type(self) -> str:
        """`bert`, `roberta` and so on."""
        ...

    def to_dict(self) -> dict[str, object]:
        """All fields."""
        ...


class PretrainedModel(Protocol):
    """A model of transformers, with or without a head."""

    @property
    def config(self) -> ModelConfig:
        """Its config."""
        ...

    @property
    def base_model_prefix(self) -> str:
        """How the names of the weights begin that are not of the head."""
        ...

    def get_input_embeddings(self) -> torch.nn.Embedding:
        """The table of embeddings, a row for each piece of the vocabulary."""
        ...

    def state_dict(self) -> Mapping[str, Tensor]:
        """All weights by name."""
        ...

    def eval(self) -> Self:
        """The same model, dropout switched off."""
        ...

    def to(self, device: torch.device, /) -> Self:
        """The same model, moved to a device."""
        ...
