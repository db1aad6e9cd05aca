"""The descriptors that were trained here and come along; their cards say how, and what they score.

One is NAME.safetensors and NAME.json in `zoo/weights`, put there by `zoo.ship`, a maker below, and
a line in `pyproject.toml`. Here stands which there are; what their vectors hang on is in
`zoo.trained` and the file of the network.
"""

from pathlib import Path

from harness import onnx_export
from harness.types import Descriptor
from zoo import card as cards
from zoo import trained

FOLDER = Path(__file__).with_name("weights")


def _shipped(name: str, device: str) -> Descriptor:
    own = trained.by_torch(FOLDER / f"{name}.safetensors", cards.read(FOLDER / f"{name}.json"))
    return onnx_export.through_onnx(own, device=device)


def adasample(device: str = "cpu") -> Descriptor:
    """AdaSample on L2-Net's network, trained the longest: the zoo's default."""
    return _shipped("adasample", device)


def adasample_sos(device: str = "cpu") -> Descriptor:
    """AdaSample with SOSNet's second-order similarity, which its paper leaves as future work."""
    return _shipped("adasample+sos", device)


def hardnet(device: str = "cpu") -> Descriptor:
    """HardNet: the hardest negative of the batch."""
    return _shipped("hardnet", device)


def sosnet(device: str = "cpu") -> Descriptor:
    """SOSNet: HardNet's and second-order similarity."""
    return _shipped("sosnet", device)


def l2net(device: str = "cpu") -> Descriptor:
    """L2-Net, trained on patches less their mean image (L2-Net+)."""
    return _shipped("l2net+", device)


def l2net_binary(device: str = "cpu") -> Descriptor:
    """Binary L2-Net+: the signs of its 128 numbers."""
    return _shipped("l2net-binary", device)


def mixed_context(device: str = "cpu") -> Descriptor:
    """Mixed-context losses, scale-aware: the pairs' part as strong as the triplets'."""
    return _shipped("mixed-context", device)


def doap(device: str = "cpu") -> Descriptor:
    """DOAP: average precision of a batch's rankings."""
    return _shipped("doap", device)


def doap_st(device: str = "cpu") -> Descriptor:
    """DOAP behind a spatial transformer."""
    return _shipped("doap-st", device)


def doap_binary(device: str = "cpu") -> Descriptor:
    """DOAP in 256 bits, trained for Hamming distance."""
    return _shipped("doap-binary", device)
