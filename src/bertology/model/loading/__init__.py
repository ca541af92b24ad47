"""From a name to a model: files, weights, earlier steps, pruned models, fingerprints."""
