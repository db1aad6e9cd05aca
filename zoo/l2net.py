"""L2-Net: progressive sampling, relative distance, compactness, supervised intermediate maps.

Y. Tian, B. Fan, F. Wu, L2-Net: deep learning of discriminative patch descriptor in Euclidean space,
CVPR 2017. A batch has p pairs; the rows of Y1 are its anchors, the rows of Y2 its positives.
"""

import inspect
import math
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
from annotated_types import Ge, Gt, Le
from jaxtyping import Float, Int, UInt8
from torch import nn
from torch.nn import functional

from harness.distances import HAMMING
from harness.errors import InputError
from zoo import card as cards
from zoo import trained
from zoo.backbones import L2Net, Network, resize, unit
from zoo.training.distances import Coarse, euclidean, inner
from zoo.training.groups import Groups
from zoo.training.later import Later
from zoo.training.method import Batch, Method, Sampler, Selection
from zoo.training.pairs import EPOCH, must_have_pairs, other_points, pairs_of, random_points

Vectors = Float[torch.Tensor, "p dim"]
Scalar = Float[torch.Tensor, ""]


def progressive(
    groups: Groups,
    in_order: int,
    at_random: int,
    seed: int,
    *,
    images: int | None = None,
    share: float = 0.5,
) -> Sampler:
    """The selection of a step: the next points of the training set, and random others; section 3.3.

    Args:
        groups: the training set, which the steps go through again and again. The order of its
            points is random, drawn once: in the order of the files, many batches would have points
            of one data set only.
        in_order: p1, number of points taken in order.
        at_random: p2, number of points drawn from the rest.
        seed: decides the order and, together with the step, all other draws.
        images: number of images for the random points; see `zoo.training.pairs.random_pairs`.
        share: share of the random points that come from these images.

    Raises:
        InputError: if there are too few points or images, or points without a pair.
    """
    must_have_pairs(groups, in_order + at_random)
    order = np.random.default_rng([seed, EPOCH]).permutation(len(groups))
    draw = random_points(groups, at_random, seed, images=images, share=share)

    def select(step: int) -> Selection:
        following = order[(step * in_order + np.arange(in_order)) % len(order)]
        others, first, rng = draw(step)
        new = ~np.isin(others, following)
        point = np.concatenate([following, others[new]])
        point = np.concatenate([point, other_points(point, groups, int((~new).sum()), rng)])
        anchor = rng.integers(groups.size[point])
        if first is not None:
            anchor[in_order : in_order + new.sum()] = first[new]
        return pairs_of(groups, point, rng, anchor)

    return select


def relative(similarity: Float[torch.Tensor, "p p"]) -> Scalar:
    """-1/2 times the sum over the diagonal of log softmax by columns and by rows; equation 5."""
    match = torch.arange(len(similarity), device=similarity.device)
    rows, columns = (
        functional.cross_entropy(scores, match, reduction="sum")
        for scores in (similarity, similarity.T)
    )
    return (rows + columns) / 2


def descriptor_similarity(anchor: Vectors, positive: Vectors) -> Scalar:
    """E1 for unit vectors: `relative` of 2 - D; equations 1, 4, 5."""
    return relative(2 - euclidean(anchor, positive))


def compactness(anchor: Vectors, positive: Vectors) -> Scalar:
    """E2: half the sum of the squared correlations of different dimensions; equations 7, 8.

    (8) assumes that batch normalisation has given each dimension mean 0 and variance 1. This is
    exact if anchors and positives pass it separately. The paper divides by the dimension q, but it
    means the number of pairs p; both are 128 there.
    """
    return (_off_diagonal(anchor) + _off_diagonal(positive)) / 2


def _off_diagonal(vectors: Vectors) -> Scalar:
    correlation = inner(vectors.T, vectors.T) / len(vectors)
    return correlation.square().sum() - correlation.diagonal().square().sum()


def intermediate(
    anchor: Float[torch.Tensor, "p ..."], positive: torch.Tensor, *, coarse: bool = False
) -> Scalar:
    """E3 of one layer: `relative` of the inner products of its maps; equations 9, 11, 12.

    Args:
        anchor: maps.
        positive: maps, of the match of each anchor.
        coarse: whether to use TF32 on a GPU. The products are sums of 32,768 numbers, and no small
            difference of theirs is taken, unlike in distances.
    """
    maps = anchor.flatten(1), positive.flatten(1)
    if coarse and anchor.is_cuda:
        return relative(Coarse.apply(*maps))  # type: ignore[no-untyped-call]
    return relative(inner(*maps))


class Progressive(Method):
    """(E1 + E2 + E3) / p, with E3 of the first and of the last map.

    The paper writes sums, but its authors trained in MatConvNet, which divides gradients by the
    batch size. So the paper's learning rate is for the mean. The inner products of first maps are
    in the thousands, so E3 is the largest part of the loss, and the loss says little about the
    progress of training.
    """

    def __init__(
        self,
        *,
        in_order: Annotated[int, Ge(1)],
        at_random: Annotated[int, Ge(1)],
        e2: Annotated[float, Ge(0)] = 1.0,
        e3: Annotated[float, Ge(0)] = 1.0,
        images: Annotated[int, Ge(1)] | None = None,
        share: Annotated[float, Gt(0), Le(1)] = 0.5,
        separate: Annotated[bool, Later(False)] = True,
        e3_layers: Annotated[Literal["ends", "every"], Later("ends")] = "ends",
    ) -> None:
        """Keep the options.

        Args:
            in_order: p1, number of points of a batch that are taken in order.
            at_random: p2, number of points of a batch that are drawn from the rest.
            e2: weight of the compactness. The sums of E1 and E3 grow with the number of pairs, the
                sum of E2 does not: use 1 for the paper's 128 pairs, p / 128 for p pairs. 0 is the
                paper's training without compactness.
            e3: weight of the intermediate maps; 0 for the paper's figure 3, curve B.
            images: number of images that the share of the random points comes from.
            share: share of the random points.
            separate: whether anchors and positives pass batch normalisation separately. Equation 8
                demands it, and a layer of the released network is named bnormPair.
            e3_layers: layers whose maps E3 takes, after batch normalisation: "ends", the first and
                the last; or "every", for the paper's figure 3, curve D.

        Raises:
            InputError: if E3 takes every layer with weight 0.
        """
        super().__init__()
        self.in_order, self.at_random = in_order, at_random
        self.e2, self.e3 = e2, e3
        self.images, self.share, self.separate = images, share, separate
        self.every = e3_layers == "every"
        if self.every and not e3:
            raise InputError('e3_layers is "every" but e3 is 0, so no layer is used: give e3 = 1.0')

    def must_fit(self, network: nn.Module) -> None:
        """Refuse a network that can't give the maps that E2 and E3 take.

        Raises:
            InputError: says which maps are missing.
        """
        maps = getattr(network, "maps", None)
        if maps is None or (self.every and "every" not in inspect.signature(maps).parameters):
            layers = "of every layer" if self.every else "of the first and the last layer"
            raise InputError(
                f"method l2net takes the outputs {layers}, and {type(network).__name__} does not"
                " give them: choose another network, such as l2net-mean-image"
            )

    def steps_of_a_pass(self, groups: Groups) -> int:
        """Steps that take each point once in order; section 3.3."""
        return math.ceil(len(groups) / self.in_order)

    def pairs_per_step(self) -> int:
        """Pairs of a batch."""
        return self.in_order + self.at_random

    def sampler(self, groups: Groups, seed: int) -> Sampler:
        """Progressive sampling."""
        return progressive(
            groups, self.in_order, self.at_random, seed, images=self.images, share=self.share
        )

    def forward(self, batch: Batch) -> Scalar:
        """The loss of one batch; the network's last two `maps` are its last layer's and vectors."""
        *maps, last, vectors = batch.pair_maps(separate=self.separate, every=self.every)
        loss = descriptor_similarity(*vectors) + self.e2 * compactness(*last)
        if self.e3 and not maps:
            raise InputError("method l2net with e3 takes the first layer's map: give e3 = 0.0")
        if self.e3:
            of_layers = [intermediate(*each, coarse=batch.coarse) for each in maps]
            loss = loss + self.e3 * (sum(of_layers[1:], of_layers[0]) + intermediate(*last))
        return loss / len(vectors[0])


class MeanImageL2Net(L2Net):
    """L2-Net that subtracts the training set's mean image from patches, then standardises them."""

    mean_image: Float[torch.Tensor, "1 1 32 32"]

    def __init__(
        self, *, binary: bool = False, learned_bn: Annotated[bool, Later(False)] = False
    ) -> None:
        """Start with random weights.

        Args:
            binary: whether the signs of its vectors are compared, by Hamming distance; training is
                the same.
            learned_bn: whether batch normalisation learns scale and shift, as in `L2Net`.
        """
        super().__init__(learned_bn=learned_bn)
        self.register_buffer("mean_image", torch.zeros(1, 1, self.side, self.side))
        if binary:
            self.distance = HAMMING

    def study(
        self, patches: UInt8[np.ndarray, "all side side"], rows: Int[np.ndarray, " n"]
    ) -> None:
        """Compute the mean image of the training set."""
        self.mean_image.copy_(_mean_image(patches, rows))

    def normalised(self, patches: Float[torch.Tensor, "n 1 32 32"]) -> torch.Tensor:
        """The input of the first layer; section 3.2."""
        return super().normalised(patches - self.mean_image)


class CentralSurround(Network):
    """Two L2-Nets, one for the patch and one for its central half; figure 1 (b).

    Both start from a trained L2-Net; the network for the whole patch does not change. The paper
    does not say which part is trained. Here, E1 and E2 use the vectors of both networks together,
    so that the second network also learns not to repeat the first. E3 uses the second network's
    first map and the last maps of both.
    """

    side = 64
    dim = 256

    def __init__(self, *, start: str = "", binary: bool = False) -> None:
        """Start with random weights, which `study` replaces.

        Args:
            start: file weights.safetensors of a trained L2-Net, with its card.json in the same
                folder; both are read before the first step of training.
            binary: whether the signs of its vectors are compared, by Hamming distance; training is
                the same.
        """
        super().__init__()
        self.surround, self.central = MeanImageL2Net(), MeanImageL2Net()
        self.surround.requires_grad_(False)
        self.start = start
        if binary:
            self.distance = HAMMING

    def study(
        self, patches: UInt8[np.ndarray, "all side side"], rows: Int[np.ndarray, " n"]
    ) -> None:
        """Load the trained weights into both networks, and the central mean image into the second.

        Raises:
            InputError: if `start` is empty; otherwise the first network would stay random. Also if
                its batch normalisation has scale and shift.
            FileMissingError: if the weights, or their card, are missing.
        """
        if not self.start:
            raise InputError(
                "the central-surround network starts from a trained L2-Net: train recipe l2net,"
                " then --set network.start=FILE with its weights"
            )
        card = cards.read(Path(self.start).with_name("card.json"))
        if card.network.options.get("learned_bn"):
            raise InputError(
                f"{self.start} has learned batch normalisation, and the central-surround network"
                " has none: start from an L2-Net that was trained without network.learned_bn"
            )
        weights = trained.load(Path(self.start), card).state_dict()
        for tower in (self.surround, self.central):
            tower.load_state_dict(weights, strict=True)
        self.inherited = frozenset(card.trained_on)
        self.central.study(patches[:, 16:48, 16:48], rows)

    def train(self, mode: bool = True) -> "CentralSurround":
        """Set the mode; the first network always stays in evaluation mode."""
        super().train(mode)
        self.surround.eval()
        return self

    def maps(
        self, patches: Float[torch.Tensor, "n 1 64 64"], *, every: bool = False
    ) -> tuple[torch.Tensor, ...]:
        """The second network's first map [n, 32, 32, 32], both last maps [n, 256], unit vectors.

        Args:
            patches: grey patches.
            every: whether to give the second network's maps between first and last, too.
        """
        with torch.autocast(patches.device.type, enabled=False):  # grey values keep all their bits
            small = resize(patches, L2Net.side)
        _, last, whole = self.surround.maps(small)
        *maps, central_last, half = self.central.maps(patches[:, :, 16:48, 16:48], every=every)
        both = unit(torch.cat([whole, half], dim=1))  # (n, 256)
        return *maps, torch.cat([last, central_last], dim=1), both

    def forward(self, patches: Float[torch.Tensor, "n 1 64 64"]) -> Float[torch.Tensor, "n 256"]:
        """Unit vectors of grey patches."""
        return self.maps(patches)[-1]


def _mean_image(
    patches: UInt8[np.ndarray, "all side side"], rows: Int[np.ndarray, " n"]
) -> torch.Tensor:
    total = sum(
        patches[rows[i : i + 4096]].sum(axis=0, dtype=np.int64) for i in range(0, len(rows), 4096)
    )
    return torch.from_numpy(np.asarray(total) / len(rows))
