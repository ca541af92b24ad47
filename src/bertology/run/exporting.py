"""`bertology.export_model`: a model as one file to deploy, in one call."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bertology.data.corpus import Corpus
from bertology.errors import StoreError
from bertology.quiet import hush
from bertology.run.loading import ModelSource, resolve_corpus

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder
    from bertology.train.exporting import Exported

_BUNDLED = "grammar-entailment"  # pairs of sentences, so both token types are tried


def export_model(
    model: Encoder | ModelSource | str,
    to: str | Path,
    *,
    format: str = "pt2",
    texts: Corpus | str = _BUNDLED,
    force: bool = False,
    **reading: Any,
) -> Exported:
    """Write a classifier as one file that needs neither its Python classes nor this package.

    Args:
        model: A loaded encoder, or a name or folder; also one that was pruned.
        to: The folder for the file, with its tokenizer, labels and card.
        format: `pt2`, PyTorch's own (`torch.export`), or `onnx`, which needs the extra `onnx`.
        texts: On which texts the file is compared with the model, and timed: data by name or path.
        force: Replace what is already in the folder.
        **reading: How data that are named are read, as `load_corpus` takes it: `split`, `root`,
            columns.

    Returns:
        How the file compares with the model; `sentence` says it.

    Example:
        >>> print(bt.export_model("small", "deploy", format="onnx").sentence)  # doctest: +SKIP
    """
    hush()
    from bertology.model.exported import check_format
    from bertology.train.exporting import export_to

    check_format(format)
    place = Path(to)
    if not force and place.is_dir() and any(place.iterdir()):
        raise StoreError(
            f"{place} is not empty.", hint="Choose another folder, or replace it with --force."
        )
    corpus = resolve_corpus(texts, must_have_task=False, **{"limit": 64, **reading})
    source = ModelSource(model, device="cpu") if isinstance(model, str) else model
    encoder = source.load("classification") if isinstance(source, ModelSource) else source
    return export_to(place, encoder, corpus, format=format)
