"""Records of evaluations, and tables made from them; tables never recompute a score."""
