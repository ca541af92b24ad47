"""Models that plain transformers would misread have a `model_type` of their own, which it refuses.

Where parts are cut out, added or of another form, the weights are not those that the family's code
asks for. transformers would start the missing ones at random, and go on.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

# transformers quotes the type in its refusal: so this is where a reader learns what to do.
_OWN = "bertology-{family} (changed; load it with: import bertology as bt; bt.load('FOLDER'))"
_FAMILY = re.compile(r"bertology-([\w-]+) \(")


def family_name(model_type: str) -> str:
    """The `model_type` that the model has in transformers, whether it was changed or not."""
    changed = _FAMILY.match(model_type)
    return changed[1] if changed else model_type


def mark_changed(folder: Path) -> None:
    """Write the own type into the config.json of a model that only we load."""
    place = folder / "config.json"
    written = json.loads(place.read_text(encoding="utf-8"))
    written["model_type"] = _OWN.format(family=family_name(written["model_type"]))
    place.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")


def config_at(where: str | Path, **options: object) -> Any:
    """The config of a checkpoint, changed or not."""
    import transformers

    place = Path(where) / "config.json"
    written = (
        json.loads(place.read_text(encoding="utf-8"))
        if place.is_file()
        else transformers.PretrainedConfig.get_config_dict(where, **options)[0]
    )
    own = str(written.get("model_type", ""))
    family = family_name(own)
    if family == own:
        return transformers.AutoConfig.from_pretrained(where, **options)
    kind = transformers.AutoConfig.for_model(family)
    return kind.from_dict({**written, "model_type": family})
