"""Tiny random models of every family, and a tokenizer, made on the spot."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
import transformers as hf
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

SIZE = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4}
MLP = {"intermediate_size": 40}
VOCAB = 60


_ROBERTA = {"max_position_embeddings": 40, "pad_token_id": 1}
_RELATIVE = {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "pad_token_id": 0}
_V3 = {"position_buckets": 8, "share_att_key": True, "norm_rel_ebd": "layer_norm"}
_BERT_LIKE = {"vocab_size": VOCAB, **SIZE, **MLP}
_MOBILE = {"embedding_size": 16, "intra_bottleneck_size": 16, "num_feedforward_networks": 2}
_ALBERT = {"embedding_size": 16, "num_hidden_groups": 2, "num_hidden_layers": 4}
_MODERN = {
    "local_attention": 4, "global_attn_every_n_layers": 2, "pad_token_id": 0, "bos_token_id": 2,
    "eos_token_id": 3, "cls_token_id": 2, "sep_token_id": 3,
}  # fmt: skip
_DISTIL = {"vocab_size": VOCAB, "dim": 24, "n_layers": 3, "n_heads": 4, "hidden_dim": 40}
_XLNET = {"vocab_size": VOCAB, "d_model": 24, "n_layer": 3, "n_head": 4, "d_inner": 40}
_XLM = {
    "vocab_size": VOCAB, "emb_dim": 24, "n_layers": 3, "n_heads": 4, "max_position_embeddings": 64,
}  # fmt: skip
_GPT2 = {
    "vocab_size": VOCAB, "n_embd": 24, "n_layer": 3, "n_head": 4, "n_positions": 64,
    "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0,
}  # fmt: skip
_BART = {
    "vocab_size": VOCAB, "d_model": 24, "encoder_layers": 3, "decoder_layers": 2,
    "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 40,
    "decoder_ffn_dim": 40, "max_position_embeddings": 64,
}  # fmt: skip
_T5 = {"vocab_size": VOCAB, "d_model": 24, "d_kv": 6, "d_ff": 40, "num_layers": 3, "num_heads": 4}

# name -> (prefix of the transformers classes, arguments of the config)
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("Bert", _BERT_LIKE),
    "roberta": ("Roberta", _BERT_LIKE | _ROBERTA),
    "xlm-roberta": ("XLMRoberta", _BERT_LIKE | _ROBERTA),
    "camembert": ("Camembert", _BERT_LIKE | _ROBERTA),
    "electra": ("Electra", _BERT_LIKE | {"embedding_size": 16}),
    "distilbert": ("DistilBert", _DISTIL),
    "albert": ("Albert", _BERT_LIKE | _ALBERT),
    "mobilebert": ("MobileBert", _BERT_LIKE | _MOBILE),
    "modernbert": ("ModernBert", _BERT_LIKE | _MODERN),
    "mpnet": ("MPNet", _BERT_LIKE | {"max_position_embeddings": 40}),
    "deberta": ("Deberta", _BERT_LIKE | _RELATIVE),
    "deberta-v2": ("DebertaV2", _BERT_LIKE | _RELATIVE),
    "deberta-v3": ("DebertaV2", _BERT_LIKE | _RELATIVE | _V3),
    "xlnet": ("XLNet", _XLNET),
    "xlm": ("XLM", _XLM),
    "gpt2": ("GPT2", _GPT2),
    "bart": ("Bart", _BART),
    "t5": ("T5", _T5),
}
_CLASSES = {"base": "Model", "classification": "ForSequenceClassification", "mlm": "ForMaskedLM"}
_EXCEPTIONS = {
    "T5Model": "T5EncoderModel",
    "XLMForMaskedLM": "XLMWithLMHeadModel",
    "BartForMaskedLM": "BartForConditionalGeneration",
}


def config(name: str) -> Any:
    """The config of a tiny model."""
    prefix, arguments = ROWS[name]
    return getattr(hf, f"{prefix}Config")(**arguments)


def model(name: str, head: str = "base", *, seed: int = 0, spread: float = 0.25) -> Any:
    """A tiny random model. Weights are spread out so that attention is far from uniform."""
    wanted = ROWS[name][0] + _CLASSES[head]
    kind = getattr(hf, _EXCEPTIONS.get(wanted, wanted))

    def make() -> Any:
        torch.manual_seed(seed)
        made = kind(config(name)).eval()
        with torch.no_grad():
            for parameter in made.parameters():
                if parameter.dim() > 1:
                    parameter.mul_(spread / parameter.std().clamp_min(1e-6))
        return made

    return copied(f"{wanted} {seed} {spread} {json.dumps(ROWS[name])}", make)


_MADE: dict[str, tuple[Any, torch.Tensor]] = {}


def copied(name: str, make: Callable[[], Any]) -> Any:
    """A copy of a model that is made once: transformers takes longer to make one than it seems.

    Random numbers go on from where making it leaves them, as if it were made each time.
    """
    if name not in _MADE:
        made = make()
        _MADE[name] = made, torch.get_rng_state()
    kept, state = _MADE[name]
    torch.set_rng_state(state)
    return copy.deepcopy(kept)


def inputs(*, batch: int = 3, length: int = 9, seed: int = 0) -> dict[str, torch.Tensor]:
    """Random token ids with padding on the right, no two examples of the same length."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, VOCAB, (batch, length), generator=generator)
    mask = torch.ones_like(ids)
    for i in range(batch):
        mask[i, length - 2 * i :] = 0
    return {"input_ids": ids, "attention_mask": mask}


def tokenizer(words: list[str], *, max_length: int = 64) -> Any:
    """A lower-casing wordpiece tokenizer over exactly these pieces."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {piece: i for i, piece in enumerate([*special, *dict.fromkeys(words)])}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=backend,
        model_max_length=max_length,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


@cache
def bundled_tokens() -> Any:
    """The tokenizer of the bundled model, which is loaded for it once."""
    from bertology.model.encoder import Encoder
    from bertology.model.loading.names import DEFAULT_MODEL

    return Encoder.load(DEFAULT_MODEL, device="cpu").tokenizer


def save_reader(folder: Path, *, layers: int = 2) -> Path:
    """A tiny random BERT that reads as the bundled one does, in a folder."""
    tokens = bundled_tokens()
    torch.manual_seed(0)
    config = hf.BertConfig(
        vocab_size=len(tokens), hidden_size=16, num_hidden_layers=layers, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=96,
    )  # fmt: skip
    hf.BertForMaskedLM(config).save_pretrained(folder)
    tokens.save_pretrained(folder)
    return folder
