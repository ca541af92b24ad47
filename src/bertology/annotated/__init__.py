"""Text with what is known about it: tags, links, and the types of attention maps.

Words are aligned once: a `Batch` carries the tokenizer's encodings of its examples, and
`words.word_batches(encoder, corpus)` gives words, pieces, special tokens and annotation together.
It is no method of the encoder, since `model` may not know corpora. States are read once (`states`),
and lie beside results as safetensors, since NetCDF cannot be memory-mapped.

What is known of words decides how their states are read: words that recur in several texts
(`recurring_words`), occurrences whose sense is known (`sense_occurrences`), the same sentence at
other places (`moved_sentences`), one vector for each word (`word_contexts`). A task of a probe
(`probed_tasks`) is a function from an example to questions about words, spans, pairs or sentences.
"""
