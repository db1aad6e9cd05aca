"""Makers of the descriptors that this project trained and ships.

Each descriptor has two files in `zoo/weights`, which `studies.ship` writes: NAME.safetensors and
its card NAME.json, with the training and the scores. It also has a maker here and a line in
`pyproject.toml`. The code of its vectors is in `zoo.trained` and in the file of its network.
"""

from pathlib import Path

from harness.types import Descriptor
from zoo import card as cards
from zoo import trained

FOLDER = Path(__file__).with_name("weights")


def _shipped(name: str, device: str) -> Descriptor:
    card = cards.read(FOLDER / f"{name}.json")
    return trained.opened(FOLDER / f"{name}.safetensors", card, device=device)


def adasample(device: str = "cpu") -> Descriptor:
    """AdaSample on L2-Net's network, with the longest training: the zoo's default."""
    return _shipped("adasample", device)


def hardnet(device: str = "cpu") -> Descriptor:
    """HardNet's loss on L2-Net's network, with the setting that all but the default share."""
    return _shipped("hardnet", device)


def sosnet(device: str = "cpu") -> Descriptor:
    """HardNet's loss with second-order similarity, with the same setting."""
    return _shipped("sosnet", device)


def adasample_sos(device: str = "cpu") -> Descriptor:
    """AdaSample's sampling and loss with second-order similarity, with the same setting."""
    return _shipped("adasample+sos", device)


def doap(device: str = "cpu") -> Descriptor:
    """DOAP: listwise average precision on L2-Net's network, with the same setting."""
    return _shipped("doap", device)


def doap_st(device: str = "cpu") -> Descriptor:
    """DOAP with a spatial transformer, which moves and warps each patch first."""
    return _shipped("doap-st", device)


def mixed_context(device: str = "cpu") -> Descriptor:
    """The mixed-context loss on L2-Net's network, with the same setting."""
    return _shipped("mixed-context", device)


def doap_binary(device: str = "cpu") -> Descriptor:
    """DOAP with 256 bits, with the same setting."""
    return _shipped("doap-binary", device)


def l2net(device: str = "cpu") -> Descriptor:
    """L2-Net+ with its three losses, with the same setting."""
    return _shipped("l2net+", device)


def l2net_binary(device: str = "cpu") -> Descriptor:
    """The signs of L2-Net+ as packed bits, with the same setting."""
    return _shipped("l2net-binary", device)


def adasample_open(device: str = "cpu") -> Descriptor:
    """AdaSample trained on photographs that products may use."""
    return _shipped("adasample-open", device)


def doap_binary_open(device: str = "cpu") -> Descriptor:
    """DOAP with 256 bits, trained on photographs that products may use."""
    return _shipped("doap-binary-open", device)


def l2net_small_open(device: str = "cpu") -> Descriptor:
    """A small network, trained on the same photographs and by the vectors of `adasample-open`."""
    return _shipped("l2net-small-open", device)
