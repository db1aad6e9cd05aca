"""`central-surround` and `domain-size`: vectors of central parts of a patch.

Y. Tian, B. Fan, F. Wu, L2-Net, CVPR 2017, for the patch beside its central half.
J. Dong, S. Soatto, Domain-size pooling in local descriptors, CVPR 2015, for the mean over sizes.

A part is cut out, and the model resizes it as it resizes every patch. Its margins are whole pixels,
rounded down and equal on both sides, so that its centre is that of the patch.
"""

from typing import Annotated, Any

from annotated_types import Ge, Le

from harness.errors import InputError
from harness.types import Descriptor
from harness.wrapping import Wrapper
from zoo.wrappers.compose import NUMBERS, mean, side_by_side
from zoo.wrappers.norms import unit

Share = Annotated[float, Ge(0.1), Le(1)]  # of the patch's side


def central_surround(model: Descriptor) -> Descriptor:
    """The vector of the patch, then the vector of its central half."""
    return side_by_side(model, lambda patches: [patches, _central(patches, 0.5)], 2)


def domain_size(model: Descriptor, *shares: Share) -> Descriptor:
    """The mean vector of central parts, whose sides are shares of the patch's; unit length."""
    if len(set(shares)) < max(2, len(shares)):
        raise InputError(
            "domain-size takes two or more different shares of the patch's side, as in"
            " domain-size(0.6,0.8,1)"
        )
    return unit(mean(model, lambda patches: [_central(patches, share) for share in shares]))


def _central(patches: Any, share: float) -> Any:
    """The central part of each patch, an array or a tensor [n, height, width]."""
    outside = 1000 - round(1000 * share)  # thousandths: the side may be a symbol in an export
    height, width = patches.shape[1:]
    top, left = height * outside // 2000, width * outside // 2000
    return patches[:, top : height - top, left : width - left]


CENTRAL_SURROUND = Wrapper(central_surround)
DOMAIN_SIZE = Wrapper(domain_size, distances=NUMBERS)
