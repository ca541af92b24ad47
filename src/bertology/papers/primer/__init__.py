"""A Primer in BERTology (Rogers et al. 2020), as data in `paper.yaml` and `sections`."""
