"""Pre-training: from text to a BERT of one's own.

A recipe (YAML) decides everything. `text` reads documents, `shards` keeps them as numbers on disk,
`rows`, `pairings` and `masking` make rows of them as a function of seed and place; `objectives` and
`losses/` say what is predicted; `network`, `feed` and `loop` train; `passes` and `weights` give the
same numbers quickly on a GPU; `state`, `stopping` and `processes` resume to the bit.
"""
