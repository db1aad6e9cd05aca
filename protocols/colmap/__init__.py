"""COLMAP, run through pycolmap: what more than one protocol asks of it."""
