"""Tokenizers written so that version 4 and version 5 of transformers both read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bertology.train.protocols import Savable

_CONFIG = "tokenizer_config.json"
_ONLY_IN_5 = "TokenizersBackend"  # the class of a fast tokenizer in version 5
_IN_BOTH = "PreTrainedTokenizerFast"  # its name in version 4, which version 5 still knows
_OF_THE_SESSION = ("backend", "is_local", "local_files_only")  # how it was loaded, not what it is


def save_tokenizer(tokenizer: Savable, folder: Path) -> None:
    """Write the files of a tokenizer to `folder`; they give the same tokens in both versions."""
    tokenizer.save_pretrained(folder)
    file = folder / _CONFIG
    if not file.is_file():
        return
    config = json.loads(file.read_text(encoding="utf-8"))
    if config.get("tokenizer_class") == _ONLY_IN_5:
        config["tokenizer_class"] = _IN_BOTH
    kept = {name: value for name, value in config.items() if name not in _OF_THE_SESSION}
    file.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
