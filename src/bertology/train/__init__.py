"""How a model comes to be: from nothing, or from one that was trained before."""
