"""Readers of published files that PyTorch can't read, and of the networks in them."""
