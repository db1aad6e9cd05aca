"""Builds a benchmark in the format of HPatches from image sequences with homographies."""
