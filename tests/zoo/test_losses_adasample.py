"""AdaSample: the loss, who is drawn and how often, what is described, and figure 3."""

import math

import numpy as np
import pytest
import torch
from scipy import stats
from vectors import awkward_pairs, matching_pairs, unit_rows

from zoo.adasample import CLOSE, AdaSample, chances, hinge, weights
from zoo.adasample_informativeness import Informativeness, informativeness
from zoo.backbones import Network, unit
from zoo.hardnet import HardNet
from zoo.sosnet import second_order
from zoo.training.classes import any_pairs, classes
from zoo.training.distances import angle_paired, euclidean_paired
from zoo.training.groups import Groups
from zoo.training.method import Batch, Describe

norm = np.linalg.norm
DISTANCES = ("angle", "euclidean")
NEGATIVES = ("same", "cross")

each = pytest.mark.parametrize("distance", DISTANCES)
each_kind = pytest.mark.parametrize("negatives", NEGATIVES)


def loss(anchor, positive, distance, negatives, point=None):
    point = torch.arange(len(anchor)) if point is None else point
    return hinge(anchor, positive, point, margin=1.0, distance=distance, negatives=negatives)


def weighted(anchor, positive, distance, negatives):
    near = {"angle": angle_paired, "euclidean": euclidean_paired}[distance](anchor, positive)
    return (weights(near) * loss(anchor, positive, distance, negatives)).mean()


# --- the loss


def twin(a, p, distance, negatives):
    """Equations 14 and 15, pair after pair."""

    def d(x, y):
        return norm(x - y) if distance == "euclidean" else math.acos(np.clip(x @ y, -1, 1))

    found = []
    for i in range(len(a)):
        others = [j for j in range(len(a)) if j != i]
        if negatives == "same":
            least = min(min(d(a[i], a[j]), d(p[i], p[j])) for j in others)
        else:
            least = min(min(d(a[i], p[j]), d(a[j], p[i])) for j in others)
        found.append(max(0.0, 1 + d(a[i], p[i]) ** 2 - least**2))
    return found


@each
@each_kind
@pytest.mark.parametrize("n", [2, 3, 17])
def test_the_loss_equals_its_slow_twin(distance, negatives, n):
    a, p = matching_pairs(n, dim=3, noise=0.8, dtype=torch.float64)
    slow = twin(a.numpy(), p.numpy(), distance, negatives)
    np.testing.assert_allclose(loss(a, p, distance, negatives).numpy(), slow, atol=1e-5)


@each
@each_kind
@pytest.mark.parametrize("n", [2, 3, 33, 1024])
@pytest.mark.parametrize("autocast", [None, torch.bfloat16, torch.float16], ids=str)
def test_value_and_gradient_are_finite_and_autocast_changes_nothing(
    distance, negatives, n, autocast
):
    for name, (a, p) in awkward_pairs(n).items():
        if n == 1024 and name != "all equal":
            continue
        gradients = []
        for kind in (None, autocast):
            pair = [x.clone().requires_grad_() for x in (a, p)]
            with torch.autocast("cpu", dtype=kind or torch.bfloat16, enabled=bool(kind)):
                value = weighted(*pair, distance, negatives)
            value.backward()
            gradients.append([value.detach(), *(x.grad for x in pair)])
        assert all(torch.isfinite(x).all() for x in gradients[0]), name
        assert all(torch.equal(*both) for both in zip(*gradients, strict=True)), name


@each
@each_kind
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_vectors_are_measured_in_float32(distance, negatives, dtype):
    for name, (a, p) in awkward_pairs(33).items():
        a, p = a.to(dtype), p.to(dtype)
        found = weighted(a, p, distance, negatives)
        assert found.dtype == torch.float32
        torch.testing.assert_close(
            found, weighted(a.float(), p.float(), distance, negatives), msg=name
        )


@each
@each_kind
def test_the_gradient_is_that_of_the_value(distance, negatives):
    a, p = matching_pairs(4, dim=4, dtype=torch.float64)
    arguments = a.requires_grad_(), p.requires_grad_()
    assert torch.autograd.gradcheck(lambda a, p: loss(a, p, distance, negatives), arguments)


@each
@each_kind
def test_the_order_of_the_batch_decides_nothing(distance, negatives):
    a, p = matching_pairs(33, dtype=torch.float64)
    order = torch.randperm(33, generator=torch.Generator().manual_seed(0))
    moved = loss(a[order], p[order], distance, negatives)
    torch.testing.assert_close(moved, loss(a, p, distance, negatives)[order])


@each
@each_kind
def test_without_a_negative_there_is_nothing_to_be_gained(distance, negatives):
    a, p = (x.requires_grad_() for x in matching_pairs(3))
    found = loss(a, p, distance, negatives, point=torch.zeros(3, dtype=torch.long))
    found.sum().backward()
    assert found.tolist() == [0, 0, 0]
    assert a.grad.abs().max() == p.grad.abs().max() == 0


def test_angle_and_euclidean_agree_where_patches_are_near():
    a, p = matching_pairs(50, noise=0.02, dtype=torch.float64)
    torch.testing.assert_close(angle_paired(a, p), euclidean_paired(a, p), rtol=1e-3, atol=0)


def test_weights_are_one_over_the_distance_with_mean_one_and_bounded():
    near = torch.tensor([0.1, 0.2, 0.4], requires_grad=True)
    found = weights(near)
    assert not found.requires_grad
    torch.testing.assert_close(found / found[0], torch.tensor([1.0, 0.5, 0.25]))
    assert float(found.mean()) == pytest.approx(1)
    assert float(weights(torch.tensor([0.0, CLOSE]))[0]) == 1  # a duplicate doesn't take it all


def test_the_weight_takes_the_distance_out_of_the_pull_on_a_matching_pair():
    """w_i times the gradient of d^2 is that of 2 d: far pairs are drawn, not pulled harder."""
    a = unit_rows(1, 8, dtype=torch.float64).repeat(2, 1)
    p = unit(a + torch.tensor([[0.1], [0.6]]) * unit_rows(1, 8, 1, torch.float64))
    p.requires_grad_()
    near = euclidean_paired(a, p)
    (near.square() / near.detach()).sum().backward()
    pull = p.grad.norm(dim=1)
    torch.testing.assert_close(pull, torch.full((2,), 2.0, dtype=torch.float64), rtol=1e-3, atol=0)


# --- who is drawn


def test_chances_are_powers_of_the_distance():
    distance = torch.tensor([[0.001, 0.2, 0.4], [0.5, 0.001, 0.5]])
    found = chances(distance, torch.tensor([0, 1]), 3.0)
    torch.testing.assert_close(
        found, torch.tensor([[0, 1 / 9, 8 / 9], [0.5, 0, 0.5]], dtype=torch.float64)
    )


@pytest.mark.parametrize("exponent", [0.0, 1.0, 50.0, 1e4, 1e30, math.inf])
def test_chances_are_probabilities_whatever_the_exponent(exponent):
    distance = torch.rand(20, 15, generator=torch.Generator().manual_seed(0)) + 0.001
    distance[3] = 0.5
    anchor = torch.arange(20) % 15
    found = chances(distance, anchor, exponent)
    torch.testing.assert_close(found.sum(dim=1), torch.ones(20, dtype=torch.float64))
    assert (found.gather(1, anchor[:, None]) == 0).all()
    torch.testing.assert_close(found[3].max(), torch.tensor(1 / 14, dtype=torch.float64))


def test_without_bound_the_farthest_is_taken():
    distance = torch.tensor([[0.5, 0.3, 0.49999, 0.2]])
    found = chances(distance, torch.tensor([3]), math.inf)
    assert found[0, 0] > 0.9999


def test_with_exponent_0_all_are_as_likely():
    found = chances(torch.rand(3, 5) + 0.001, torch.zeros(3, dtype=torch.long), 0.0)
    torch.testing.assert_close(found[:, 1:], torch.full((3, 4), 0.25, dtype=torch.float64))


def groups(sizes):
    point = np.repeat(np.arange(len(sizes)), sizes)
    order = np.random.default_rng(0).permutation(len(point))
    return Groups.of(point[order], np.zeros(len(point), int))


def test_a_class_is_filled_with_turned_patches_of_its_own():
    found = groups([2, 3, 20, 15, 7])
    batch = classes(found, np.arange(5), 15, 30.0, np.random.default_rng(0))
    rows, angle = batch.rows.reshape(5, 15), batch.angle.reshape(5, 15)
    for point, own, turned in zip(batch.point[::15], rows, angle, strict=True):
        size = found.size[point]
        assert set(own) <= set(found.rows(point))
        as_they_are = own[turned == 0]
        assert len(as_they_are) == len(set(as_they_are)) == min(size, 15)
        assert np.abs(turned).max() <= 30
        if size < 8:
            assert turned.min() < -5 and turned.max() > 5
    assert batch.angle.dtype == np.float32
    assert np.array_equal(batch.point, np.repeat(batch.point[::15], 15))


def test_any_pairs_are_two_patches_of_a_class_each_as_often():
    found = groups([2, 3, 4, 9])
    seen = np.zeros((15, 15))
    for number in range(800):
        rng = np.random.default_rng(number)
        whole = classes(found, np.arange(4), 15, 20.0, rng)
        whole.rows[:] = np.tile(np.arange(15), 4)  # the place in the class
        pairs = any_pairs(whole, 15, rng)
        anchor, positive = pairs.rows.reshape(2, 4)
        assert np.array_equal(*pairs.point.reshape(2, 4))
        np.add.at(seen, (anchor, positive), 1)
    assert not seen.diagonal().any()
    off = seen[~np.eye(15, dtype=bool)]
    assert stats.chisquare(off).pvalue > 1e-3


def method(lambda_=10.0, pairs=6, **options):
    options = {"class_size": 4, "separate": False} | options
    return AdaSample(pairs=pairs, lambda_=lambda_, margin=1.0, **options)


@pytest.mark.parametrize("lambda_", [0.0, 10.0])
def test_half_of_the_classes_are_seen_in_few_images(lambda_):
    point = np.arange(400).repeat(4)
    found = Groups.of(point, point % 40)
    batch = method(lambda_, pairs=8, images=1).sampler(found, 0)(0)
    seen = np.unique(batch.point)
    assert len(seen) == 8
    assert np.bincount(seen % 40).max() >= 4


def test_a_patch_and_its_copy_are_no_pair():
    with pytest.raises(ValueError, match="give a turn, or class_size 2"):
        method(0.0, turn=0.0)
    with pytest.raises(ValueError, match="give a turn, or class_size 2"):
        HardNet(pairs=6, margin=1.0, class_size=4, turn=0.0)
    assert method(10.0, turn=0.0).turn == 0
    assert HardNet(pairs=6, margin=1.0, class_size=2, turn=0.0).turn == 0


def test_hardnet_star_draws_adasamples_classes_and_has_hardnets_loss():
    made = HardNet(pairs=6, margin=1.0, class_size=4, separate=False)
    found = groups([2, 3, 4, 9] * 5)
    batch, same = (one.sampler(found, 0)(3) for one in (made, method(0.0)))
    for mine, ada in zip(vars(batch).values(), vars(same).values(), strict=True):
        assert np.array_equal(mine, ada)
    assert batch.angle.any() and len(batch) == 12
    patches = torch.randn(12, 1, 3, 3, generator=torch.Generator().manual_seed(0))
    point = torch.arange(6).repeat(2)
    a, p = unit(patches.flatten(1)[:, :5]).double().numpy().reshape(2, 6, 5)
    losses = []
    for i in range(6):
        least = min(min(norm(a[i] - p[j]), norm(a[j] - p[i])) for j in range(6) if j != i)
        losses.append(max(0.0, 1 + norm(a[i] - p[i]) - least))
    value = made(Batch(Counted(), patches, point, torch.Generator()))
    assert float(value) == pytest.approx(np.mean(losses), rel=1e-4)


@pytest.mark.parametrize("lambda_", [0.0, 10.0])
def test_the_seed_and_the_step_decide_all(lambda_):
    found = groups([3] * 30)
    one, same, other = (method(lambda_).sampler(found, seed) for seed in (0, 0, 1))
    list(map(one, range(3)))
    for step in (0, 5, 10**6):
        assert np.array_equal(one(step).rows, same(step).rows)
        assert np.array_equal(one(step).angle, same(step).angle)
    assert not np.array_equal(one(0).rows, other(0).rows)
    assert not np.array_equal(one(0).rows, one(1).rows)
    assert len(one(0)) == (24 if lambda_ else 12)


@pytest.mark.parametrize(
    ("sizes", "told"),
    [([3] * 5, "a step needs 6 points.*has 5"), ([3] * 9 + [1], "1 of 10 points have one patch")],
)
def test_what_can_give_no_such_batch_is_refused_at_once(sizes, told):
    with pytest.raises(ValueError, match=told):
        method().sampler(groups(sizes), 0)


# --- a step


class Counted(Describe):
    """A network that gives each patch the vector it carries, and counts."""

    def __init__(self, dim=5):
        self.dim, self.still_patches, self.trained = dim, 0, []

    def __call__(self, patches):
        self.trained.append(patches)
        return unit(patches.flatten(1)[:, : self.dim])

    def still(self, patches):
        self.still_patches += len(patches)
        with torch.no_grad():
            return unit(patches.flatten(1)[:, : self.dim])


def step(made, n=6, k=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    count = n * (k if made.lambda_ else 2)
    patches = torch.randn(count, 1, 3, 3, generator=generator).requires_grad_()
    point = torch.arange(n).repeat_interleave(k) if made.lambda_ else torch.arange(n).repeat(2)
    describe = Counted()
    value = made(Batch(describe, patches, point, generator))
    return value, describe, patches


def test_whole_classes_are_described_once_and_what_is_chosen_once_more():
    value, describe, patches = step(method())
    assert describe.still_patches == 24 and [len(x) for x in describe.trained] == [12]
    value.backward()
    learned = patches.grad.abs().amax(dim=(1, 2, 3)) > 0
    assert (learned.view(6, 4).sum(dim=1) <= 2).all() and learned.sum() > 6


def test_any_pair_needs_no_description_of_classes():
    _, describe, _ = step(method(lambda_=0.0))
    assert describe.still_patches == 0 and [len(x) for x in describe.trained] == [12]


def test_the_pairs_are_anchors_then_positives_of_the_same_classes():
    vectors = unit_rows(24, 5)
    chosen = method().choice(vectors, torch.Generator().manual_seed(0))
    anchor, positive = chosen.view(2, 6)
    assert torch.equal(anchor // 4, torch.arange(6)) and torch.equal(positive // 4, anchor // 4)
    assert (anchor != positive).all()


@each
def test_hard_positives_alone_are_taken_without_bound(distance):
    vectors = unit_rows(24, 5, dtype=torch.float64)
    made = method(math.inf, distance=distance)
    for seed in range(20):
        anchor, positive = made.choice(vectors, torch.Generator().manual_seed(seed)).view(2, 6)
        for i, (a, p) in enumerate(zip(anchor, positive, strict=True)):
            similar = vectors[4 * i : 4 * i + 4] @ vectors[a]
            assert p == 4 * i + similar.argmin()


def test_pairs_are_drawn_as_often_as_equation_13_says():
    vectors = unit_rows(4, 3, seed=5)
    made = method(lambda_=2.0)
    made.average.fill_(0.5)
    seen = np.zeros((4, 4))
    generator = torch.Generator().manual_seed(0)
    many = vectors.repeat(2000, 1)
    anchor, positive = made.choice(many, generator).view(2, 2000) % 4
    np.add.at(seen, (anchor.numpy(), positive.numpy()), 1)
    angle = (vectors @ vectors.T).clamp(-1, 1).arccos().double().numpy()
    expected = angle**4 * ~np.eye(4, dtype=bool)
    expected = expected / expected.sum(axis=1, keepdims=True) * seen.sum(axis=1, keepdims=True)
    off = ~np.eye(4, dtype=bool)
    assert stats.chisquare(seen[off], expected[off] * seen.sum() / expected.sum()).pvalue > 1e-3


@pytest.mark.parametrize("lambda_", [0.5, 10.0, math.inf])
def test_pairs_are_those_that_multinomial_draws(lambda_):
    vectors = unit_rows(4000, 5)
    made = method(lambda_)
    made.average.fill_(0.7)
    random, same = (torch.Generator().manual_seed(1) for _ in range(2))
    anchor, positive = made.choice(vectors, random).view(2, 1000)
    first = torch.arange(1000) * 4
    assert torch.equal(anchor, first + torch.randint(4, (1000,), generator=same))
    distance = angle_paired(vectors[anchor].repeat_interleave(4, dim=0), vectors).view(1000, 4)
    share = chances(distance, anchor - first, lambda_ / float(made.average))
    assert torch.equal(positive - first, torch.multinomial(share, 1, generator=same)[:, 0])


def test_the_same_generator_draws_the_same_pairs():
    vectors = unit_rows(24, 5)
    one, two = (method().choice(vectors, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(one, two)


def test_the_average_loss_starts_at_the_margin_moves_and_is_kept():
    made = method()
    assert float(made.average) == 1
    value, describe, _ = step(made)
    anchor, positive = unit(describe.trained[0].flatten(1)[:, :5]).chunk(2)
    losses = loss(anchor, positive, "angle", "same").detach()
    assert float(made.average) == pytest.approx(1 + 0.01 * (float(losses.mean()) - 1))
    assert value.item() == pytest.approx(
        float((weights(angle_paired(anchor, positive)) * losses).mean()), rel=1e-5
    )
    other = method()
    other.load_state_dict(made.state_dict())
    assert float(other.average) == float(made.average)


@pytest.mark.parametrize("average", [0.0, 1e-30])
@pytest.mark.parametrize("lambda_", [10.0, math.inf])
def test_an_average_loss_of_nothing_is_no_division_by_nothing(average, lambda_):
    made = method(lambda_)
    made.average.fill_(average)
    assert made.choice(unit_rows(24, 5), torch.Generator()).shape == (12,)


def test_classes_of_equal_patches_are_drawn_from():
    value, *_ = step(method())
    vectors = unit_rows(1, 5).repeat(24, 1)
    assert method().choice(vectors, torch.Generator()).shape == (12,)
    assert math.isfinite(value.item())


def test_second_order_similarity_is_added():
    plain, describe, _ = step(method())
    both, *_ = step(method(sos=0.5, neighbours=3))
    anchor, positive = unit(describe.trained[0].flatten(1)[:, :5]).chunk(2)
    second = second_order(
        anchor, positive, torch.arange(6), neighbours=3, neighbourhood="released"
    ).mean()
    torch.testing.assert_close(both, plain + 0.5 * second)


# --- figure 3


class Linear(Network):
    side, dim = 3, 5

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.weight = torch.nn.Linear(9, 5, bias=False)
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, patches):
        return unit(self.dropout(self.weight(patches.flatten(1))))


@each
def test_informativeness_is_the_gradient_of_the_loss_in_the_batch(distance):
    network = Linear().train()
    patches = torch.randn(4, 3, 1, 3, 3, generator=torch.Generator().manual_seed(0))
    found = informativeness(network, patches, margin=1.0, distance=distance)
    assert network.training and all(p.grad is None for p in network.parameters())
    network.eval()
    for j in (1, 2):
        a, p = network(patches[:, 0]), network(patches[:, j])
        losses = loss(a, p, distance, "same")
        for i in range(4):
            (by,) = torch.autograd.grad(losses[i], [network.weight.weight], retain_graph=True)
            assert float(found.gradient[i, j - 1]) == pytest.approx(float(by.norm()), rel=1e-4)
        near = {"angle": angle_paired, "euclidean": euclidean_paired}[distance](a, p)
        torch.testing.assert_close(found.distance[:, j - 1], near.detach())


def test_probabilities_are_those_within_a_class_and_correlate_by_pearson():
    distance = torch.tensor([[1.0, 3.0], [2.0, 2.0], [1.0, 1.0]])
    gradient = torch.tensor([[1.0, 1.0], [1.0, 3.0], [0.0, 0.0]])  # the last class has none
    found = Informativeness(distance, gradient)
    by_distance, by_gradient = found.induced
    assert by_distance.tolist() == [[0.25, 0.75], [0.5, 0.5]]
    assert by_gradient.tolist() == [[0.5, 0.5], [0.25, 0.75]]
    assert found.correlation == pytest.approx(
        stats.pearsonr([0.25, 0.75, 0.5, 0.5], [0.5, 0.5, 0.25, 0.75]).statistic, abs=1e-6
    )


@pytest.mark.parametrize("gradient", [[[0.0, 0.0]], [[1.0, 1.0]]])
def test_a_correlation_of_what_does_not_vary_is_refused(gradient):
    found = Informativeness(torch.tensor([[1.0, 2.0]]), torch.tensor(gradient))
    with pytest.raises(ValueError, match="don't vary"):
        _ = found.correlation
