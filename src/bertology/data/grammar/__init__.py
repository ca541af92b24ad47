"""Our own annotated English: a feature grammar that says what it knows about every sentence.

    >>> from bertology.data import grammar
    >>> grammar.sentences(1000, seed=0)                         # annotated examples
    >>> grammar.corpus("grammar-entailment", split="train", constituent=False)

The layers, each on those before it: `words.yaml` (tables), `lexicon` (paradigms and pools), `tree`
(dependency trees and their chunks), `meaning` (entities and events), `phrases` and `clauses`
(meanings put into words), `events` and `sentences` (meanings drawn at random), `paraphrase`,
`entailment` and `minimal_pairs` (pairs with gold labels), `rows` (streams of what a corpus has),
`corpora` (the table of all corpora, and the door). `facts`, `objects` and `senses` read
tables of their own.

Conventions: dependencies follow Universal Dependencies. SUBJECT is the word that the main finite
verb agrees with (the first of coordinated ones; "it" where the real subject is extraposed). VERB is
the main verb, or the form of "be" where there is no other; in agreement pairs it is the word that
agrees, which may be an auxiliary. "critical" is the word on which a minimal pair turns.
"""

from __future__ import annotations

from bertology.data.grammar.corpora import CORPUS_NAMES, SIZES, SWITCHES, corpus, sentences
from bertology.data.grammar.lexicon import LEXICON
from bertology.data.grammar.rows import split_of

__all__ = ["CORPUS_NAMES", "LEXICON", "SIZES", "SWITCHES", "corpus", "sentences", "split_of"]
