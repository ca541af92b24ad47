"""Trees over the words of a sentence: found in scores of pairs of words, and gold ones."""
