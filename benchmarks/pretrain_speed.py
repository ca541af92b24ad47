"""Our pre-training loop against the one that people write, in one run on one device.

The usual loop: transformers' BertForPreTraining under autocast to bfloat16 with SDPA, a DataLoader
over rows that are tokenized already, DataCollatorForLanguageModeling in four workers, the
model's own loss (so logits at all positions), AdamW, a linear schedule, clipping; not compiled.
Both loops have the same shape, tokens per update and dropout. They take turns, a stretch of
steps each.

Ceiling: the rate of an 8192³ matrix product in the same run; and of the narrow product that the
model is made of. Operations per token are counted by formula (`pretrain/cost.py`), with the
output layer at the hidden positions only: what both loops would need.

Usage: python benchmarks/pretrain_speed.py [--turns 5] [--stretch 40] [--batch-tokens 131072]
The text is random, made on the spot.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from machine import describe, product_rate, wait
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch.utils.data import DataLoader, Dataset

from bertology.quiet import hush
from bertology.train.fresh import Architecture
from bertology.train.pretrain.config import Phase, Pretraining
from bertology.train.pretrain.cost import training_flops
from bertology.train.pretrain.log import StepReport
from bertology.train.pretrain.loop import pretrain
from bertology.train.pretrain.shards import Dealing, Shards, prepare
from bertology.train.pretrain.text import Document
from bertology.train.vocabulary import SPECIAL

SENTENCES, WORDS = 20, 25  # of a document, of a sentence
WARM_UP = 2  # stretches of ours that are not counted: compiling is among them


def tokenizer_of(vocab_size: int) -> Any:
    """Every word of the random text is one piece."""
    pieces = [*SPECIAL.values(), *(f"w{i}" for i in range(vocab_size - len(SPECIAL)))]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    made: Any = Tokenizer(models.WordPiece(vocabulary, unk_token=SPECIAL["unk"]))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(mark, vocabulary[mark]) for mark in ("[CLS]", "[SEP]")],
    )
    names = {f"{name}_token": mark for name, mark in SPECIAL.items()}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, **names)


def documents(tokens: int, vocab_size: int) -> Iterator[Document]:
    """Words as unevenly frequent as real ones are: embeddings' gradients notice."""
    draw = np.random.default_rng(0)
    names = np.array([f"w{i}" for i in range(vocab_size - len(SPECIAL))])
    upto = np.cumsum(1 / np.arange(1, len(names) + 1))
    for _ in range(-(-tokens // (SENTENCES * WORDS))):
        drawn = np.searchsorted(upto, upto[-1] * draw.random((SENTENCES, WORDS)))
        yield Document(tuple(" ".join(row) for row in names[drawn].tolist()))


class TokenizedRows(Dataset[dict[str, Any]]):
    """Pairs of segments as `datasets` would give them: lists of numbers."""

    def __init__(self, shards: Shards, rows: int, length: int) -> None:
        tokens = np.asarray(shards.open(shards.names[0]).tokens, np.int64)
        ordinary = tokens[tokens != shards.special["sep"]]
        half = (length - 3) // 2
        rest = length - 3 - half
        count = min(rows, len(ordinary) // (half + rest))
        cut = ordinary[: count * (half + rest)].reshape(count, -1)
        cls, sep = (np.full((count, 1), shards.special[n]) for n in ("cls", "sep"))
        self.ids = np.concatenate([cls, cut[:, :half], sep, cut[:, half:], sep], axis=1)
        special = [0] * length
        special[0] = special[half + 1] = special[-1] = 1
        self.shared = {
            "token_type_ids": [0] * (half + 2) + [1] * (rest + 1),
            "attention_mask": [1] * length,
            "special_tokens_mask": special,
        }

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {
            "input_ids": self.ids[index].tolist(),
            **self.shared,
            "next_sentence_label": index % 2,
        }


class UsualLoop:
    """What people write."""

    def __init__(self, given: argparse.Namespace, shards: Shards, tokenizer: Any) -> None:
        hf: Any = transformers
        self.device, self.batch_tokens = given.device, given.batch_tokens
        torch.manual_seed(0)
        config = hf.BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=given.hidden,
            num_hidden_layers=given.layers,
            num_attention_heads=given.heads,
            intermediate_size=4 * given.hidden,
            max_position_embeddings=given.length,
            hidden_dropout_prob=given.dropout,
            attention_probs_dropout_prob=given.dropout,
            attn_implementation="sdpa",
        )
        self.model = hf.BertForPreTraining(config).to(given.device).train()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, weight_decay=0.01)
        self.schedule = hf.get_linear_schedule_with_warmup(self.optimizer, 100, 100_000)
        rows = given.batch_tokens // given.length
        self.loader = DataLoader(
            TokenizedRows(shards, 64 * rows, given.length),
            batch_size=rows,
            shuffle=True,
            drop_last=True,
            num_workers=given.data_workers,
            pin_memory=given.device.startswith("cuda"),
            persistent_workers=given.data_workers > 0,
            collate_fn=hf.DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15),
        )
        self.batches = self._endless()

    def _endless(self) -> Iterator[dict[str, torch.Tensor]]:
        while True:
            yield from self.loader

    def run(self, steps: int) -> float:
        """Tokens per second."""
        wait(self.device)
        started = time.perf_counter()
        for step in range(1, steps + 1):
            batch = next(self.batches)
            moved = {k: v.to(self.device, non_blocking=True) for k, v in batch.items()}
            # On a CPU our loop computes in float32, so this one does too.
            with torch.autocast("cuda", torch.bfloat16, enabled=self.device.startswith("cuda")):
                loss = self.model(**moved).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.schedule.step()
            self.optimizer.zero_grad()
            if step % 10 == 0:
                loss.item()
        wait(self.device)
        return steps * self.batch_tokens / (time.perf_counter() - started)


def measured(
    given: argparse.Namespace, shards: Shards, tokenizer: Any
) -> tuple[list[float], list[float]]:
    """Tokens per second of ours and of the usual loop, stretch by stretch in turns."""
    usual = UsualLoop(given, shards, tokenizer)
    usual.run(given.stretch)  # workers start, memory is taken
    ours: list[float] = []
    theirs: list[float] = []
    heard = 0

    def take_turns(report: StepReport) -> None:
        nonlocal heard
        heard += 1
        if heard > WARM_UP:
            ours.append(report.tokens_per_second)
            theirs.append(usual.run(given.stretch))

    recipe = Pretraining(
        model=Architecture(
            layers=given.layers,
            heads=given.heads,
            hidden=given.hidden,
            vocab_size=given.vocab_size,
            max_length=given.length,
            dropout=given.dropout,
        ),
        steps=(WARM_UP + given.turns) * given.stretch,
        batch_tokens=given.batch_tokens,
        phases=(Phase(length=given.length),),
        learning_rate=1e-4,
        log_every=given.stretch,
        evaluate_every=10**9,
        save_every=10**9,
    )
    pretrain(recipe, shards, tokenizer, device=given.device, progress=take_turns)
    return ours, theirs


def main() -> None:
    arguments = argparse.ArgumentParser()
    add = arguments.add_argument
    for name, default in (("layers", 12), ("heads", 12), ("hidden", 192), ("vocab-size", 16384)):
        add(f"--{name}", type=int, default=default)
    add("--length", type=int, default=128)
    add("--dropout", type=float, default=0.0)
    add("--batch-tokens", type=int, default=131072)
    add("--text-tokens", type=int, default=9_000_000)
    add("--data-workers", type=int, default=4)
    add("--turns", type=int, default=5)
    add("--stretch", type=int, default=40)
    add("--product", type=int, default=8192)
    add("--device", default="cuda")
    given = arguments.parse_args()
    hush()
    tokenizer = tokenizer_of(given.vocab_size)
    with tempfile.TemporaryDirectory() as folder:
        shards = prepare(
            Path(folder) / "shards",
            documents(given.text_tokens, given.vocab_size),
            tokenizer,
            dealing=Dealing(held_out=0.02),
        )
        rates = measured(given, shards, tokenizer)
    tell(given, *rates)


def tell(given: argparse.Namespace, ours: list[float], theirs: list[float]) -> None:
    dtype = torch.bfloat16 if given.device.startswith("cuda") else torch.float32
    options: Any = {"dtype": dtype, "device": given.device}
    ceiling = product_rate(given.product, given.product, given.product, **options)
    wide = product_rate(given.batch_tokens, given.hidden, 4 * given.hidden, **options)
    back = product_rate(given.batch_tokens, 4 * given.hidden, given.hidden, **options)
    narrow = 2 / (1 / wide + 1 / back)
    per_token = training_flops(
        given.layers, given.hidden, length=given.length, vocab_size=given.vocab_size
    )
    print(describe() + "\n")
    print(f"{given.layers}×{given.heads}×{given.hidden}, vocabulary {given.vocab_size}, rows of "
          f"{given.length}, {given.batch_tokens} tokens per update, dropout {given.dropout:g}; "
          f"{len(ours)} stretches of {given.stretch} updates each, in turns")  # fmt: skip
    print(f"{per_token / 1e6:.1f} M operations per token; matrix product {ceiling / 1e12:.1f} T/s, "
          f"narrow ones {narrow / 1e12:.1f} T/s\n")  # fmt: skip
    print("| loop | tokens per second (lowest–highest) | ratio | T/s | of the product "
          "| of the narrow product |")  # fmt: skip
    print("|---|---|---|---|---|---|")
    base = float(np.median(theirs))
    for name, rates in (("usual", theirs), ("ours", ours)):
        middle = float(np.median(rates))
        used = middle * per_token
        print(f"| {name} | {middle:,.0f} ({min(rates):,.0f}–{max(rates):,.0f}) | "
              f"{middle / base:.2f} | {used / 1e12:.2f} | {used / ceiling:.1%} | "
              f"{used / narrow:.1%} |")  # fmt: skip
    pairs = [a / b for a, b in zip(ours, theirs, strict=True)]
    print(f"\nratio stretch by stretch: {min(pairs):.2f} to {max(pairs):.2f}")


if __name__ == "__main__":
    main()
