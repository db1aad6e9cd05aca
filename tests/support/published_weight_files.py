"""Files of weights in the layouts of their authors, with random numbers, and where they are added.

The layouts are those of other implementations, or are written out from the authors' code: our own
networks don't tell them.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from kornia import feature

from harness import registry
from harness.data import weights

WIDTHS = (1, 32, 32, 64, 64, 128, 128)  # of L2-Net's convolutions


def random_weights(shapes: Mapping[str, tuple[int, ...]], seed: int = 0) -> dict[str, torch.Tensor]:
    """Numbers for each name, so that vectors of patches differ; variances are above 0."""
    generator = torch.Generator().manual_seed(seed)
    found: dict[str, torch.Tensor] = {}
    for name, shape in shapes.items():
        numbers = torch.randn(shape, generator=generator)
        if name.endswith("num_batches_tracked"):
            found[name] = torch.tensor(7)
        elif name.endswith("running_var"):
            found[name] = 0.5 + numbers.abs()
        elif name == "mean":  # of unit vectors of 512 numbers, in HardNet8
            found[name] = 0.02 * numbers
        elif name.endswith(".eps"):
            found[name] = torch.tensor([1e-6])
        elif len(shape) in (2, 4) and shape[1:] != (1, 1, 1) and shape[0] != 1:
            found[name] = 2 * numbers * torch.tensor(shape[1:]).prod() ** -0.5
        else:  # scales, shifts, means and thresholds
            found[name] = 0.3 * numbers + (1 if name.endswith("weight") else 0)
    return found


def shapes_of(network: torch.nn.Module) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the tensors that a network saves."""
    return {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}


def l2net_shapes(dim: int, *, affine: bool, last: int, tracked: bool) -> dict[str, tuple[int, ...]]:
    """Names and shapes in HardNet's code: `features` in a row, of which three make a layer.

    Args:
        dim: numbers of the last convolution.
        affine: whether convolutions have biases, and batch normalisation a scale and a shift.
        last: place of the last convolution; with batch normalisation behind it unless `affine`.
        tracked: whether batches are counted, as PyTorch does since version 0.4.1.
    """
    found: dict[str, tuple[int, ...]] = {}

    def norm(place: int, width: int) -> None:
        for part in ("running_mean", "running_var", *(("weight", "bias") if affine else ())):
            found[f"features.{place}.{part}"] = (width,)
        if tracked:
            found[f"features.{place}.num_batches_tracked"] = ()

    def convolution(place: int, shape: tuple[int, ...]) -> None:
        found[f"features.{place}.weight"] = shape
        if affine:
            found[f"features.{place}.bias"] = shape[:1]

    for i in range(6):
        convolution(3 * i, (WIDTHS[i + 1], WIDTHS[i], 3, 3))
        norm(3 * i + 1, WIDTHS[i + 1])
    convolution(last, (dim, 128, 8, 8))
    if not affine:
        norm(last + 1, dim)
    return found


HARDNET = l2net_shapes(128, affine=False, last=19, tracked=False)  # of 2017
LAYOUTS = {
    **dict.fromkeys(
        (
            "hardnet-official.liberty",
            "hardnet-official.liberty-no-aug",
            "hardnet-official.notredame",
            "hardnet-official.yosemite",
            "hardnet-official.brown6",
            "hardnet++",
        ),
        HARDNET,
    ),
    "hardnet-ps": l2net_shapes(128, affine=True, last=18, tracked=False),
    "hardnet8": shapes_of(feature.HardNet8(pretrained=False)),
    **{
        f"sosnet-official.{part}": shapes_of(feature.SOSNet(pretrained=False))
        for part in ("liberty", "notredame", "yosemite", "hpatches-a")
    },
    **{
        f"hynet-official.{part}": shapes_of(feature.HyNet(pretrained=False))
        for part in ("liberty", "notredame", "yosemite")
    },
    **{
        f"{name}.{part}": l2net_shapes(dim, affine=False, last=19, tracked=True)
        for name, dim in (("dsm", 128), ("dsm-binary", 256))
        for part in ("liberty", "notredame", "yosemite")
    },
}
"""Names and shapes of tensors in the published file of a model."""


def bring(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, torch.Tensor]:
    """Add a file of random weights for a model to the store; returns its tensors."""
    tensors = random_weights(LAYOUTS[name])
    (table, member), row = next(
        ((listed, key), row)
        for listed in (registry.load("weights", one) for one in registry.names("weights"))
        for key, row in listed.items()
        if row.name == name
    )
    file = folder / row.file
    file.parent.mkdir(parents=True, exist_ok=True)
    nested = name.startswith(("hardnet-official", "hardnet++"))
    torch.save({"epoch": 10, "state_dict": tensors} if nested else tensors, file)
    contents = file.read_bytes()
    git_blob = hashlib.sha1(b"blob %d\0" % len(contents) + contents).hexdigest()
    monkeypatch.setitem(table, member, replace(row, sha256="", git_blob=git_blob, size=None))
    assert weights.add(file, table.values()).name == name
    assert weights.sha256(table[member]) == hashlib.sha256(contents).hexdigest()
    return tensors
