"""What we look at: encoders, their parts, and what can be done to them.

`Encoder` wraps a Hugging Face model and gives its parts the same names in every family:
`layer.3.head.7.pattern`, `layer.*.residual`, `embeddings`. A run takes what to record, what to
change (`do=`) and what to reduce on the fly, and returns a `Trace`. A family is one row in
`families`. What it cannot do stands in its `lacks`; a study that needs it refuses before any work.

What is gone of a model is said by `weight_masks` (single weights) and `part_masks` (heads and
MLPs), applied and undone; `weight_depths` says where each weight lies: before the layers, in one of
them, or after. What ways to fine-tune add to a model is in `added_parts`, is named in the config,
and is put in again by loading.
"""
