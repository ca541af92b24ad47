"""Look into BERT-like encoders, switch off parts of them, and judge what the literature says.

    import bertology as bt

    encoder = bt.load()  # the bundled model; or a folder, or a Hugging Face id
    trace = encoder.run("The keys to the cabinet are here.", record="layer.*.head.*.pattern")
    result = bt.run("attention-maps", encoder, corpus="grammar")
    result.plot(), result.table()

Everything public is here and is imported when it is first used, so `import bertology` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bertology.annotated.map_types.single import map_type as map_type
    from bertology.annotated.trees.single import sentence_tree as sentence_tree
    from bertology.data.corpus import Corpus as Corpus
    from bertology.data.corpus import Example as Example
    from bertology.data.corpus import Field as Field
    from bertology.data.corpus import Task as Task
    from bertology.data.loading import load_corpus as load_corpus
    from bertology.errors import BertologyError as BertologyError
    from bertology.model.encoder import Encoder as Encoder
    from bertology.model.interventions import GateHead as GateHead
    from bertology.model.interventions import GateLayer as GateLayer
    from bertology.model.interventions import GateMLP as GateMLP
    from bertology.model.interventions import KnockOutEdges as KnockOutEdges
    from bertology.model.interventions import MeanHead as MeanHead
    from bertology.model.interventions import Patch as Patch
    from bertology.model.interventions import SetDimensions as SetDimensions
    from bertology.model.interventions import SkipLayer as SkipLayer
    from bertology.model.interventions import UniformAttention as UniformAttention
    from bertology.model.interventions import ZeroDimensions as ZeroDimensions
    from bertology.model.interventions import ZeroHead as ZeroHead
    from bertology.model.loading.names import steps as steps
    from bertology.model.loading.pruning import prune_heads as prune_heads
    from bertology.model.masked_lm.cloze import cloze as cloze
    from bertology.model.masked_lm.scoring import compare_pairs as compare_pairs
    from bertology.model.masked_lm.scoring import pseudo_log_likelihood as pseudo_log_likelihood
    from bertology.model.reducers.statistics import AttentionStatistics as AttentionStatistics
    from bertology.model.weight_edits import ReplaceWeights as ReplaceWeights
    from bertology.model.weight_edits import ZeroLayerNorm as ZeroLayerNorm
    from bertology.report.export import export as export
    from bertology.results.result import Result as Result
    from bertology.results.store import Store as Store
    from bertology.run.api import run as run
    from bertology.run.asking import ask as ask
    from bertology.run.compressing import compress as compress
    from bertology.run.exporting import export_model as export_model
    from bertology.run.finetuning import finetune as finetune
    from bertology.run.pruning import prune as prune
    from bertology.run.scoring import score as score
    from bertology.server.view_page import view as view
    from bertology.studies import STUDIES as STUDIES
    from bertology.studies import table as _table
    from bertology.studies.study import Study as Study

    load = Encoder.load
    studies = _table

__version__ = "0.2.0"

_INTERVENTIONS = (
    "GateHead",
    "GateLayer",
    "GateMLP",
    "KnockOutEdges",
    "MeanHead",
    "Patch",
    "SetDimensions",
    "SkipLayer",
    "UniformAttention",
    "ZeroDimensions",
    "ZeroHead",
)
_WEIGHT_EDITS = ("ReplaceWeights", "ZeroLayerNorm")
_HOMES = {
    "AttentionStatistics": "bertology.model.reducers.statistics",
    "BertologyError": "bertology.errors",
    "Corpus": "bertology.data.corpus",
    "Encoder": "bertology.model.encoder",
    "Example": "bertology.data.corpus",
    "Field": "bertology.data.corpus",
    "Result": "bertology.results.result",
    "STUDIES": "bertology.studies",
    "Store": "bertology.results.store",
    "Study": "bertology.studies.study",
    "Task": "bertology.data.corpus",
    "ask": "bertology.run.asking",
    "cloze": "bertology.model.masked_lm.cloze",
    "compare_pairs": "bertology.model.masked_lm.scoring",
    "compress": "bertology.run.compressing",
    "distil_static": "bertology.run.distilling",
    "export": "bertology.report.export",
    "export_model": "bertology.run.exporting",
    "finetune": "bertology.run.finetuning",
    "load": "bertology.model.encoder",
    "load_corpus": "bertology.data.loading",
    "map_type": "bertology.annotated.map_types.single",
    "prune": "bertology.run.pruning",
    "prune_heads": "bertology.model.loading.pruning",
    "pseudo_log_likelihood": "bertology.model.masked_lm.scoring",
    "run": "bertology.run.api",
    "score": "bertology.run.scoring",
    "sentence_tree": "bertology.annotated.trees.single",
    "steps": "bertology.model.loading.names",
    "studies": "bertology.studies",
    "view": "bertology.server.view_page",
    **dict.fromkeys(_INTERVENTIONS, "bertology.model.interventions"),
    **dict.fromkeys(_WEIGHT_EDITS, "bertology.model.weight_edits"),
}

__all__ = [
    "__version__",
    *sorted(_HOMES),
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from bertology.quiet import hush

    hush()  # before the libraries below are imported: most read their settings only then
    if name in ("Result", "Store"):
        import_module("bertology.studies")  # or stored results would be read as plain ones
    module = import_module(_HOMES[name])
    if name == "studies":
        return module  # which can be called
    if name == "load":
        return module.Encoder.load
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted(__all__)
