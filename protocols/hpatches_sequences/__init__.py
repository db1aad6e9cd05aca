"""Matching of SIFT keypoints in image sequences with homographies, as D2-Net's benchmark does."""
