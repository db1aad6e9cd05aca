"""Trained networks: reads and writes their weights, and makes descriptors from weights and card."""

import hashlib
import json
import logging
from functools import cache
from pathlib import Path

import safetensors.torch
import torch
from torch import nn

from harness.code import code_sha256
from harness.data.photographs import Photograph
from harness.distances import DISTANCES
from harness.errors import ComputeError, FileMissingError, InputError, one_line
from harness.onnx import export as onnx_export
from harness.onnx import file as onnx_file
from harness.plugins import cuda_failure
from harness.trainings import recipe_and_seed
from harness.types import Descriptor, Patches, Vectors
from zoo import card as cards
from zoo.backbones import Deployed, Network
from zoo.card import Card
from zoo.published import describing
from zoo.training.recipe import UNFIT, find, make, reason

log = logging.getLogger(__name__)

TOGETHER = 1024  # patches that PyTorch describes on a GPU in one pass


def pack(network: nn.Module) -> bytes:
    """The weights of a network in float16, as a safetensors file; averages stay in float32.

    Raises:
        InputError: if a number is not finite in float16.
    """
    tensors = {}
    trained = {name for name, _ in network.named_parameters()}
    for name, value in network.state_dict().items():
        value = value.detach().cpu().contiguous()
        tensors[name] = value.half() if name in trained else value
        if not tensors[name].isfinite().all():
            raise InputError(f"{name} holds numbers up to {value.abs().max():g}: not for float16")
    return safetensors.torch.save(tensors)


def load(weights: Path, card: Card) -> Network:
    """The network of a card, with its weights in float32.

    Raises:
        FileMissingError: if there is no file of weights.
        InputError: if the file is not the one that the card describes, or does not fit the card's
            network.
    """
    if not weights.is_file():
        raise FileMissingError(f"there is no file of weights {weights}")
    contents = weights.read_bytes()
    sha256 = hashlib.sha256(contents).hexdigest()
    if sha256 != card.weights:
        raise InputError(
            f"{weights} has sha256 {sha256}, but the card of {card.name} describes weights"
            f" {card.weights}: one of the two was changed; take both from one source"
        )
    try:
        network: Network = make("network", card.network)
    except UNFIT as error:
        why = reason(error)
        raise InputError(f"{weights}: the card of {card.name}: [network] {why}") from error
    try:
        network.load_state_dict(safetensors.torch.load(contents), strict=True)
    except RuntimeError as error:
        why = one_line(error)
        raise InputError(f"{weights} does not fit {card.network.name}: {why}") from error
    declared = (card.distance, card.dim, card.side)
    if declared != (network.distance.name, network.dim, network.side):
        raise InputError(
            f"{weights}: the card of {card.name} says distance, dim and side {declared}; its"
            f" network has {(network.distance.name, network.dim, network.side)}"
        )
    return network.eval()


class _WithRecipe(Deployed):
    """Network that carries its recipe, for the metadata of exported files."""

    def __init__(self, network: Network, recipe: str) -> None:
        super().__init__(network)
        self.recipe = recipe


def opened(weights: Path, card: Card, *, device: str) -> Descriptor:
    """Trained weights as a descriptor that ONNX Runtime computes, or else PyTorch on a GPU.

    Args:
        weights: the file.
        card: of the weights.
        device: "cpu"; "cuda"; or "auto", CUDA if it works.

    Raises:
        ComputeError: if device is "cuda" and neither of the two computes there.
    """
    exported = by_torch(weights, card)
    if device == "cpu" or (device == "auto" and not onnx_file.has_nvidia_driver()):
        return onnx_export.through_onnx(exported)
    try:
        return onnx_export.through_onnx(exported, device="cuda")
    except ComputeError as error:
        failure = cuda_failure()
        if failure and device == "cuda":
            raise ComputeError(f"{error}; {failure}") from error
        if failure:
            log.warning("%s; %s: the CPU computes instead", error, failure)
            return onnx_export.through_onnx(exported)
        log.warning("%s; PyTorch computes there instead", error)
        return by_torch(weights, card, device="cuda")


def by_torch(weights: Path, card: Card, *, device: str = "cpu") -> Descriptor:
    """Trained weights as a descriptor that PyTorch computes on the CPU, or on another device."""

    data = sorted(part.sha256 for part in card.data)
    settings = {**card.recipe, "seed": card.seed, "steps": card.steps, "data": data}
    recipe, seed = recipe_and_seed(settings)

    modules = [find("network", card.network.name).__module__]
    if device != "cpu":
        modules.append(describing.__name__)

    @cache
    def network() -> _WithRecipe:
        return _WithRecipe(load(weights, card), json.dumps(settings, sort_keys=True))

    @cache
    def elsewhere() -> nn.Module:
        return Deployed(load(weights, card)).to(device)

    def describe(patches: Patches) -> Vectors:
        if device != "cpu":
            of = card.dim, DISTANCES[card.distance]
            return describing.describe(elsewhere(), patches, device, *of, together=TOGETHER)
        with torch.inference_mode():
            return network()(torch.tensor(patches)).numpy()  # `tensor` copies read-only patches

    return Descriptor(
        card.name,
        describe,
        DISTANCES[card.distance],
        dim=card.dim,
        trained_on=frozenset(card.trained_on),
        licence=card.licence,
        photographs=tuple(Photograph(**one.model_dump()) for one in card.photographs),
        weights=card.weights,
        code=code_sha256(*modules),
        libraries=("numpy", "torch"),
        provider=f"torch-{torch.device(device).type}",
        network=network,
        conventions=cards.conventions(card),
        recipe=recipe,
        seed=seed,
    )
