"""Evaluation on many processes and machines, by Dask."""
