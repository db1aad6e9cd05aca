"""Reads and writes files safely: whole or not at all, one process at a time, links followed."""
