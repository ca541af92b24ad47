"""What a smaller model is made of: forms that plain transformers does not have.

There is one module for each form, named in the config (`bertology_compressed`, a list in the order
of their application) and put in again by loading, before weights are read.

Products of 8 bits are our own, in PyTorch: torchao is slower than 32 bits without compiling for
minutes, and ONNX Runtime is quicker, but runs files, which nobody can look into or train
(`benchmarks/results/eight_bits.md`); exported files run there.
"""
