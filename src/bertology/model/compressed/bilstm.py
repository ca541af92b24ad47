"""A classifier that is no transformer: a BiLSTM over static vectors of wordpieces.

As in Tang et al. (2019), who distilled BERT into it: the last states of both directions go through
one hidden layer. A pair of texts is read by the same BiLSTM, one text at a time, and compared as
u, v, |u - v|, u * v; where a text ends is seen by its separator. transformers opens it by its model
type, and `bt.load` as any classifier; there is no attention to look at.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForSequenceClassification
from transformers.configuration_utils import PretrainedConfig
from transformers.modeling_outputs import SequenceClassifierOutput
from transformers.modeling_utils import PreTrainedModel

from bertology.errors import BertologyError
from bertology.model.compressed.onnx_lstm import last_states
from bertology.model.siamese import PairTokens, split_pairs

MODEL_TYPE = "bertology_bilstm"


class BiLSTMConfig(PretrainedConfig):  # type: ignore[misc]
    """Sizes of a BiLSTM classifier; `first` and `separator` tell the texts of a pair apart."""

    model_type = MODEL_TYPE

    vocab_size: int = 30522
    embedding_size: int = 300
    hidden_size: int = 150
    classifier_size: int = 200
    num_hidden_layers: int = 1
    num_attention_heads: int = 1
    dropout: float = 0.0
    pairs: bool = False
    first_token_id: int = 101
    separator_token_id: int = 102
    pad_token_id: int = 0


class BiLSTMForSequenceClassification(PreTrainedModel):  # type: ignore[misc]
    """input_ids, attention_mask -> logits."""

    config_class = BiLSTMConfig
    base_model_prefix = "bilstm"
    main_input_name = "input_ids"

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.bilstm = BiLSTM(config)
        width = 2 * config.hidden_size * (4 if config.pairs else 1)
        self.dropout = nn.Dropout(config.dropout)
        self.dense = nn.Linear(width, config.classifier_size)
        self.classifier = nn.Linear(config.classifier_size, config.num_labels)
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        """The static vectors."""
        return self.bilstm.embeddings

    def set_input_embeddings(self, table: nn.Embedding) -> None:
        """Other static vectors."""
        self.bilstm.embeddings = table

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        **more: Any,
    ) -> Any:
        """Rows of tokens (B, T) -> logits (B, labels); segments are seen by the separators."""
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        if self.config.pairs:
            tokens = PairTokens(
                self.config.first_token_id,
                self.config.separator_token_id,
                self.config.pad_token_id or 0,
            )
            rows = input_ids.shape[0]
            input_ids, mask = split_pairs(input_ids, mask, tokens)
        states = self.bilstm(input_ids, mask)
        if self.config.pairs:
            u, v = states[:rows], states[rows:]
            states = torch.cat([u, v, (u - v).abs(), u * v], dim=-1)
        inner = self.dense(self.dropout(states)).relu()
        return SequenceClassifierOutput(logits=self.classifier(self.dropout(inner)))

    def _init_weights(self, module: nn.Module) -> None:
        """Torch has drawn them already."""


class BiLSTM(nn.Module):
    """Rows of tokens -> the last states of both directions."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(config.vocab_size, config.embedding_size)
        self.lstm = nn.LSTM(
            config.embedding_size,
            config.hidden_size,
            config.num_hidden_layers,
            batch_first=True,
            bidirectional=True,
        )

    def forward(self, pieces: Tensor, mask: Tensor) -> Tensor:
        """(B, T) -> (B, 2 hidden); what comes after a row's last real token changes nothing."""
        lengths = mask.sum(1).clamp(min=1)
        vectors = self.embeddings(pieces)
        if torch.onnx.is_in_onnx_export():
            return last_states(self.lstm, vectors, lengths)
        packed = nn.utils.rnn.pack_padded_sequence(
            vectors, lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        _, (last, _) = self.lstm(packed)  # (2 layers, B, hidden)
        return torch.cat([last[-2], last[-1]], dim=-1)


def make(
    vectors: Tensor,
    *,
    labels: int,
    hidden: int = 150,
    classifier: int = 200,
    layers: int = 1,
    dropout: float = 0.0,
    pair_tokens: tuple[int, int] | None = None,
    padding: int = 0,
    generator: torch.Generator | None = None,
) -> BiLSTMForSequenceClassification:
    """A BiLSTM classifier over these vectors (pieces, width), such as those of a teacher's table.

    For pairs of texts, `pair_tokens` are the tokenizer's first token and its separator.
    """
    if vectors.dim() != 2 or labels < 1:
        raise BertologyError("vectors are a row for each piece, and there is at least one label.")
    first, separator = pair_tokens or (0, 0)
    config = BiLSTMConfig(
        vocab_size=vectors.shape[0],
        embedding_size=vectors.shape[1],
        hidden_size=hidden,
        classifier_size=classifier,
        num_hidden_layers=layers,
        dropout=dropout,
        pairs=pair_tokens is not None,
        first_token_id=first,
        separator_token_id=separator,
        pad_token_id=padding,
        num_labels=labels,
    )
    seed = 0 if generator is None else generator.initial_seed()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: BiLSTMForSequenceClassification = BiLSTMForSequenceClassification(config)
    with torch.no_grad():
        model.bilstm.embeddings.weight.copy_(vectors)
    model.eval()
    return model


AutoConfig.register(MODEL_TYPE, BiLSTMConfig, exist_ok=True)
AutoModelForSequenceClassification.register(
    BiLSTMConfig, BiLSTMForSequenceClassification, exist_ok=True
)
