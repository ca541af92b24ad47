"""Studies of attention on treebanks of other languages: sentences of our own, any encoder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
import transformers as hf

import planted_links as planted
import tiny
from bertology.data.corpus import Corpus
from bertology.data.loading import load_corpus
from bertology.model.encoder import Encoder
from bertology.studies.attention.attention_change import AttentionChange
from bertology.studies.attention.attention_maps import AttentionMaps
from bertology.studies.attention.cls_attention import ClsAttention
from bertology.studies.attention.map_types import MapTypes
from bertology.studies.attention.relation_heads import RelationHeads
from bertology.studies.attention.syntax_heads import SyntaxHeads
from bertology.studies.attention.token_classes import TokenClasses
from bertology.studies.study import Context

Word = tuple[str, str, int, str]  # form, tag, head, relation


def german(subject: str, thing: str, verb: str) -> list[Word]:
    """The verb comes last: while the dog, under the table, sees the ball."""
    return [
        ("während", "SCONJ", 8, "mark"), ("der", "DET", 3, "det"), (subject, "NOUN", 8, "nsubj"),
        ("im", "ADP", 5, "case"), ("Garten", "NOUN", 8, "obl"), ("den", "DET", 7, "det"),
        (thing, "NOUN", 8, "obj"), (verb, "VERB", 0, "root"), (".", "PUNCT", 8, "punct"),
    ]  # fmt: skip


def japanese(subject: str, thing: str, verb: str) -> list[Word]:
    """No spaces, particles behind nouns, the verb last."""
    return [
        (subject, "NOUN", 5, "nsubj"), ("が", "ADP", 1, "case"), (thing, "NOUN", 5, "obj"),
        ("を", "ADP", 3, "case"), (verb, "VERB", 0, "root"), ("。", "PUNCT", 5, "punct"),
    ]  # fmt: skip


def later(sentence: list[Word], word: str, at: int) -> list[Word]:
    """The same with an adverb put in at a place, so that links stand elsewhere."""
    moved = [(f, t, h + (h > at), r) for f, t, h, r in sentence]
    root = next(i for i, (_, _, head, _) in enumerate(moved) if head == 0)
    return [*moved[:at], (word, "ADV", root + 2, "advmod"), *moved[at:]]


def treebank(path: Path, sentences: Sequence[list[Word]], *, spaces: bool) -> Corpus:
    rows = []
    for sentence in sentences:
        for i, (form, tag, head, relation) in enumerate(sentence, start=1):
            last = i >= len(sentence) - 1
            misc = "_" if spaces and not last else "SpaceAfter=No"
            rows.append(f"{i}\t{form}\t{form}\t{tag}\t_\t_\t{head}\t{relation}\t_\t{misc}")
        rows.append("")
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return load_corpus(path)


@pytest.fixture(params=["german", "japanese"])
def corpus(request: pytest.FixtureRequest, tmp_path: Path) -> Corpus:
    if request.param == "german":
        made = [german(s, o, v) for s in ("Hund", "Kater") for o in ("Ball", "Stein")
                for v in ("sieht", "holt", "fängt")]  # fmt: skip
        made = [later(s, "heute", 1) if i % 2 else s for i, s in enumerate(made)]
        return treebank(tmp_path / "de.conllu", made, spaces=True)
    made = [japanese(s, o, v) for s in ("犬", "猫") for o in ("球", "石") for v in ("見る", "取る")]
    made = [later(s, "今日", 0) if i % 2 else s for i, s in enumerate(made)]
    return treebank(tmp_path / "ja.conllu", made, spaces=False)


def encoder(corpus: Corpus, *, seed: int = 0) -> Encoder:
    """Any encoder will do; its vocabulary is that of the treebank."""
    words = sorted({w.lower() for e in corpus for w in e.get("words")})
    signs = sorted({c for w in words for c in w})
    pieces = tiny.tokenizer([*words, *signs, *(f"##{c}" for c in signs)])
    config = hf.BertConfig(
        vocab_size=len(pieces), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=16, max_position_embeddings=64,
    )  # fmt: skip
    torch.manual_seed(seed)
    return Encoder(hf.BertModel(config, add_pooling_layer=False).eval(), pieces, name="any")


def test_links_are_those_of_the_language(corpus: Corpus) -> None:
    study = SyntaxHeads(resamples=100, relations=("verb-subject", "noun-pronoun"))
    result = planted.ask(study, encoder(corpus), corpus)
    offsets = result.table("offsets").query("direction == 'forward'")
    offsets = offsets.set_index(["relation", "offset"])["share"].sort_index()
    before = -5 if "während" in corpus[0].text else -4
    assert offsets["verb-subject", before] == 1  # the subject, words before its verb
    assert set(result.table("links")["relation"]) == {"verb-subject", "noun-pronoun"}
    assert result.arrays.attrs["tagger"] == "the corpus"
    table = planted.ask(ClsAttention(resamples=100), encoder(corpus), corpus).table("classes")
    assert (table[table["class"] == "noun"]["n"] == len(corpus)).all()


def test_classes_and_relations_come_from_the_treebank(corpus: Corpus) -> None:
    one = encoder(corpus)
    classes = planted.ask(TokenClasses(resamples=100), one, corpus).table("heads")
    there = set(classes["class"])
    assert {"noun", "verb", "subject", "object", "punctuation", "cls", "sep"} <= there
    assert "negation" not in there  # the paper's 17 words are English
    study = RelationHeads(relation="nsubj", max_tokens=0)
    study.check(one, corpus)
    part = study.measure(one, corpus, *study.parts(one.shape, corpus), Context())
    linked = part["weight"].sel(pairs="linked")
    assert linked.sizes["sentence"] == len(corpus)  # every subject was found among the pieces
    assert (linked > 0).all()


def test_studies_of_maps_need_no_language(corpus: Corpus) -> None:
    one, before = encoder(corpus), encoder(corpus, seed=1)
    assert len(planted.ask(AttentionMaps(), one, corpus).table("heads")) == 4
    assert len(planted.ask(MapTypes(), one, corpus).table("heads")) == 4
    change = AttentionChange(before="other", resamples=100)
    assert len(planted.ask(change, one, corpus, before=before).table("heads")) == 4
