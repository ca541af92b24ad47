"""A classifier as one file that runs without its Python classes: PyTorch's own format, or ONNX.

Where heads or MLPs were cut, layers differ in size, which no config of transformers can say. An
exported file needs no config: it holds the computation itself, for any number of texts of any
length that the model takes.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from bertology.errors import CapabilityError, MissingExtraError, UnknownNameError
from bertology.model.compressed.bilstm import MODEL_TYPE
from bertology.model.compressed.forms import PARTIAL, compressed_forms, make_weights
from bertology.model.compressed.onnx_maps import as_whole_numbers

if TYPE_CHECKING:
    from bertology.model.encoder import Encoder

FORMATS = ("pt2", "onnx")
_OUTPUT = "logits"
_EXTRA = ("onnx", "onnxscript", "onnxruntime")  # the modules of the optional extra

Inputs = Mapping[str, Tensor]
Runs = Callable[[Inputs], Tensor]  # from inputs to logits (B, classes)


class _Logits(nn.Module):
    """The model as a function from named inputs to its logits."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """(B, classes)"""
        # By name, as some families know no token types.
        more = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        logits: Tensor = self.model(
            input_ids=input_ids, attention_mask=attention_mask, **more
        ).logits
        return logits


def check_format(name: str) -> None:
    """Refuse, before any work, a format that is not known or whose libraries are missing."""
    if name not in FORMATS:
        raise UnknownNameError("format", name, FORMATS)
    if name == "onnx" and not all(find_spec(module) for module in _EXTRA):
        raise MissingExtraError("onnx", needed_for="Export to ONNX")


def export_file(encoder: Encoder, example: Inputs, path: Path, *, format: str) -> None:
    """Write the model to one file. `example` has at least two texts of two tokens.

    The number of texts and their length stay open, up to the longest that the model takes. An ONNX
    file of a quantised model holds whole numbers; in a .pt2 file, weights have 32 bits.
    """
    check_format(format)
    # Refuse a model that decides in the pass what it computes: a file holds one computation
    forms = [name for name in compressed_forms(encoder.config) if name in PARTIAL]
    lstm = encoder.config.model_type == MODEL_TYPE and format != "onnx"  # which has rows of lengths
    if forms or lstm:
        what = forms[0].replace("_", " ") if forms else "a BiLSTM"
        other = "Try --format onnx, or use" if lstm else "Use"
        raise CapabilityError(
            f"{encoder.name!r} cannot be exported as {format}: with {what}, the texts of a batch "
            "decide what is computed, and such a file holds one computation for all texts.",
            hint=f"{other} the folder itself: bt.load opens it wherever bertology is installed.",
        )
    batch = torch.export.Dim("batch", min=1)
    length = torch.export.Dim("length", min=2, max=encoder.max_length)
    shapes = {name: {0: batch, 1: length} for name in example}
    module, inputs = _Logits(encoder.model).eval(), dict(example)
    make_weights(encoder.model)
    write = _write_onnx if format == "onnx" else _write_pt2
    try:
        with encoder.turn(), torch.no_grad(), _quietly():
            write(module, inputs, shapes, path)
    except Exception as error:  # tracing fails in many ways, all of them the model's code
        cause = error.__cause__ or error
        first = next(iter(str(cause).strip().splitlines()), type(cause).__name__)
        raise CapabilityError(
            f"{encoder.family.title} models cannot be exported as {format}: their code does not "
            f"allow texts of any length ({first})",
            hint="Try the other --format. BERT, RoBERTa, ELECTRA, DistilBERT, ALBERT and MPNet can "
            "be exported in both.",
        ) from error


def _write_pt2(module: nn.Module, inputs: dict[str, Tensor], shapes: Any, path: Path) -> None:
    program = torch.export.export(module, (), kwargs=inputs, dynamic_shapes=shapes)
    torch.export.save(program, path)


def _write_onnx(module: nn.Module, inputs: dict[str, Tensor], shapes: Any, path: Path) -> None:
    with as_whole_numbers(module):
        program = torch.onnx.export(
            module,
            (),
            kwargs=inputs,
            dynamic_shapes=shapes,
            input_names=list(inputs),
            output_names=[_OUTPUT],
            dynamo=True,
            external_data=False,
            verbose=False,
        )
    assert program is not None
    program.save(path)


def open_file(path: Path) -> Runs:
    """What a file that we wrote computes.

    Only for such files: reading a .pt2 of another's making may run code that is pickled in it.
    """
    if path.suffix == ".onnx":
        return _open_onnx(path)
    with _quietly():
        program = torch.export.load(path).module()

    def run(inputs: Inputs) -> Tensor:
        with torch.no_grad():
            logits: Tensor = program(**inputs)
            return logits

    return run


def _open_onnx(path: Path) -> Runs:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()  # as many as torch has
    options.log_severity_level = 3  # errors only
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def run(inputs: Inputs) -> Tensor:
        given = {name: value.cpu().numpy() for name, value in inputs.items()}
        return torch.from_numpy(session.run([_OUTPUT], given)[0])

    return run


@contextmanager
def _quietly() -> Iterator[None]:
    """The exporters speak of what is not the reader's: libraries they miss, calls they replace."""
    loggers = [logging.getLogger(name) for name in ("torch", "onnxscript")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
