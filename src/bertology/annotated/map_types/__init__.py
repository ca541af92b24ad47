"""The five types of attention maps: made ones, labelled ones, a network that tells them apart."""
