"""`pcapl`: PCA whitening with power law, learned from training patches.

The steps are those of HPatches' "+" (`harness.whitening`), with one difference: vectors are centred
by the mean of the training vectors, where the official code takes the mean of the tested strip.
"""

from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Gt, Le, Lt
from jaxtyping import Float32

from harness.distances import L2
from harness.parameters import Parameters
from harness.types import Descriptor
from harness.whitening import KEPT, POWER, power_law, zca
from harness.wrapping import Wrapper
from zoo.wrappers.compose import NUMBERS, after


def pcapl(model: Descriptor, file: Parameters) -> Descriptor:
    """Whitened by ZCA of training vectors, a signed power of each number, unit length."""
    mean = file.array("mean", model.dim)
    turn = file.array("turn", model.dim, model.dim)
    power = float(file.array("power"))

    def change(vectors: Float32[np.ndarray, "n d"]) -> Float32[np.ndarray, "n d"]:
        return power_law((vectors - mean) @ turn, power=power).astype(np.float32)

    def in_torch(vectors: Any) -> Any:
        import torch

        turned = (vectors.double() - torch.tensor(mean)) @ torch.tensor(turn)
        raised = turned.sign() * turned.abs() ** power
        length = raised.square().sum(dim=1, keepdim=True).sqrt()
        return (raised / (length + (length == 0))).float()

    return after(model, change, in_torch, distance=L2)


def _learned(
    vectors: Float32[np.ndarray, "n d"],
    *,
    kept: Annotated[float, Ge(0), Lt(1)] = KEPT,
    power: Annotated[float, Gt(0), Le(1)] = POWER,
) -> dict[str, np.ndarray]:
    """The mean and the whitening matrix of training vectors.

    Args:
        vectors: of training patches.
        kept: quantile of the variances; smaller variances are raised to it.
        power: of the whitened numbers.
    """
    return {
        "mean": vectors.mean(axis=0, dtype=np.float64),
        "turn": zca(vectors, kept=kept),
        "power": np.array(power),
    }


PCAPL = Wrapper(pcapl, distances=NUMBERS, fit=_learned)
