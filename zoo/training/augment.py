"""Random turns and flips of training patches, decided by seed and step."""

import math

import torch
from jaxtyping import Float, Int, UInt8
from torch.nn import functional

from zoo.training.recipe import Dihedral
from zoo.training.sending import sent

# The 8 symmetries of the square are numbered by bits: 1 mirrors left and right, 2 mirrors top and
# bottom, 4 then transposes. 3 is half a turn, 5 a quarter turn counterclockwise, 6 clockwise.
# One entry is drawn; all entries are equally likely.
SYMMETRIES: dict[Dihedral, tuple[int, ...]] = {
    True: (0, 1, 2, 3, 4, 5, 6, 7),
    # DagnyT/hardnet: transposes with probability 1/2, then mirrors left and right with probability
    # 1/2. So four of the symmetries never occur.
    "hardnet": (0, 1, 4, 6),
    # vbalnt/tfeat, and also yuruntian/HyNet: turns by one of three angles with probability 1/2,
    # then mirrors top and bottom with probability 1/2.
    "tfeat": (0, 0, 0, 2, 2, 2, 3, 5, 6, 1, 4, 7),
}


def augmented(
    patches: UInt8[torch.Tensor, "n side side"],
    point: Int[torch.Tensor, " n"],
    angle: Float[torch.Tensor, " n"] | None,
    *,
    dihedral: Dihedral,
    random: torch.Generator,
) -> Float[torch.Tensor, "n 1 side side"]:
    """Grey values of patches; each is turned by its angle, then moved by its point's symmetry.

    Args:
        patches: the stored patches, on any device.
        point: the point of each patch, on the CPU; all patches of a point get the same symmetry.
        angle: degrees, counterclockwise, on the CPU; outside its border, a patch repeats the
            border.
        dihedral: a key of SYMMETRIES, from which one symmetry is drawn for each point; or False.
        random: a generator on the CPU.
    """
    x = patches[:, None].float()
    if angle is not None:
        moves = angle.nonzero()[:, 0]
        if len(moves):
            at = sent(moves, x.device)
            x[at] = turned(x[at], sent(angle[moves], x.device))
    if dihedral:
        _, group = point.unique(return_inverse=True)
        kinds = torch.tensor(SYMMETRIES[dihedral])
        drawn = kinds[torch.randint(len(kinds), (int(group.max()) + 1,), generator=random)]
        x = _moved(x, sent(drawn[group], x.device))
    return x.contiguous(memory_format=torch.channels_last)


def turned(
    x: Float[torch.Tensor, "n 1 side side"], angle: Float[torch.Tensor, " n"]
) -> Float[torch.Tensor, "n 1 side side"]:
    """Patches turned about their centres, counterclockwise on the screen, by degrees; bilinear."""
    radians = angle.to(x) * (math.pi / 180)
    cos, sin, zero = radians.cos(), radians.sin(), torch.zeros_like(radians)
    # Maps a place in the turned patch to its place in the stored patch; y points down.
    maps = torch.stack([cos, -sin, zero, sin, cos, zero], dim=1).view(-1, 2, 3)
    grid = functional.affine_grid(maps, list(x.shape), align_corners=False)
    return functional.grid_sample(x, grid, padding_mode="border", align_corners=False)


def _moved(
    x: Float[torch.Tensor, "n 1 side side"], kind: Int[torch.Tensor, " n"]
) -> Float[torch.Tensor, "n 1 side side"]:
    """Each patch moved by the symmetry of its number; see SYMMETRIES."""
    for bit, move in ((1, lambda p: p.flip(3)), (2, lambda p: p.flip(2)), (4, _transposed)):
        x = torch.where((kind & bit > 0)[:, None, None, None], move(x), x)
    return x


def _transposed(x: torch.Tensor) -> torch.Tensor:
    return x.transpose(2, 3)
