"""Readers of published files that PyTorch does not read: Torch7, MATLAB, and the networks in them."""
