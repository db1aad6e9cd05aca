"""Compares methods and training data, makes the tables of the results, and ships weights."""
