"""Training data out of any images: points whose patches differ by known maps and by light."""
