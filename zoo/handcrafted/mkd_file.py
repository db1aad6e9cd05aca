"""Reads the published whitenings of MKD: tensors in three levels of dictionaries."""

from pathlib import Path
from typing import TYPE_CHECKING

from harness import extras
from harness.errors import InputError

if TYPE_CHECKING:
    import torch


def whitenings(file: Path) -> dict[str, "torch.Tensor"]:
    """Tensors by names as "liberty.lw.mean"; runs no code of the file.

    Raises:
        InputError: if the file contains something else.
    """
    with extras.needed(f"reading {file}"):
        import torch

    try:
        loaded = torch.load(file, map_location="cpu", weights_only=True)
        return {
            f"{scene}.{kind}.{name}": tensor.contiguous()
            for scene, kinds in loaded.items()
            for kind, parts in kinds.items()
            for name, tensor in parts.items()
        }
    except Exception as error:  # its type depends on the damage
        raise InputError(
            f"{file} is no file of MKD's whitenings: {type(error).__name__}. Tensors by scene, kind"
            " and name are wanted; get the published file"
        ) from error
