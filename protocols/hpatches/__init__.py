"""HPatches (Balntas et al., CVPR 2017): patch verification, image matching, patch retrieval."""
