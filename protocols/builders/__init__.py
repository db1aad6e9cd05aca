"""Builders of benchmarks and training data from images: one package for each way to build."""
