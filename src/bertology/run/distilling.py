"""`bertology.distil_static`: one vector for each word, from a model's states in many contexts."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from bertology.data.corpus import Corpus, Example
from bertology.drafts import draft_file
from bertology.errors import DataError, InterruptedRunError, ParameterError, StoreError
from bertology.quiet import hush
from bertology.run.loading import Data, ModelSource, resolve_corpus
from bertology.run.progress import Progress, choose_progress

if TYPE_CHECKING:
    from bertology.annotated.word_contexts import ContextSums
    from bertology.model.encoder import Encoder

_TEXT_FILES = (".txt", ".txt.gz", ".txt.xz", ".txt.bz2")
_BLOCK = 512  # texts that are read together
_KEEP = 20.0  # seconds between two times that what was summed is kept
_MOST = 24e9  # bytes of sums


@dataclass(frozen=True)
class StaticVectors:
    """What was written, and from how much."""

    files: Mapping[int, Path]
    """By layer; -1 is what enters the first one."""
    words: int
    width: int
    occurrences: int
    texts: int
    rare: int
    """Different words that occur too rarely."""
    lost: int
    """Occurrences that were cut off, or have no piece of their own."""
    moved: float
    """How far the last power iteration turned the word that it turned most (1 − cosine)."""


@dataclass(frozen=True)
class _Settings:
    layers: tuple[int, ...]  # 0 is what enters the first layer
    method: str
    pooling: str
    min_count: int
    lower: bool
    passes: int


def distil_static(
    model: Encoder | ModelSource | str | Path,
    corpus: Data,
    to: str | Path,
    *,
    layers: Sequence[int] | str = (),
    method: str = "mean",
    pooling: str = "mean",
    iterations: int = 3,
    min_count: int = 5,
    case: str = "auto",
    split: str = "validation",
    limit: int | None = None,
    batch_tokens: int | None = None,
    force: bool = False,
    device: str = "auto",
    progress: bool | Progress | None = None,
    **reading: Any,
) -> StaticVectors:
    """Distil static vectors of words from a model, and write them in word2vec's text format.

    Args:
        model: A loaded encoder, or a name or folder.
        corpus: Where words are looked for: a name, a file, a folder, a hub id, or a corpus. Text
            files (`.txt`, also `.gz`, `.xz`, `.bz2`) are streamed, a text in each line.
        to: The file; with several layers, the layer is put into its name (`vectors.layer-3.txt`).
        layers: Layers from 0, -1 for what enters the first one, or "all"; by default the one a
            quarter of the way up.
        method: `mean` of all occurrences, or `component`, their first principal component.
        pooling: The state of an occurrence: that of its `first` or `last` piece, or the `mean`.
        iterations: Power iterations for the first component; each reads the corpus again.
        min_count: Words that occur less often are left out.
        case: `keep` or `lower`; `auto`: lower where the model does not tell capitals.
        split: Which split of a named corpus.
        limit: So many texts at most: drawn at random, of text files the first ones.
        batch_tokens: Tokens in one batch; by default chosen for the device.
        force: Replace files that are there.
        device: Where a named model computes.
        progress: Show a progress bar; by default on a terminal and in a notebook, and elsewhere
            a line every 30 seconds on standard error.
        **reading: How data that are named are read, as `load_corpus` takes it: `root`, columns.

    Returns:
        What was written.

    Example:
        >>> bt.distil_static("bertology-mini", "grammar", "vectors.txt")  # doctest: +SKIP
    """
    hush()
    place = Path(to)
    if place.is_dir() or not place.name:
        raise StoreError(f"{place} is a folder.", hint="Name a file, such as vectors.txt.")
    source = ModelSource(str(model), device=device) if isinstance(model, str | Path) else model
    encoder = source.load("base") if isinstance(source, ModelSource) else source
    chosen = _layers(layers, encoder.shape.layers)
    files = _files(place, chosen)
    if not force and (there := [str(file) for file in files.values() if file.exists()]):
        raise StoreError(
            f"{there[0]} is already there.", hint="Choose another file, or replace it with --force."
        )
    lower = case == "lower" or (case == "auto" and _ignores_case(encoder))
    settings = _Settings(
        tuple(layer + 1 for layer in chosen), method, pooling, min_count, lower,
        1 + (iterations if method == "component" else 0),
    )  # fmt: skip
    texts = _texts(corpus, split=split, limit=limit, **reading)
    return _distilled(
        encoder, texts, place, files, settings, batch_tokens or _tokens(encoder),
        choose_progress(progress),
    )  # fmt: skip


def _distilled(
    encoder: Encoder,
    texts: Callable[[], Iterator[Example]],
    place: Path,
    files: Mapping[int, Path],
    settings: _Settings,
    batch_tokens: int,
    bar: Progress,
) -> StaticVectors:
    """Count words, go through the texts, write."""
    from bertology.annotated.word_contexts import count_words
    from bertology.data.static_vectors import write_word_vectors

    counts, read = count_words(texts(), lower=settings.lower)
    often = (word for word, count in counts.items() if count >= settings.min_count)
    words = sorted(often, key=lambda word: (-counts[word], word))
    if not words:
        raise DataError(
            f"No word of {read:,} texts occurs {settings.min_count} times.",
            hint="Give more text, or a smaller --min-count.",
        )
    identity = [encoder.fingerprint, settings.__dict__, read, [(w, counts[w]) for w in words]]
    key = hashlib.sha256(json.dumps(identity).encode()).hexdigest()
    work = _Work(encoder, settings, words, read, texts, batch_tokens, _Kept(place, key))
    sums, lost = work.done(bar)
    seen = (sums.counts > 0).cpu().numpy()
    kept = [word for word, there in zip(words, seen, strict=True) if there]
    if not kept:
        raise DataError("No word has a piece of its own in the model's tokens.")
    place.parent.mkdir(parents=True, exist_ok=True)
    for file, vectors in zip(files.values(), sums.vectors(settings.method), strict=True):
        write_word_vectors(file, kept, vectors[seen])
    work.kept.remove()
    return StaticVectors(
        files, len(kept), encoder.shape.hidden, int(sums.counts.sum()), read,
        len(counts) - len(words), lost, sums.moved,
    )  # fmt: skip


def _layers(given: Sequence[int] | str, layers: int) -> tuple[int, ...]:
    """Layers from 0; -1 is what enters the first one."""
    if given == "all":
        return tuple(range(-1, layers))
    chosen = tuple(dict.fromkeys(int(layer) for layer in given)) or (layers // 4,)
    if not all(-1 <= layer < layers for layer in chosen):
        raise ParameterError("layers", "distil-static", f"lie between -1 and {layers - 1}", given)
    return chosen


def _files(place: Path, layers: Sequence[int]) -> dict[int, Path]:
    if len(layers) == 1:
        return {layers[0]: place}
    named = {layer: "input" if layer < 0 else f"layer-{layer}" for layer in layers}
    return {layer: place.with_name(f"{place.stem}.{n}{place.suffix}") for layer, n in named.items()}


def _ignores_case(encoder: Encoder) -> bool:
    encoder.require_tokenizer()
    return bool(
        encoder.tokenizer("Paris and ROME")["input_ids"]
        == encoder.tokenizer("paris and rome")["input_ids"]
    )


def _tokens(encoder: Encoder) -> int:
    """A narrow model needs many tokens to keep a GPU busy."""
    return 4096 if encoder.device.type == "cpu" else max(4096, 2**15 * 192 // encoder.shape.hidden)


def _texts(
    corpus: Data, *, split: str, limit: int | None, **reading: Any
) -> Callable[[], Iterator[Example]]:
    """A function that reads the texts from the beginning; files of plain text are not held."""
    if isinstance(corpus, str | Path) and str(corpus).endswith(_TEXT_FILES):
        from bertology.train.pretrain.text import find_files, read_documents

        files = find_files([corpus])

        def lines() -> Iterator[Example]:
            every = (text for one in read_documents(files) for text in one.sentences)
            for at, text in enumerate(islice(every, limit)):
                yield Example(str(at), text)

        return lines
    options = {"split": split, "limit": limit, **reading}
    whole: Corpus = resolve_corpus(corpus, must_have_task=False, **options)
    return lambda: iter(whole)


@dataclass
class _Work:
    """The passes over the texts; what was summed is kept now and then."""

    encoder: Encoder
    settings: _Settings
    words: Sequence[str]
    texts: int
    read: Callable[[], Iterator[Example]]
    batch_tokens: int
    kept: _Kept

    def done(self, bar: Progress) -> tuple[ContextSums, int]:
        """All passes, those that were made before this process left out."""
        from bertology.annotated.word_contexts import ContextSums
        from bertology.train.pretrain.processes import stoppable

        width, settings = self.encoder.shape.hidden, self.settings
        held = 8 * len(self.words) * width * len(settings.layers)
        held *= 1 if settings.passes < 2 else 3
        if held > _MOST:
            raise DataError(
                f"The sums of {len(self.words):,} words in {len(settings.layers)} layers would "
                f"take {held / 1e9:.0f} GB of memory.",
                hint="Leave out rarer words (--min-count), or name fewer layers (--layer).",
            )
        device = "cuda" if self.encoder.device.type == "cuda" else "cpu"  # others lack doubles
        sums = ContextSums(self.words, settings.layers, width, device=device)
        number, begun, lost = self.kept.load(sums)
        bar.start("distil-static", settings.passes * self.texts)
        bar.advance(number * self.texts + begun)
        try:
            # Half a block must never be kept, so Ctrl-C takes effect after the block under way.
            with stoppable() as stopped:
                while number < settings.passes:
                    lost = self._pass(sums, number, begun, lost, bar, stopped)
                    if settings.passes > 1:
                        sums.end_pass()
                    number, begun = number + 1, 0
                    if number < settings.passes:
                        self.kept.save(sums, number, 0, lost)
        finally:
            bar.stop()
        return sums, lost

    def _pass(
        self,
        sums: ContextSums,
        number: int,
        at: int,
        lost: int,
        bar: Progress,
        stopped: Event,
    ) -> int:
        """One pass from a text on; the number of occurrences that the first pass could not use."""
        from bertology.annotated.word_contexts import add_contexts

        texts, told = islice(self.read(), at, None), time.monotonic()
        while block := list(islice(texts, _BLOCK)):
            missed = add_contexts(
                self.encoder,
                block,
                sums,
                pooling=self.settings.pooling,
                lower=self.settings.lower,
                batch_tokens=self.batch_tokens,
                advance=bar.advance,
            )
            at, lost = at + len(block), lost + (missed if number == 0 else 0)
            if stopped.is_set() or time.monotonic() - told > _KEEP:
                self.kept.save(sums, number, at, lost)
                told = time.monotonic()
            if stopped.is_set():
                raise InterruptedRunError(
                    f"Stopped after {number * self.texts + at:,} of "
                    f"{self.settings.passes * self.texts:,} texts; what was summed is kept.",
                    hint="The same command continues.",
                )
        return lost


class _Kept:
    """A file beside the vectors with what was summed so far; only for the same work."""

    def __init__(self, place: Path, key: str) -> None:
        self.key, self.path = key, place.with_name(f".{place.name}.progress")

    def save(self, sums: ContextSums, number: int, at: int, lost: int) -> None:
        """Whole, or not at all."""
        from safetensors.numpy import save_file

        about = {"key": self.key, "pass": number, "texts": at, "lost": lost, "moved": sums.moved}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with draft_file(self.path) as draft:
                save_file(sums.arrays(), draft, metadata={k: str(v) for k, v in about.items()})
        except OSError as problem:
            raise StoreError(
                f"What was summed cannot be kept in {self.path.parent}: "
                f"{problem.strerror or problem}.",
                hint="Choose another place with --to, or make room.",
            ) from None

    def load(self, sums: ContextSums) -> tuple[int, int, int]:
        """The pass, the text, and lost occurrences to go on with; zeros from the beginning."""
        from safetensors import SafetensorError, safe_open

        if not self.path.is_file():
            return 0, 0, 0
        try:
            with safe_open(self.path, framework="np") as file:
                about = file.metadata() or {}
                if about.get("key") != self.key:
                    return 0, 0, 0
                sums.restore({name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
        except (SafetensorError, OSError):
            return 0, 0, 0  # it is written anew
        sums.moved = float(about["moved"])
        return int(about["pass"]), int(about["texts"]), int(about["lost"])

    def remove(self) -> None:
        """When the vectors are written."""
        self.path.unlink(missing_ok=True)
