"""Silence for the libraries below, unless the user asks to hear them.

Settings travel as environment variables, because most of them are read when a library is first
imported and because worker processes inherit them. `BERTOLOGY_VERBOSE=1` (or `bertology -v`)
leaves everything as the libraries would have it.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings

VERBOSE_VARIABLE = "BERTOLOGY_VERBOSE"

_ENVIRONMENT = {
    "TRANSFORMERS_VERBOSITY": "error",
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
    "DATASETS_VERBOSITY": "error",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_VERBOSITY": "error",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "RAY_DEDUP_LOGS": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}
# What does not speak through warnings speaks through these loggers.
_LOGGERS = ("transformers", "datasets", "huggingface_hub", "ray", "fsspec", "filelock", "urllib3")
_WARNERS = r"(transformers|datasets|huggingface_hub|tokenizers|torch|ray|multiprocess|tqdm)(\..*)?$"


def is_verbose() -> bool:
    """Whether the user wants to hear the libraries below."""
    return os.environ.get(VERBOSE_VARIABLE, "") not in ("", "0")


def be_verbose() -> None:
    """Let the libraries speak, here and in worker processes started from here."""
    os.environ[VERBOSE_VARIABLE] = "1"
    for name, value in _ENVIRONMENT.items():
        if os.environ.get(name) == value:
            del os.environ[name]


def hush() -> None:
    """Silence the libraries below; a setting the user made in the environment stands."""
    if is_verbose():
        return
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module=_WARNERS)
    _hush_what_is_imported()


def _hush_what_is_imported() -> None:
    # Environment variables come too late for a library that the user imported before us.
    if (transformers := sys.modules.get("transformers")) is not None:
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
    if (datasets := sys.modules.get("datasets")) is not None:
        datasets.utils.logging.set_verbosity_error()
        datasets.disable_progress_bars()
