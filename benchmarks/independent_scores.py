"""BLiMP and LAMA once more, by a script that uses nothing of the project but its weights.

Only torch and transformers read the model and ask it: one row for each masked token, padded in
plain batches. BLiMP: the share of pairs whose good sentence has the larger pseudo-log-likelihood
(later pieces of a word are masked too). LAMA's T-REx: P@1, P@10, P@100 and the mean reciprocal rank
of facts whose object is one piece; other objects of the same question do not count.
`--beside` asks the project the same. `--peer PYTHON` names an interpreter that has `minicons`
(in its own environment); its pseudo-log-likelihoods are set beside the plain ones.

    python benchmarks/independent_scores.py FOLDER --root DATA [--pairs 50] [--facts 50]
        [--device cpu] [--beside] [--peer PYTHON]

Numbers are for each of BLiMP's 67 sets and each of T-REx's 41 relations; 0 takes all.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForMaskedLM, AutoTokenizer

_PEER = """
import json, sys, torch
from minicons.scorer import MaskedLMScorer
from transformers import AutoModelForMaskedLM, AutoTokenizer
folder, texts = json.load(sys.stdin)
model = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32)
scorer = MaskedLMScorer(model, "cpu", tokenizer=AutoTokenizer.from_pretrained(folder))
total = lambda x: x.sum(0).item()
found = []
for at in range(0, len(texts), 16):
    found += scorer.sequence_score(
        texts[at : at + 16], reduction=total, PLL_metric="within_word_l2r")
print("scores:" + json.dumps([float(x) for x in found]))
"""


def rows_of(path: Path, most: int) -> list[dict[str, object]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines[: most or None]]


class Plain:
    """A masked LM of transformers, asked row by row."""

    def __init__(self, folder: str, device: str) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        # The weights are stored as float16, in which a CPU is slow and inexact.
        model = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32)
        self.model = model.eval().to(device)
        self.device = device

    def at_masks(self, rows: list[list[int]], places: list[int], batch: int = 256):
        """Log-probabilities of the vocabulary at one place of each row, in batches."""
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        for at in range(0, len(order), batch):
            some = order[at : at + batch]
            width = max(len(rows[i]) for i in some)
            ids = torch.full((len(some), width), self.tokenizer.pad_token_id)
            mask = torch.zeros_like(ids)
            for row, i in enumerate(some):
                ids[row, : len(rows[i])] = torch.tensor(rows[i])
                mask[row, : len(rows[i])] = 1
            given = {"input_ids": ids.to(self.device), "attention_mask": mask.to(self.device)}
            with torch.no_grad():
                logits = self.model(**given).logits
            wanted = torch.tensor([places[i] for i in some], device=self.device)
            own = logits[torch.arange(len(some), device=self.device), wanted]
            yield some, torch.log_softmax(own.float(), -1)

    def likelihoods(self, texts: list[str]) -> np.ndarray:
        rows, places, targets, owner = [], [], [], []
        for number, text in enumerate(texts):
            tokens = self.tokenizer(text)
            ids, words = tokens["input_ids"], tokens.word_ids()
            for p in range(1, len(ids) - 1):
                later = [q for q in range(p, len(ids) - 1) if words[q] == words[p]]
                row = list(ids)
                for q in later:
                    row[q] = self.tokenizer.mask_token_id
                rows.append(row)
                places.append(p)
                targets.append(ids[p])
                owner.append(number)
        totals = np.zeros(len(texts))
        for some, scores in self.at_masks(rows, places):
            for row, i in enumerate(some):
                totals[owner[i]] += float(scores[row, targets[i]])
        return totals


def blimp(plain: Plain, asked: argparse.Namespace) -> None:
    folder = next(p.parent for p in Path(asked.root, "blimp").rglob("adjunct_island.jsonl"))
    right, good_bad, ours = [], [], []
    for path in sorted(folder.glob("*.jsonl")):
        rows = rows_of(path, asked.pairs)
        good = [str(r["sentence_good"]) for r in rows]
        bad = [str(r["sentence_bad"]) for r in rows]
        scores = plain.likelihoods(good + bad)
        right.append((scores[: len(rows)] > scores[len(rows) :]).mean())
        good_bad += [*zip(good + bad, scores, strict=True)]
    print(f"BLiMP, {len(good_bad) // 2} pairs of {len(right)} sets: {100 * np.mean(right):.2f} %")
    if asked.beside:
        import bertology as bt

        encoder = bt.load(asked.folder, device=asked.device, head="mlm")
        found = bt.pseudo_log_likelihood(encoder, [text for text, _ in good_bad])
        ours = np.array([s.total for s in found])
        gap = np.abs(ours - [s for _, s in good_bad]).max()
        parts, at = [], 0
        for path in sorted(folder.glob("*.jsonl")):
            n = len(rows_of(path, asked.pairs))
            parts.append((ours[at : at + n] > ours[at + n : at + 2 * n]).mean())
            at += 2 * n
        print(f"  bertology: {100 * np.mean(parts):.2f} %; largest difference of a score {gap:.1e}")
    if asked.peer:
        sample = good_bad[:: max(1, len(good_bad) // 400)]
        told = subprocess.run(
            [asked.peer, "-c", _PEER], input=json.dumps([asked.folder, [t for t, _ in sample]]),
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        line = next(x for x in told.splitlines() if x.startswith("scores:"))
        gaps = np.abs(np.subtract(json.loads(line[7:]), [s for _, s in sample]))
        tokens = [len(plain.tokenizer(t)["input_ids"]) - 2 for t, _ in sample]
        print(
            f"  minicons: largest difference of {len(sample)} scores {gaps.max():.1e}, "
            f"for each token {(gaps / tokens).max():.1e}"
        )


def lama(plain: Plain, asked: argparse.Namespace) -> None:
    root = next(p.parent for p in Path(asked.root, "lama").rglob("relations.jsonl"))
    tokenizer, mask = plain.tokenizer, plain.tokenizer.mask_token_id
    relations = rows_of(root / "relations.jsonl", 0)
    ranks, macro = [], []
    for relation in relations:
        path = root / "TREx" / f"{relation['relation']}.jsonl"
        if not path.exists():
            continue
        rows, places, wanted, texts = [], [], [], []
        same: dict[str, set[int]] = defaultdict(set)
        for fact in rows_of(path, asked.facts):
            piece = tokenizer(str(fact["obj_label"]), add_special_tokens=False)["input_ids"]
            if len(piece) != 1 or piece[0] == tokenizer.unk_token_id:
                continue
            text = str(relation["template"]).replace("[X]", str(fact["sub_label"]))
            ids = tokenizer(text.replace("[Y]", tokenizer.mask_token))["input_ids"]
            same[text].add(piece[0])
            rows.append(ids)
            places.append(ids.index(mask))
            wanted.append(piece[0])
            texts.append(text)
        found = np.zeros(len(rows))
        for some, scores in plain.at_masks(rows, places):
            for row, i in enumerate(some):
                others = torch.tensor(sorted(same[texts[i]] - {wanted[i]}), dtype=torch.long)
                kept = scores[row].clone()
                kept[others.to(kept.device)] = -torch.inf
                found[i] = 1 + int((kept > kept[wanted[i]]).sum())
        ranks.append(found)
        macro.append((found == 1).mean() if len(found) else np.nan)
    every = np.concatenate(ranks)
    print(
        f"T-REx, {len(every)} facts of one piece, {len(ranks)} relations: "
        f"P@1 {100 * (every == 1).mean():.2f} (mean over relations {100 * np.nanmean(macro):.2f}), "
        f"P@10 {100 * (every <= 10).mean():.2f}, P@100 {100 * (every <= 100).mean():.2f}, "
        f"MRR {(1 / every).mean():.4f}"
    )


def main() -> None:
    """Both benchmarks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--root", required=True)
    parser.add_argument("--pairs", type=int, default=50)
    parser.add_argument("--facts", type=int, default=50)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--beside", action="store_true")
    parser.add_argument("--peer")
    asked = parser.parse_args()
    plain = Plain(asked.folder, asked.device)
    blimp(plain, asked)
    lama(plain, asked)


if __name__ == "__main__":
    main()
