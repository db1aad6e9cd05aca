"""Descriptors of real numbers that are computed by a written rule, and learn little or nothing."""
