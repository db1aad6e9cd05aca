"""The folder of a training, and of each epoch whose weights are kept, as a model to evaluate."""

from pathlib import Path

from harness.types import Descriptor
from zoo import card as cards

WEIGHTS, CARD, EPOCHS = "weights.safetensors", "card.json", "epochs"


def model(folder: Path, device: str) -> Descriptor | None:
    """The descriptor of the weights in a folder; None if the folder has no weights.

    Its name is that of the recipe, for an epoch NAME@epoch-NUMBER.

    Args:
        folder: the --out of `harness train`, or a folder of its epochs/.
        device: "cpu", "cuda", or "auto": CUDA if ONNX Runtime or PyTorch computes there.

    Raises:
        FileMissingError: if the folder has weights but no card.
        InputError: if weights and card do not fit each other.
        ComputeError: if device is "cuda" and neither of the two computes there.
    """
    if not (folder / WEIGHTS).is_file():
        return None
    from zoo import trained  # imported late: other folders need no torch

    return trained.opened(folder / WEIGHTS, cards.read(folder / CARD), device=device)


def epoch_folder(out: Path, epoch: int) -> Path:
    """The folder of the weights after an epoch, counted from 1."""
    return out / EPOCHS / f"{epoch:05}"


def epoch_name(recipe: str, epoch: int) -> str:
    """The name of the descriptor of these weights, by which its records are found."""
    return f"{recipe}@epoch-{epoch}"
