"""How published networks read a patch: apart from the networks, which need PyTorch."""

from harness.types import Conventions

STANDARDISED = "each patch to mean 0 and (n - 1) deviation 1; the vector to unit length"


def _whole(side: int, normalisation: str, source: str) -> Conventions:
    """Conventions of a network that takes the whole patch, resized to its side."""
    return Conventions("the whole patch", side, normalisation, source)


DEEPDESC = _whole(
    side=64,
    normalisation="each pixel by its mean and deviation in training; the vector is not unit",
    source="Simo-Serra et al., ICCV 2015; etrulls/deepdesc-release@0a97828",
)
DSM = _whole(
    side=32,
    normalisation=STANDARDISED,
    source="Zhang and Rusinkiewicz, ICCV 2019; lg-zhang/dynamic-soft-margin-pytorch@6766ff3",
)
DSM_BINARY = _whole(
    side=32,
    normalisation="each patch to mean 0 and (n - 1) deviation 1; a bit is 1 above 0",
    source="Zhang and Rusinkiewicz, ICCV 2019; lg-zhang/dynamic-soft-margin-pytorch@6766ff3",
)
GEODESC = _whole(
    side=32,
    normalisation="each patch to mean 0 and deviation 1; the vector to unit length",
    source="Luo et al., ECCV 2018; lzx551402/geodesc",
)
HARDNET = _whole(
    side=32,
    normalisation=STANDARDISED,
    source="Mishchuk et al., NIPS 2017; DagnyT/hardnet",
)
HARDNET8 = _whole(
    side=32,
    normalisation=f"{STANDARDISED}, before and after its projection",
    source="Pultar, arXiv 2007.09699; pultarmi/HardNet_MultiDataset; hardnet8v2.pt of kornia",
)
HARDNET_PS = _whole(
    side=32,
    normalisation=STANDARDISED,
    source="Mitra et al., arXiv 1801.01466; DagnyT/hardnet:pretrained/3rd_party/HardNetPS",
)
HARDTFEAT = _whole(
    side=32,
    normalisation=STANDARDISED,
    source="Mishkin et al., ECCV 2018; ducha-aiki/affnet@da7cf51",
)
HYNET = _whole(
    side=32,
    normalisation="each patch to root mean square 1; the vector to unit length",
    source="Tian et al., NeurIPS 2020; yuruntian/HyNet@0ae3483",
)
L2NET = _whole(
    side=32,
    normalisation="less the mean image, then to mean 0 and (n - 1) deviation 1; the "
    "vector to unit length",
    source="Tian et al., CVPR 2017; yuruntian/L2-Net",
)
L2NET_CS = _whole(
    side=64,
    normalisation="less the mean image, then to mean 0 and (n - 1) deviation 1; each half"
    " of the vector to unit length",
    source="Tian et al., CVPR 2017; yuruntian/L2-Net",
)
SOSNET = _whole(
    side=32,
    normalisation="each patch to mean 0 and deviation 1; the vector to unit length",
    source="Tian et al., CVPR 2019; yuruntian/SOSNet; scape-research/SOSNet@511e475",
)
TFEAT = _whole(
    side=32,
    normalisation="each patch to mean 0 and deviation 1; the vector is tanh's output, not unit",
    source="Balntas et al., BMVC 2016; vbalnt/tfeat@9434ffa",
)
TNET = _whole(
    side=64,
    normalisation="less the mean image of the training set; the vector to unit length",
    source="Kumar et al., CVPR 2016; vijaykbg/deep-patchmatch@a1a66c2",
)
MKD_LW, MKD_PCAWT = (
    _whole(
        side=64,
        normalisation="grey values over 255, a Gaussian of 1.4 pixels; whitened by"
        f" {kind} to 128 numbers of unit length",
        source="Mukundan et al., BMVC 2017 and IJCV 2019; manyids2/mkd_pytorch@fb97c42",
    )
    for kind in ("lw", "pcawt")
)
