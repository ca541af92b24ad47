"""How a model comes to be: from nothing, or from one that was trained before.

Fine-tuning is one trainer with ways (`ways/`), distillation is such ways over a teacher
(`distil/`), and methods of compression (`compress/`) use both. `pretrain/` goes from a recipe to a
model, `probes/` and `baselines/` are what models are compared by, `landscape/` sees the loss as a
function of the weights. Pruning takes weights, or heads and MLPs, away step by step
(`iterative_pruning`).
"""
