"""How published networks read a patch: apart from the networks, which need PyTorch."""

from harness.types import Conventions

TFEAT = Conventions(
    keypoint="the whole patch",
    side=32,
    normalisation="each patch to mean 0 and deviation 1; the vector is tanh's output, not unit",
    source="Balntas et al., BMVC 2016; vbalnt/tfeat@9434ffa",
)
HARDTFEAT = Conventions(
    keypoint="the whole patch",
    side=32,
    normalisation="each patch to mean 0 and (n - 1) deviation 1; the vector to unit length",
    source="Mishkin et al., ECCV 2018; ducha-aiki/affnet@da7cf51",
)
