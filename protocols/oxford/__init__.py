"""Matching of regions in image sequences with homographies (Mikolajczyk & Schmid, PAMI 2005)."""
