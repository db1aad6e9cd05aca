"""Wrappers of descriptors: other vectors from the vectors, or from several views of a patch."""
