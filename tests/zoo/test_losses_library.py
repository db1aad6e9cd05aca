"""Losses that pytorch-metric-learning has too, computed there from the same vectors."""

import pytest
import torch
from vectors import matching_pairs

from zoo.hardnet import triplet
from zoo.l2net import descriptor_similarity
from zoo.mixed_context import mixed_context
from zoo.training.distances import euclidean, euclidean_paired
from zoo.triplet_swap import swapped_triplet

pytest.importorskip("pytorch_metric_learning")
from pytorch_metric_learning.distances import LpDistance
from pytorch_metric_learning.losses import ContrastiveLoss, NTXentLoss, TripletMarginLoss
from pytorch_metric_learning.miners import BatchHardMiner
from pytorch_metric_learning.reducers import DoNothingReducer

N = 33
LABELS = torch.arange(N)
OTHERS = torch.arange(N)  # where both are one tensor, the library takes i and i for the same patch
SETTINGS = {"distance": LpDistance(normalize_embeddings=False), "reducer": DoNothingReducer()}


@pytest.fixture
def pairs():
    return matching_pairs(N)


def losses(loss, *arguments, **others):
    return loss(*arguments, **others)["loss"]["losses"]


def close(ours, theirs):
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_hardnet_is_the_triplet_margin_loss_of_hard_negatives_from_both_sides(pairs):
    miner = BatchHardMiner(distance=SETTINGS["distance"])
    both = []
    for queries, others in (pairs, pairs[::-1]):
        mined = miner(queries, LABELS, others, OTHERS)
        loss = TripletMarginLoss(margin=1.0, **SETTINGS)
        found = losses(loss, queries, LABELS, mined, others, OTHERS)
        assert mined[0].tolist() == list(range(N))
        both.append(found)
    close(triplet(*pairs, LABELS, margin=1.0), torch.maximum(*both))


def test_triplets_swap_their_anchors_alike(pairs):
    negative = pairs[0].roll(1, 0)
    everything = torch.cat([*pairs, negative])
    triplets = LABELS, LABELS + N, LABELS + 2 * N
    loss = TripletMarginLoss(margin=2.0, swap=True, **SETTINGS)
    labels = torch.arange(3 * N)
    close(
        swapped_triplet(*pairs, negative, margin=2.0),
        losses(loss, everything, labels, triplets),
    )


def test_relative_distance_is_nt_xent_over_rows_and_columns(pairs):
    loss = NTXentLoss(temperature=1.0, **SETTINGS)
    rows = losses(loss, pairs[0], LABELS, None, pairs[1], OTHERS)
    columns = losses(loss, pairs[1], LABELS, None, pairs[0], OTHERS)
    close(descriptor_similarity(*pairs), (rows.sum() + columns.sum()) / 2)


def test_the_log_loss_is_the_smooth_triplet_margin_loss(pairs):
    triplets = LABELS[1:], LABELS[1:] + N, torch.full((N - 1,), N)
    loss = TripletMarginLoss(margin=0.2, smooth_loss=True, **SETTINGS)
    theirs = losses(loss, torch.cat(pairs), torch.arange(2 * N), triplets)
    distance = euclidean(*pairs)
    settings = {"gamma": 1.0, "alpha": 0.2, "delta": 1.0, "loss": "log"}
    close(mixed_context(distance.diagonal()[1:], distance[1:, 0], 1.15, **settings), theirs)


def test_the_siamese_hinge_is_the_contrastive_loss(pairs):
    negative = pairs[1].roll(1, 0)
    loss = ContrastiveLoss(pos_margin=1.05, neg_margin=1.35, **SETTINGS)
    indices = LABELS, LABELS + N, LABELS, LABELS + 2 * N
    found = loss(torch.cat([*pairs, negative]), torch.arange(3 * N), indices)
    theirs = found["pos_loss"]["losses"] + found["neg_loss"]["losses"]
    settings = {"gamma": 0.0, "alpha": 0.3, "delta": torch.inf, "loss": "log"}
    match, other = euclidean_paired(*pairs), euclidean_paired(pairs[0], negative)
    close(mixed_context(match, other, 1.2, **settings), theirs)
