"""Make benchmarks and training data out of images: one room for each way to do it."""
