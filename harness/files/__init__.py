"""Reads and writes files safely: complete or not at all, by one process at a time."""
