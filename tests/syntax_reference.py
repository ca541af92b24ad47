"""What `syntax-heads` must find, by plain transformers and plain loops."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import numpy as np
import torch
import transformers as hf

from bertology.data.corpus import Corpus
from bertology.model.encoder import Encoder
from bertology.results.result import Result

_PARTS = ("hits", "special", "elsewhere", "links")


def check(result: Result, encoder: Encoder, corpus: Corpus) -> None:
    """The shares of every relation, direction and head, counted word by word."""
    counts = _counted(encoder, corpus)
    table = result.table("links").query("share.notna()")
    for (relation, direction), rows in table.groupby(["relation", "direction"]):
        hits, special, elsewhere, links = (counts[relation, direction, part] for part in _PARTS)
        assert links > 0
        assert np.allclose(rows["share"], (hits / links).ravel(), atol=1e-6), relation
        assert np.allclose(rows["share_with_special"], (special / links).ravel(), atol=1e-6)
        chosen = ((hits - elsewhere) / links).ravel()
        # Two words that get the same but for rounding may be taken either way, in one head or two.
        apart = np.abs(rows["selectivity"].to_numpy() - chosen)
        assert (apart < 1e-5).sum() >= len(apart) - 2, relation
        assert apart.max() < 0.01, relation


def _counted(encoder: Encoder, corpus: Corpus) -> Counter[Any]:
    model: hf.PreTrainedModel = copy.deepcopy(encoder.model)
    model.set_attn_implementation("eager")
    counts: Counter[Any] = Counter()
    for example in corpus:
        text = encoder.tokenizer(example.text, return_tensors="pt", return_offsets_mapping=True)
        spans = text.pop("offset_mapping")[0].tolist()
        with torch.inference_mode():
            attentions = model(**text, output_attentions=True).attentions
        maps = torch.stack(attentions)[:, 0].double().numpy()  # (layers, heads, T, T)
        pieces = _pieces(example, spans)
        words = [w for w, of in enumerate(pieces) if of]
        to = np.stack([maps[..., of].sum(-1) for of in (pieces[w] for w in words)], -1)
        weights = np.stack([to[:, :, of].mean(2) for of in (pieces[w] for w in words)], 2)
        alone = [p for p, (a, b) in enumerate(spans) if a == b]
        special = np.stack([maps[:, :, of][..., alone].mean(2).max(-1)
                            for of in (pieces[w] for w in words)], 2)  # fmt: skip
        weights[:, :, range(len(words)), range(len(words))] = -1
        best, most = weights.argmax(-1), weights.max(-1)
        for name, head, word in _links(example):
            if head not in words or word not in words:
                continue
            h, w = words.index(head), words.index(word)
            for direction, s, t in (("to-dependent", h, w), ("to-head", w, h)):
                found = (best == t).astype(float)
                others = [v for v in range(len(words)) if v not in (s, t)]
                elsewhere = found[:, :, others].mean(2) if others else found[:, :, s]
                counts[name, direction, "hits"] = counts[name, direction, "hits"] + found[:, :, s]
                beaten = special[:, :, s] > most[:, :, s]
                counts[name, direction, "special"] = counts[name, direction, "special"] + np.where(
                    beaten, 0.0, found[:, :, s]
                )
                counts[name, direction, "elsewhere"] = (
                    counts[name, direction, "elsewhere"] + elsewhere
                )
                counts[name, direction, "links"] += 1
    return counts


def _pieces(example: Any, spans: list[list[int]]) -> list[list[int]]:
    """The pieces of each word: a piece belongs to the word that it shares most characters with."""
    found: list[list[int]] = []
    at, words = 0, []
    for word in example.get("words"):
        start = example.text.index(word, at)
        at = start + len(word)
        words.append((start, at))
        found.append([])
    for piece, (a, b) in enumerate(spans):
        shared = [min(b, end) - max(a, start) for start, end in words]
        if b > a and max(shared) > 0:
            found[int(np.argmax(shared))].append(piece)
    return found


def _links(example: Any) -> list[tuple[str, int, int]]:
    """Name, head and word, under every name that counts it."""
    heads, relations = example.get("heads"), example.get("relations")
    found = []
    for word, (head, relation) in enumerate(zip(heads, relations, strict=True)):
        if head < 0:
            continue
        base, _, subtype = relation.partition(":")
        names = [base, f"{base}:{subtype or 'plain'}", *(["all"] if base != "punct" else [])]
        found += [(name, head, word) for name in names]
        governed = relations[head].partition(":")[0] in ("nmod", "obl")
        if relation == "case" and governed and heads[head] not in (-1, word):
            found.append(("prep", heads[head], word))
    return found
