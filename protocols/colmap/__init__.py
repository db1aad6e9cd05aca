"""COLMAP, run through pycolmap: the functions that more than one protocol uses."""
