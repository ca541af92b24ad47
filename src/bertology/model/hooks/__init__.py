"""What makes one run of a model visible and changeable, and is gone after it.

There are two ways into a model. Attention goes through one function of ours, which transformers
calls through its attention interface (and its twin in the mask interface; without that, padding
would silently be attended to). Families that transformers does not route reach the same function
through adapters. When nobody looks at the weights it uses torch's fused attention; so there is no
second way, such as hooks on output projections. Everything else is reached by hooks at paths that
the family's row names. Layers are told apart by counting calls, because ALBERT calls one module for
every layer. Everything is put in place for one run and taken away after it, also after an
exception.
"""
