"""Losses of distillation: how far a student's vectors are from those of its teacher.

Vectors of the teacher are constants. Both losses are means, so that a weight keeps its meaning in
batches of another size.
"""

import torch
from jaxtyping import Float
from torch.nn import functional

from zoo.training.distances import euclidean, wide

Vectors = Float[torch.Tensor, "n dim"]
Others = Float[torch.Tensor, "n other"]
Scalar = Float[torch.Tensor, ""]


def regression(student: Vectors, teacher: Vectors) -> Scalar:
    """Mean of |s_i - t_i|^2 over patches, in [0, 4] for unit vectors.

    A. Romero, N. Ballas, S. E. Kahou, A. Chassang, C. Gatta, Y. Bengio, FitNets: hints for thin
    deep nets, ICLR 2015: twice their loss of a hint, of the last layer, without a regressor.
    """
    return (wide(student) - wide(teacher)).square().sum(dim=1).mean()


def relational(student: Vectors, teacher: Others) -> Scalar:
    """Mean of h(d(s_i, s_j) / m_s - d(t_i, t_j) / m_t) over all pairs of different patches.

    d is the Euclidean distance, m its mean over these pairs, and h the Huber loss: h(x) = x^2 / 2
    up to |x| = 1, |x| - 1/2 beyond. So student and teacher may have vectors of different lengths
    and dimensions. W. Park, D. Kim, Y. Lu, M. Cho, Relational knowledge distillation, CVPR 2019,
    the distance-wise loss RKD-D, which they write as a sum.
    """
    near, wanted = _relative_distances(student), _relative_distances(teacher)
    return functional.huber_loss(near, wanted, reduction="sum") / _pairs(student)


def _relative_distances(vectors: Others) -> Float[torch.Tensor, "n n"]:
    """Distances over their mean; 0 on the diagonal, at least 0.001 over the mean elsewhere."""
    distance = euclidean(vectors, vectors)
    distance = distance * (
        1 - torch.eye(len(distance), dtype=distance.dtype, device=distance.device)
    )
    return distance * _pairs(vectors) / distance.sum()


def _pairs(vectors: Others) -> int:
    """Number of ordered pairs of different rows."""
    return len(vectors) * (len(vectors) - 1)
