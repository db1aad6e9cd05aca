"""The ETH evaluation of local features by structure from motion (Schönberger et al., CVPR 2017)."""
