"""`concat`: the vectors of two descriptors, side by side."""

from dataclasses import replace
from typing import Any

from harness.distances import HAMMING, L2
from harness.errors import InputError
from harness.types import Descriptor, Patches, Vectors
from harness.wrapping import Wrapper
from zoo.wrappers.compose import fills_bytes, joined, network


def concat(first: Descriptor, model: Descriptor) -> Descriptor:
    """The vector, then that of another model: squared distances add up."""
    both = (first, model)
    bits = [each.distance is HAMMING for each in both]
    if any(bits) and not all(bits):
        raise InputError(
            f"concat joins vectors of one kind; those of {first.name} are compared by"
            f" {first.distance.name}, those of {model.name} by {model.distance.name}"
        )
    distance = HAMMING if all(bits) else L2
    dims = [each.dim for each in both]

    def describe(patches: Patches) -> Vectors:
        return joined([each.describe(patches) for each in both], dims, distance)

    def in_torch(patches: Any, *networks: Any) -> Any:
        import torch

        return torch.cat([network(patches) for network in networks], dim=1)

    return replace(
        first,
        describe=describe,
        distance=distance,
        dim=sum(dims),
        stored=first.stored if first.stored == model.stored else None,
        network=network(both, in_torch) if fills_bytes(both) else None,
    )


CONCAT = Wrapper(concat)
