"""RomePatches (Paulin et al., ICCV 2015): patch retrieval, one query for each 3-D point."""
