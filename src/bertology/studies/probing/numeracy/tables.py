"""Tables of numeracy: groups at their best layers, layers, single numbers, fine-tuned models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bertology.annotated.numbers import FAR, NEAR, PIECES
from bertology.studies.probing.numeracy.scores import BASELINES, GroupScores, apart, mean_of

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from bertology.stats import Estimate

Key = tuple[str, str]


def by_group(
    seen: Mapping[Key, GroupScores], gains: Mapping[Key, Estimate], *, level: float
) -> pd.DataFrame:
    """The layer that dev picks, beside its baselines; bounds hold for all rows together."""
    import pandas as pd

    rows, each = [], 1 - (1 - level) / len(seen)
    for key, one in seen.items():
        near, far = one.best(NEAR), one.best(FAR)
        copies = one.copies_share()
        rows.append(
            {
                "writing": key[0],
                "group": key[1],
                "layer": one.layer,
                **_bounds("near", one.share(near, NEAR, each)),
                **_bounds("far", one.share(far, FAR, each)),
                **{kind: one.base_share(kind, NEAR) for kind in BASELINES},
                **{f"far_{kind}": one.base_share(kind, FAR) for kind in BASELINES},
                "input": float(one.right(one.said[NEAR][:, 0], NEAR).mean()),
                "shuffled": float(np.mean(copies)) if copies else np.nan,
                **_bounds("gain", gains[key]),
                **one.errors(near, NEAR),
                **{f"far_{name}": x for name, x in one.errors(far, FAR).items()},
                "numbers": one.sizes(NEAR),
                "far_numbers": one.sizes(FAR),
            }
        )
    return pd.DataFrame(rows)


def by_layer(seen: Mapping[Key, GroupScores], *, level: float) -> pd.DataFrame:
    """One row for each writing, group and layer (-1 is the input)."""
    import pandas as pd

    rows = []
    every = sum(one.said[NEAR].shape[1] for one in seen.values())
    each = 1 - (1 - level) / every
    for (writing, group), one in seen.items():
        for layer in range(one.said[NEAR].shape[1]):
            near, far = (one.said[role][:, layer] for role in (NEAR, FAR))
            rows.append(
                {
                    "writing": writing,
                    "group": group,
                    "layer": layer - 1,
                    **_bounds("near", one.share(near, NEAR, each)),
                    **_bounds("far", one.share(far, FAR, each)),
                    **one.errors(near, NEAR),
                    **{f"far_{name}": x for name, x in one.errors(far, FAR).items()},
                }
            )
    return pd.DataFrame(rows)


def by_number(seen: Mapping[Key, GroupScores], part: xr.Dataset, writing: str) -> pd.DataFrame:
    """What four depths, and the picked layer, say of each number, as a mean over seeds."""
    import pandas as pd

    frames = []
    for (of, group), one in seen.items():
        if of != writing or one.lists:
            continue
        last = one.said[NEAR].shape[1] - 1
        depths = sorted({0, last // 3, 2 * last // 3, last, one.layer + 1})
        for role in (NEAR, FAR):
            own = part[f"{role}_group"].to_numpy() == group
            frames += [
                pd.DataFrame(
                    {
                        "group": group,
                        "asked": role,
                        "number": part[f"{role}_word"].to_numpy()[own],
                        "value": one.target[role],
                        "layer": depth - 1,
                        "said": one.said[role][:, depth].mean(axis=0).astype(np.float32),
                    }
                )
                for depth in depths
            ]
    columns = ["group", "asked", "number", "value", "layer", "said"]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)


def by_tuned(
    seen: Mapping[Key, GroupScores], said: Mapping[str, Sequence[xr.Dataset]], *, level: float
) -> tuple[pd.DataFrame, Estimate | None]:
    """Fine-tuned models by writing and group; what larger numbers lose where they learnt."""
    import pandas as pd

    rows, lost, each = [], [], 1 - (1 - level) / len(seen)
    for (writing, group), one in seen.items():
        told = {
            role: np.stack([one.of_group(part[role].to_numpy(), role) for part in said[writing]])
            for role in (NEAR, FAR)
        }
        gain = one.gain(each, told[NEAR])
        if writing == PIECES and gain.low > 0:
            lost.append(apart(*(one.share(told[role], role, level) for role in (NEAR, FAR))))
        rows.append(
            {
                "writing": writing,
                "group": group,
                **_bounds("near", one.share(told[NEAR], NEAR, each)),
                **_bounds("far", one.share(told[FAR], FAR, each)),
                **_bounds("gain", gain),
                **one.errors(told[NEAR], NEAR),
                **{f"far_{name}": x for name, x in one.errors(told[FAR], FAR).items()},
            }
        )
    return pd.DataFrame(rows), mean_of(lost)


def _bounds(name: str, found: Estimate) -> dict[str, float]:
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
