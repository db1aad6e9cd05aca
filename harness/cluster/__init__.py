"""Evaluation and trainings on many processes and machines, by Dask."""
