"""A corpus as text to pre-train on, prepared once for all the runs that are compared on it."""

from __future__ import annotations

import getpass
import shutil
import tempfile
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from bertology.data.corpus import Corpus, Example
from bertology.drafts import draft_folder
from bertology.errors import ModelError, StoreError
from bertology.train.pretrain.shards import HELD_OUT, Dealing, Shards, open_shards, prepare
from bertology.train.pretrain.text import Document
from bertology.train.protocols import Tokenizer

_SPECIAL = ("cls", "sep", "pad", "mask", "unk")


def check_tokenizer(tokenizer: Tokenizer, name: str) -> None:
    """Refuse a vocabulary that fresh models cannot be trained with."""
    missing = [s for s in _SPECIAL if getattr(tokenizer, f"{s}_token_id", None) is None]
    pieces = getattr(tokenizer, "backend_tokenizer", None)
    if missing or pieces is None or type(pieces.model).__name__ != "WordPiece":
        why = f"no {', '.join(missing)} token" if missing else "no WordPiece vocabulary"
        raise ModelError(
            f"Fresh models cannot take their vocabulary from {name!r}: it has {why}.",
            hint="Give a BERT, or a folder with a BERT's tokenizer.json.",
        )


def documents_of(corpus: Corpus, size: int) -> Iterator[Document]:
    """Every example is a sentence (a pair is two), and `size` examples in a row a document."""
    for start in range(0, len(corpus), size):
        chosen = [corpus.examples[i] for i in range(start, min(start + size, len(corpus)))]
        yield Document(tuple(s for example in chosen for s in _sentences(example)))


def _sentences(example: Example) -> list[str]:
    return [text for text in (example.text, example.text_b) if text]


def prepare_trial_text(
    tokenizer: Tokenizer,
    corpus: Corpus,
    *,
    document_size: int = 8,
    held_out: float = 0.1,
    folder: Path | None = None,
) -> Shards:
    """The corpus as shards, in a folder that all processes on this machine share.

    By default it lies where temporary files do. The same text is found there again; if two
    processes prepare it at once, one of them comes first and both use what it made.
    """
    pieces = tokenizer.backend_tokenizer.to_str()
    asked = repr((corpus.fingerprint, document_size, held_out, pieces)).encode()
    home = _home() if folder is None else folder
    place = home / blake2b(asked, digest_size=12).hexdigest()
    found = _complete(place)
    if found is not None:
        return found
    with draft_folder(place) as draft:
        prepare(
            draft,
            documents_of(corpus, document_size),
            tokenizer,
            dealing=Dealing(held_out=held_out),
            sources=[{"name": corpus.name, "fingerprint": corpus.fingerprint}],
        )
        return _moved(draft, place)


def _home() -> Path:
    # Everybody's own: on a shared machine another user's folder could not be written to.
    home = Path(tempfile.gettempdir()) / f"bertology-text-{getpass.getuser()}"
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"The text cannot be prepared in {home}: {error.strerror or error}.",
            hint="Set TMPDIR to a folder you may write to.",
        ) from error
    return home


def _complete(place: Path) -> Shards | None:
    """The shards in a folder, if all of their files are there: temporary ones may be swept away."""
    try:
        shards = open_shards(place)
        for name in (HELD_OUT, *shards.names):
            shards.open(name)
    except StoreError:
        return None
    return shards


def _moved(draft: Path, place: Path) -> Shards:
    """Put finished shards in their place, unless somebody else's are there by now."""
    try:
        draft.rename(place)
    except OSError:
        found = _complete(place)
        if found is not None:
            return found
        shutil.rmtree(place, ignore_errors=True)  # what was left of an older one
        draft.rename(place)
    return open_shards(place)
