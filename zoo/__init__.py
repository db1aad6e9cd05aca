"""Descriptors: one file a family, read top to bottom, importing only the harness."""
