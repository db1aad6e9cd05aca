"""Makes a descriptor from published weights and a network whose parameters have the same names."""

from collections.abc import Callable, Collection

import torch
from torch import nn

from harness import registry
from harness.data import weights
from harness.data.weights import Weights
from harness.distances import L2, Distance
from harness.types import Conventions, Descriptor
from zoo.published.describing import describe


def published(
    family: str,
    member: str,
    network: Callable[[], nn.Module],
    conventions: Conventions,
    device: str,
    *,
    dim: int = 128,
    distance: Distance = L2,
    unused: Collection[str] = (),
) -> Descriptor:
    """The descriptor of one file of published weights, which PyTorch computes.

    Args:
        family: a table of weights, by its entry point in `harness.weights`.
        member: key of the row in the table. The registry finds the row: an import of its module
            would make its mirrors part of the code that vectors depend on.
        network: makes the network, from 8-bit patches of any size to vectors.
        conventions: of the descriptor.
        device: "cpu" or "cuda".
        dim: numbers in a vector, or bits.
        distance: between vectors.
        unused: names of tensors in the file that are not parameters of the network.

    Raises:
        NotHere: if the weights are not here.
    """
    row: Weights = registry.load("weights", family)[member]

    def loaded() -> nn.Module:
        made = network()
        tensors = {name: x for name, x in weights.load(row).items() if name not in unused}
        made.load_state_dict(tensors, strict=True)
        return made.eval()

    running = loaded().to(device)
    return Descriptor(
        row.name,
        lambda patches: describe(running, patches, device, dim, distance),
        distance,
        dim=dim,
        trained_on=row.trained_on,
        licence=row.licence,
        weights=weights.sha256(row),
        libraries=("numpy", "torch"),
        conventions=conventions,
        provider=f"torch-{torch.device(device).type}",
        network=loaded,
    )
