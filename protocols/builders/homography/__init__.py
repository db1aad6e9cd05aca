"""Training data from any images: the patches of a point differ by known homographies and light."""
