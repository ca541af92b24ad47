"""BERTology Nuggets (Rogers 2021), a talk, as data in `paper.yaml`: its part on attention heads."""
