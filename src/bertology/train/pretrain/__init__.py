"""Pre-training: from text to a BERT of one's own.

`text` reads documents, `shards` keeps them as numbers on disk, `rows` cuts them into sequences,
`masking` decides what is hidden, `losses` what is predicted, `loop` puts it all together.
"""
