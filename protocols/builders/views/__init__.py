"""Training data from any images: regions that a detector finds again in warped views of them."""
