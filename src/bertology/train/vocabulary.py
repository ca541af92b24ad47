"""WordPiece vocabularies, made the same way every time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Protocol

from bertology.errors import DataError
from bertology.train.protocols import Tokenizer

SPECIAL = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}


def wordpieces(
    texts: Callable[[], Iterable[str]],
    *,
    vocab_size: int,
    max_length: int,
    lowercase: bool = True,
    alphabet: int = 1000,
) -> Tokenizer:
    """A WordPiece tokenizer of at most `vocab_size` pieces, trained on `texts()`.

    `texts` is called twice, so nothing has to be kept in memory. Characters beyond the `alphabet`
    most frequent ones become [UNK]. Pairs of texts get segments 0 and 1.
    """
    import tokenizers
    import transformers
    from tokenizers import models, normalizers, pre_tokenizers, processors, trainers

    pieces = tokenizers.Tokenizer(models.WordPiece(unk_token=SPECIAL["unk"]))
    pieces.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    pieces.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    letters = _letters(texts(), pieces.normalizer, most=min(alphabet, vocab_size // 4))
    # The trainer numbers inner characters as its hash table has them, differently each time, and
    # breaks ties between merges by these numbers. Given up front, in order, they stay as they are.
    first = [*SPECIAL.values(), *(f"##{c}" for c in letters)]
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size,
        special_tokens=first,
        initial_alphabet=letters,
        limit_alphabet=len(letters),
        show_progress=False,
    )
    pieces.train_from_iterator(texts(), trainer)
    # A new tokenizer of the same pieces: in this one, "##a" is a mark and no longer a piece.
    trained = tokenizers.Tokenizer(models.WordPiece(pieces.get_vocab(), unk_token=SPECIAL["unk"]))
    trained.normalizer, trained.pre_tokenizer = pieces.normalizer, pieces.pre_tokenizer
    trained.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(mark, trained.token_to_id(mark)) for mark in ("[CLS]", "[SEP]")],
    )
    tokenizer: Tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=trained,
        model_max_length=max_length,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **{f"{name}_token": mark for name, mark in SPECIAL.items()},
    )
    return tokenizer


class _Normalizer(Protocol):
    def normalize_str(self, sequence: str) -> str: ...


def _letters(texts: Iterable[str], normalizer: _Normalizer, *, most: int) -> list[str]:
    """The most frequent characters after normalising, in the order of their code points."""
    raw: Counter[str] = Counter()
    for text in texts:
        raw.update(text)
    counts: Counter[str] = Counter()
    # Normalising works character by character, so that distinct ones need to be done once only.
    for letter, count in raw.items():
        for c in normalizer.normalize_str(letter):
            counts[c] += count
    kept = sorted((c for c in counts if not c.isspace()), key=lambda c: (-counts[c], c))[:most]
    if not kept:
        raise DataError("There is no text to make a vocabulary from.")
    return sorted(kept)
