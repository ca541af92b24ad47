"""One model family, one row: ERNIE is built like BERT."""

from __future__ import annotations

from bertology.model.families import Family, Stack

LAYER = "encoder.layer.{i}"

ERNIE = Family(
    "ernie",
    "ERNIE",
    {
        "encoder": Stack(
            block=LAYER,
            attention=f"{LAYER}.attention.self",
            projection=f"{LAYER}.attention.output.dense",
            mlp=f"{LAYER}.output.dense",
            norms={
                "attention": f"{LAYER}.attention.output.LayerNorm",
                "output": f"{LAYER}.output.LayerNorm",
            },
            qkv=("query", "key", "value"),
        )
    },
)
