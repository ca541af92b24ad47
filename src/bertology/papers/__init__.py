"""Papers that can be reproduced: a folder for each, which holds `paper.yaml` and its functions."""
