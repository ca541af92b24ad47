"""Probes: small classifiers of states, many trained together."""
