"""Probes: small classifiers of states, many trained together.

`battery` trains all layers, tasks and controls together: probes with as many answers stand side by
side in one product, rows are mixed over many texts, and penalties are looked for once.
"""
