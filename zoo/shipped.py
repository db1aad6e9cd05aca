"""Descriptors trained by this project and shipped with it; their cards tell training and scores.

Each is NAME.safetensors and NAME.json in `zoo/weights`, put there by `studies.ship`, a maker below,
and a line in `pyproject.toml`. This file lists them; what their vectors depend on is in
`zoo.trained` and the file of the network.
"""

from pathlib import Path

from harness.onnx import export as onnx_export
from harness.types import Descriptor
from zoo import card as cards
from zoo import trained

FOLDER = Path(__file__).with_name("weights")


def _shipped(name: str, device: str) -> Descriptor:
    by_torch = trained.by_torch(FOLDER / f"{name}.safetensors", cards.read(FOLDER / f"{name}.json"))
    return onnx_export.through_onnx(by_torch, device=device)


def adasample(device: str = "cpu") -> Descriptor:
    """AdaSample on L2-Net's network, trained the longest: the zoo's default."""
    return _shipped("adasample", device)


def hardnet(device: str = "cpu") -> Descriptor:
    """HardNet's loss on L2-Net's network, under the setting of all but the default."""
    return _shipped("hardnet", device)


def sosnet(device: str = "cpu") -> Descriptor:
    """HardNet's loss with second-order similarity, under the same setting."""
    return _shipped("sosnet", device)


def adasample_sos(device: str = "cpu") -> Descriptor:
    """AdaSample's sampling and loss with second-order similarity, under the same setting."""
    return _shipped("adasample+sos", device)


def doap(device: str = "cpu") -> Descriptor:
    """DOAP: listwise average precision on L2-Net's network, under the same setting."""
    return _shipped("doap", device)


def doap_st(device: str = "cpu") -> Descriptor:
    """DOAP that moves and warps each patch first, by a spatial transformer."""
    return _shipped("doap-st", device)


def mixed_context(device: str = "cpu") -> Descriptor:
    """The mixed context loss on L2-Net's network, under the same setting."""
    return _shipped("mixed-context", device)


def doap_binary(device: str = "cpu") -> Descriptor:
    """DOAP of 256 bits, under the same setting."""
    return _shipped("doap-binary", device)


def l2net(device: str = "cpu") -> Descriptor:
    """L2-Net+ by its three losses, under the same setting."""
    return _shipped("l2net+", device)


def l2net_binary(device: str = "cpu") -> Descriptor:
    """The signs of L2-Net+, packed, under the same setting."""
    return _shipped("l2net-binary", device)
