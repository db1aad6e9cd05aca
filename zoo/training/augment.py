"""What happens to patches between the training set and the network, as seed and step decide."""

import math

import torch
from jaxtyping import Float, Int, UInt8
from torch.nn import functional


def augmented(
    patches: UInt8[torch.Tensor, "n side side"],
    point: Int[torch.Tensor, " n"],
    angle: Float[torch.Tensor, " n"] | None,
    *,
    dihedral: bool,
    random: torch.Generator,
) -> Float[torch.Tensor, "n 1 side side"]:
    """Grey values, each patch turned by its angle, those of a point by one turn or flip.

    Args:
        patches: as they are stored.
        point: patches of one point share the turn or flip.
        angle: degrees, counterclockwise; what comes from outside the patch repeats its border.
        dihedral: whether one of the 8 turns by right angles and flips is drawn for each point.
        random: on the CPU.
    """
    x = patches[:, None].float()
    if angle is not None:
        moves = angle.nonzero()[:, 0]
        if len(moves):
            x[moves] = turned(x[moves], angle[moves])
    if dihedral:
        _, group = point.unique(return_inverse=True)
        drawn = torch.randint(8, (int(group.max()) + 1,), generator=random)
        x = _moved(x, drawn.to(x.device)[group])
    return x.contiguous(memory_format=torch.channels_last)


def turned(
    x: Float[torch.Tensor, "n 1 side side"], angle: Float[torch.Tensor, " n"]
) -> Float[torch.Tensor, "n 1 side side"]:
    """Patches turned about their middles, counterclockwise as seen, by degrees; bilinear."""
    radians = angle.to(x) * (math.pi / 180)
    cos, sin, zero = radians.cos(), radians.sin(), torch.zeros_like(radians)
    # Maps a place in the new patch to where it was; y points down.
    maps = torch.stack([cos, -sin, zero, sin, cos, zero], dim=1).view(-1, 2, 3)
    grid = functional.affine_grid(maps, list(x.shape), align_corners=False)
    return functional.grid_sample(x, grid, padding_mode="border", align_corners=False)


def _moved(
    x: Float[torch.Tensor, "n 1 side side"], kind: Int[torch.Tensor, " n"]
) -> Float[torch.Tensor, "n 1 side side"]:
    """Each patch under one of the 8 symmetries of the square: bits flip x, flip y, transpose."""
    for bit, move in ((1, lambda p: p.flip(3)), (2, lambda p: p.flip(2)), (4, _transposed)):
        x = torch.where((kind & bit > 0)[:, None, None, None], move(x), x)
    return x


def _transposed(x: torch.Tensor) -> torch.Tensor:
    return x.transpose(2, 3)
