"""Shards: the text comes back as it went in, and held-out documents stay out of training."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertology.errors import DataError, ParameterError, StoreError
from bertology.train.pretrain.shards import HELD_OUT, Dealing, Shard, Shards, open_shards, prepare
from bertology.train.pretrain.text import Document

TENTH = Dealing(held_out=0.1)


def _read(shard: Shard) -> list[list[list[int]]]:
    """Documents of sentences of ids, by plain loops."""
    found = []
    for d in range(len(shard.documents) - 1):
        numbers = range(shard.documents[d], shard.documents[d + 1])
        found.append(
            [shard.tokens[shard.sentences[i] : shard.sentences[i + 1]].tolist() for i in numbers]
        )
    return found


def _ids(tokenizer: Any, document: Document) -> list[list[int]]:
    encoded = [tokenizer.encode(s, add_special_tokens=False) for s in document.sentences]
    encoded[-1].append(tokenizer.sep_token_id)
    return encoded


def test_every_document_is_in_one_shard_as_it_was(
    documents: list[Document], tokenizer: Any, tmp_path: Path
) -> None:
    dealing = Dealing(held_out=0.15, shards=3, seed=4)
    shards = prepare(tmp_path / "s", documents, tokenizer, dealing=dealing)
    assert shards.names == ("shard-00000", "shard-00001", "shard-00002")
    for name in (*shards.names, HELD_OUT):
        mine = [d for i, d in enumerate(documents) if dealing.shard_of(i) == name]
        assert _read(shards.open(name)) == [_ids(tokenizer, d) for d in mine]


def test_held_out_documents_are_never_trained_on(
    shards: Shards, documents: list[Document], tokenizer: Any
) -> None:
    kept = {str(d) for d in _read(shards.open(HELD_OUT))}
    seen = {str(d) for name in shards.names for d in _read(shards.open(name))}
    assert kept
    assert not kept & seen
    assert kept | seen == {str(_ids(tokenizer, d)) for d in documents}


def test_the_numbers_beside_the_shards(shards: Shards, tokenizer: Any) -> None:
    text = _read(shards.open("shard-00000"))
    flat = [i for d in text for s in d for i in s]
    assert shards.documents == len(text)
    assert shards.sentences == sum(len(d) for d in text)
    assert shards.tokens == len(flat)
    assert shards.held_out_tokens == len(shards.open(HELD_OUT).tokens)
    assert shards.counts.tolist() == [flat.count(i) for i in range(len(tokenizer))]
    assert shards.vocab_size == len(tokenizer)
    assert shards.special == {
        n: getattr(tokenizer, f"{n}_token_id") for n in ("cls", "sep", "pad", "mask", "unk")
    }
    pieces = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    assert shards.continues == tuple(i for i, p in enumerate(pieces) if p.startswith("##"))
    assert shards.open("shard-00000").entities is None
    assert shards.open("shard-00000").labels is None


def test_marks_in_the_text_are_text(tokenizer: Any, tmp_path: Path) -> None:
    documents = [Document(("ba [SEP] ba [MASK].", "[PAD] [CLS]"))] * 30
    shards = prepare(tmp_path / "s", documents, tokenizer, dealing=TENTH)
    special = {shards.special[n] for n in ("cls", "sep", "pad", "mask")}
    for document in _read(shards.open("shard-00000")):
        flat = [i for s in document for i in s]
        assert flat.index(shards.special["sep"]) == len(flat) - 1
        assert not special & set(flat[:-1])
    # The tokenizer itself is as it was.
    assert tokenizer.encode("[MASK]", add_special_tokens=False) == [tokenizer.mask_token_id]


def test_sentences_without_a_piece_are_left_out(tokenizer: Any, tmp_path: Path) -> None:
    documents = [Document(("ba ke.", "\u200b", "li.")), Document(("\u200b",))] * 30
    shards = prepare(tmp_path / "s", documents, tokenizer, dealing=TENTH)
    everything = [d for n in (*shards.names, HELD_OUT) for d in _read(shards.open(n))]
    assert everything == [_ids(tokenizer, Document(("ba ke.", "li.")))] * 30


def test_entities_are_marked_piece_by_piece(
    entity_shards: Shards, entity_documents: list[Document], tokenizer: Any
) -> None:
    shard = entity_shards.open("shard-00000")
    assert shard.entities is not None
    expected: list[int] = []
    for number, document in enumerate(entity_documents):
        if TENTH.shard_of(number) == HELD_OUT:
            continue
        assert document.entities is not None
        for sentence, spans in zip(document.sentences, document.entities, strict=True):
            coded = tokenizer(sentence, add_special_tokens=False, return_offsets_mapping=True)
            at = dict.fromkeys(range(len(sentence)), 0)
            for k, (a, b) in enumerate(spans, 1):
                at |= dict.fromkeys(range(a, b), k)
            last = 0
            for a, _ in coded["offset_mapping"]:
                expected.append(0 if not at[a] else 1 if at[a] != last else 2)
                last = at[a]
        expected.append(0)
    assert shard.entities.tolist() == expected
    assert set(expected) == {0, 1, 2}


def test_of_nested_entities_the_longest_counts(tokenizer: Any, tmp_path: Path) -> None:
    spans = ((3, 6), (0, 11))
    for order in (spans, spans[::-1]):
        documents = [Document(("ba win nu ke.",), (order,))] * 30
        shard = prepare(tmp_path / "s", documents, tokenizer, dealing=TENTH).open(HELD_OUT)
        assert shard.entities is not None
        row = shard.entities[: shard.sentences[1]].tolist()
        assert row[0] == 1
        assert set(row[1:-3]) == {2}


def test_labels_go_with_their_documents(
    labelled_shards: Shards, labelled_documents: list[Document]
) -> None:
    assert labelled_shards.labels == ("good", "bad", "mixed")
    shard = labelled_shards.open("shard-00000")
    assert shard.labels is not None
    mine = [d for i, d in enumerate(labelled_documents) if TENTH.shard_of(i) != HELD_OUT]
    assert [labelled_shards.labels[i] for i in shard.labels] == [d.label for d in mine]


def test_the_same_text_gives_the_same_files(
    documents: list[Document], tokenizer: Any, shards: Shards, tmp_path: Path
) -> None:
    again = prepare(tmp_path / "s", iter(documents), tokenizer, dealing=TENTH)
    assert replace(again, folder=shards.folder) == shards
    names = sorted(f.name for f in shards.folder.iterdir())
    assert names == sorted(f.name for f in again.folder.iterdir())
    for name in names:
        assert (shards.folder / name).read_bytes() == (again.folder / name).read_bytes()


def test_the_fingerprint_is_of_all_that_can_be_learnt(tokenizer: Any, tmp_path: Path) -> None:
    def fingerprint(documents: list[Document], dealing: Dealing = TENTH) -> str:
        return prepare(tmp_path / "s", documents, tokenizer, dealing=dealing).fingerprint

    texts = [
        [Document(("ba ke.", "li mo."))] * 30,
        [Document(("ba ke. li mo.",))] * 30,
        [Document(("ba ke.", "li mo."), label="x")] * 30,
        [Document(("ba ke.", "li mo."), label="y")] * 30,
        [Document(("ba ke.", "li mo."), (((0, 2),), ()))] * 30,
        [Document(("ba ke.", "li mo."), (((3, 5),), ()))] * 30,
    ]
    found = [fingerprint(t) for t in texts]
    assert len(set(found)) == len(texts)
    assert fingerprint(texts[0], Dealing(held_out=0.1, seed=1)) not in found
    assert fingerprint(texts[0]) == found[0]


@given(
    st.integers(0, 10**9),
    st.floats(0.001, 0.999),
    st.integers(1, 9),
    st.integers(0, 5),
)
def test_dealing_is_a_function_into_the_shards(
    number: int, held_out: float, shards: int, seed: int
) -> None:
    dealing = Dealing(held_out, shards, seed)
    name = dealing.shard_of(number)
    assert name in {HELD_OUT, *(f"shard-{i:05d}" for i in range(shards))}
    assert name == Dealing(held_out, shards, seed).shard_of(number)


def test_dealing_gives_every_shard_its_share() -> None:
    dealing = Dealing(held_out=0.2, shards=4)
    counts: dict[str, int] = {}
    for i in range(5000):
        counts[dealing.shard_of(i)] = counts.get(dealing.shard_of(i), 0) + 1
    assert len(counts) == 5
    for count in counts.values():
        assert abs(count - 1000) < 4 * np.sqrt(5000 * 0.2 * 0.8)


def test_dealing_says_what_it_needs() -> None:
    for share in (0.0, 1.0):
        with pytest.raises(ParameterError, match="between 0 and 1"):
            Dealing(held_out=share)
    with pytest.raises(ParameterError, match="at least 1"):
        Dealing(shards=0)


@pytest.mark.parametrize(
    ("texts", "dealing", "problem"),
    [
        ([], TENTH, "no text"),
        ([Document(("\u200b",))], TENTH, "no text"),
        ([Document(("ba.",))], TENTH, "1 documents are too few for 1 shards"),
        ([Document(("ba.",))] * 5, Dealing(held_out=0.5, shards=40), "shard-000.* got none"),
        ([Document(("a",)), Document(("b",), label="x")], TENTH, "Document 2 has"),
        ([Document(("a",), ((),)), Document(("b",))], TENTH, "Document 2 has"),
    ],
)
def test_text_that_will_not_do_leaves_nothing_behind(
    tokenizer: Any, tmp_path: Path, texts: list[Document], dealing: Dealing, problem: str
) -> None:
    with pytest.raises(DataError, match=problem):
        prepare(tmp_path / "s", texts, tokenizer, dealing=dealing)
    assert not list(tmp_path.iterdir())


def test_what_was_there_stays_until_the_new_is_whole(
    documents: list[Document], tokenizer: Any, tmp_path: Path
) -> None:
    first = prepare(tmp_path / "s", documents, tokenizer, dealing=TENTH)

    def failing() -> Iterator[Document]:
        yield from documents[:9]
        raise DataError("Cut off.")

    with pytest.raises(DataError, match="Cut off"):
        prepare(tmp_path / "s", failing(), tokenizer, dealing=TENTH)
    assert open_shards(tmp_path / "s") == first
    second = prepare(tmp_path / "s", documents[9:], tokenizer, dealing=TENTH)
    assert second.fingerprint != first.fingerprint
    assert [f.name for f in tmp_path.iterdir()] == ["s"]


def test_what_is_not_shards_is_never_replaced(
    documents: list[Document], tokenizer: Any, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    for place in (tmp_path / "mine", tmp_path / "mine" / "thesis.txt"):
        with pytest.raises(StoreError, match="holds no shards"):
            prepare(place, documents, tokenizer, dealing=TENTH)
    with pytest.raises(StoreError, match="cannot be written"):
        prepare(tmp_path / "mine" / "thesis.txt" / "s", documents, tokenizer, dealing=TENTH)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "x"


def test_sources_and_progress(documents: list[Document], tokenizer: Any, tmp_path: Path) -> None:
    seen: list[int] = []
    shards = prepare(
        tmp_path / "s",
        documents,
        tokenizer,
        dealing=TENTH,
        sources=[{"file": "a.txt"}],
        advance=seen.append,
    )
    assert shards.sources == ({"file": "a.txt"},)
    assert sum(seen) == len(documents)


def test_damage_is_noticed(documents: list[Document], tokenizer: Any, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no shards"):
        open_shards(tmp_path)
    shards = prepare(tmp_path / "s", documents, tokenizer, dealing=TENTH)
    tokens = shards.folder / "shard-00000.tokens.bin"
    tokens.write_bytes(tokens.read_bytes()[:-2])
    with pytest.raises(StoreError, match=r"is incomplete: \d+ tokens expected"):
        shards.open("shard-00000")
    (shards.folder / "held-out.sentences.npy").unlink()
    with pytest.raises(StoreError, match="is incomplete"):
        shards.open(HELD_OUT)
    meta = json.loads((shards.folder / "shards.json").read_text())
    for broken, problem in (
        ("{", "holds no shards"),
        ("[]", "another version"),
        (json.dumps(meta | {"schema": 0}), "another version"),
        (json.dumps({k: v for k, v in meta.items() if k != "names"}), "damaged"),
        (json.dumps(meta | {"more": 1}), "damaged"),
    ):
        (shards.folder / "shards.json").write_text(broken)
        with pytest.raises(StoreError, match=problem):
            open_shards(shards.folder)


def test_a_tokenizer_without_a_mask_is_refused(documents: list[Document], tmp_path: Path) -> None:
    import transformers
    from tokenizers import Tokenizer, models

    plain: Any = transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]")),
        unk_token="[UNK]",
    )
    with pytest.raises(DataError, match="no cls, sep, pad, mask token"):
        prepare(tmp_path / "s", documents, plain)
    assert not list(tmp_path.iterdir())
