"""Makes a benchmark in the format of HPatches out of image sequences with homographies."""
