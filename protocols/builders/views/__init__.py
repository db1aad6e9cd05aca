"""Training data out of any images: regions that a detector finds again in other views of them."""
