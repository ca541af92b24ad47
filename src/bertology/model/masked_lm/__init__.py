"""What a masked language model predicts: scores of sentences, blanks and candidates.

`Clozes(encoder, method, prior, lens, …).answers(questions)` (`clozes`) is the one way to ask what
fills a blank: any stream of `Question`s in, an `Answer` for each out, in order. A question becomes
reads of masked texts; the same masked text is computed once, texts are batched by length, the head
sees masked places only, and a window of some thousand texts is held at a time. With a lens there is
a row of scores for each layer: the model's own head on the layer's states, as they are or through
an affine map that `train/lenses.py` fits. `cloze` and `bertology ask` are thin layers over it.
"""
