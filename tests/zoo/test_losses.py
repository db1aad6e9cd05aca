"""Laws of every loss of pairs, and a slow twin of each, written from its paper in loops."""

import math

import numpy as np
import pytest
import torch
from vectors import awkward_pairs, matching_pairs

from zoo.distillation_losses import regression, relational
from zoo.hardnet import orthogonal, triplet
from zoo.hynet import hybrid_triplet, steepest, unlike_lengths
from zoo.l2net import compactness, descriptor_similarity, intermediate
from zoo.mixed_context import mixed_context
from zoo.sosnet import neighbours_of, quadratic_triplet, second_order
from zoo.training import recipe
from zoo.training.distances import alike, euclidean, hardest
from zoo.triplet_swap import swapped_triplet

norm = np.linalg.norm


def scale_aware(a, p, point, loss="log"):
    distance = euclidean(a, p)
    settings = {"gamma": 0.5, "alpha": 0.1, "delta": 5.0, "loss": loss}
    return mixed_context(distance.diagonal(), hardest(point, distance), 1.15, **settings)


FUNCTIONS = {
    "hardnet": lambda a, p, point: triplet(a, p, point, margin=1.0),
    "gor": lambda a, p, point: orthogonal(a, p.roll(1, 0)),
    "sosnet first order": lambda a, p, point: quadratic_triplet(a, p, point, margin=1.0),
    "sosnet second order": lambda a, p, point: second_order(
        a, p, point, neighbours=3, neighbourhood="released"
    ),
    "sosnet paper": lambda a, p, point: second_order(
        a, p, point, neighbours=3, neighbourhood="paper"
    ),
    "hynet": lambda a, p, point: hybrid_triplet(a, p, point, margin=1.2, alpha=2.0),
    "hynet lengths": lambda a, p, point: unlike_lengths(a, 2 * p),
    "triplet swap": lambda a, p, point: swapped_triplet(a, p, a.roll(1, 0), margin=2.0),
    "l2net E1": lambda a, p, point: descriptor_similarity(a, p),
    "l2net E2": lambda a, p, point: compactness(a, p),
    "l2net E3": lambda a, p, point: intermediate(a.unflatten(1, (-1, 2)), p.unflatten(1, (-1, 2))),
    "distilled vectors": lambda a, p, point: regression(a, p),
    "distilled distances": lambda a, p, point: relational(a, p),
    "mixed context log": scale_aware,
    "mixed context sse": lambda a, p, point: scale_aware(a, p, point, "sse"),
}
PER_PAIR = ("hardnet", "sosnet", "hynet", "mixed")  # their gradients sum over pairs that any order

every = pytest.mark.parametrize("loss", FUNCTIONS.values(), ids=FUNCTIONS)


def value_and_gradients(loss, anchor, positive, point=None, autocast=None):
    point = torch.arange(len(anchor)) if point is None else point
    a, p = (x.clone().requires_grad_() for x in (anchor, positive))
    with torch.autocast("cpu", dtype=autocast or torch.bfloat16, enabled=autocast is not None):
        value = loss(a, p, point)
    value.sum().backward()
    return value.detach(), a.grad, p.grad


@every
@pytest.mark.parametrize("n", [2, 3, 33])
@pytest.mark.parametrize("autocast", [None, torch.bfloat16, torch.float16], ids=str)
def test_value_and_gradient_are_finite(loss, n, autocast):
    for name, (a, p) in awkward_pairs(n).items():
        found = value_and_gradients(loss, a, p, autocast=autocast)
        assert all(torch.isfinite(one).all() for one in found), name


@every
@pytest.mark.parametrize("name", ["usual", "all equal"])
def test_value_and_gradient_are_finite_for_a_large_batch(loss, name):
    found = value_and_gradients(loss, *awkward_pairs(1024)[name], autocast=torch.bfloat16)
    assert all(torch.isfinite(one).all() for one in found)


@every
@pytest.mark.parametrize("autocast", [torch.bfloat16, torch.float16], ids=str)
def test_autocast_changes_nothing(loss, autocast):
    for name, (a, p) in awkward_pairs(33).items():
        exact = value_and_gradients(loss, a, p)
        found = value_and_gradients(loss, a, p, autocast=autocast)
        for one, other in zip(found, exact, strict=True):
            torch.testing.assert_close(one, other, rtol=0, atol=0, msg=name)


@every
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_vectors_are_measured_in_float32(loss, dtype):
    for name, (a, p) in awkward_pairs(33).items():
        value, *gradients = value_and_gradients(loss, a.to(dtype), p.to(dtype))
        assert value.dtype == torch.float32
        torch.testing.assert_close(
            value, value_and_gradients(loss, a.to(dtype).float(), p.to(dtype).float())[0], msg=name
        )
        assert all(torch.isfinite(gradient).all() for gradient in gradients), name


@every
@pytest.mark.parametrize("n", [2, 5])
def test_the_gradient_is_that_of_the_value(loss, n):
    a, p = matching_pairs(n, dim=4, dtype=torch.float64)
    point = torch.arange(n)
    arguments = a.requires_grad_(), p.requires_grad_()
    assert torch.autograd.gradcheck(lambda a, p: loss(a, p, point), arguments)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name.startswith(PER_PAIR)])
@pytest.mark.parametrize("n", [2, 3, 33])
def test_the_order_of_the_batch_decides_nothing(name, n):
    loss = FUNCTIONS[name]
    order = torch.randperm(n, generator=torch.Generator().manual_seed(0))
    for kind, (a, p) in awkward_pairs(n).items():
        value, *gradients = value_and_gradients(loss, a.double(), p.double())
        moved, *others = value_and_gradients(loss, a.double()[order], p.double()[order])
        torch.testing.assert_close(moved, value[order], msg=kind)
        if kind == "usual":  # elsewhere rounding decides what is nearest
            for one, other in zip(others, gradients, strict=True):
                torch.testing.assert_close(one, other[order], msg=kind)


SUMS = ["l2net E1", "l2net E2", "l2net E3", "distilled vectors", "distilled distances"]


@pytest.mark.parametrize("name", SUMS)
def test_the_order_of_the_batch_decides_no_sum(name):
    a, p = matching_pairs(33, dtype=torch.float64)
    order = torch.randperm(33, generator=torch.Generator().manual_seed(0))
    value, *_ = value_and_gradients(FUNCTIONS[name], a, p)
    moved, *_ = value_and_gradients(FUNCTIONS[name], a[order], p[order])
    torch.testing.assert_close(moved, value)


# --- slow twins


def least_across(a, p, i, kinds):
    """Over the 2N - 2 cross distances of pair i, and those within anchors and positives."""
    found = []
    for j in range(len(a)):
        if j != i:
            found += [norm(a[i] - p[j]), norm(a[j] - p[i])]
            if "within" in kinds:
                found += [norm(a[i] - a[j]), norm(p[i] - p[j])]
    return min(found)


def twin_hardnet(a, p):
    return [max(0, 1 + norm(a[i] - p[i]) - least_across(a, p, i, "cross")) for i in range(len(a))]


def twin_gor(a, p):
    products = [float(a[i] @ p[i - 1]) for i in range(len(a))]
    first = sum(products) / len(a)
    second = sum(x * x for x in products) / len(a)
    return first**2 + max(0, second - 1 / a.shape[1])


def twin_quadratic(a, p):
    return [
        max(0, 1 + norm(a[i] - p[i]) - least_across(a, p, i, "within")) ** 2 for i in range(len(a))
    ]


def nearest(x, y, i, k):
    """The k rows j != i of y that are nearest to row i of x."""
    others = [j for j in range(len(x)) if j != i]
    return set(sorted(others, key=lambda j: norm(x[i] - y[j]))[:k])


def paper_neighbours(a, p, k):
    return [nearest(a, a, i, k) | nearest(p, p, i, k) for i in range(len(a))]


def released_neighbours(a, p, k):
    """Of each kind of distance those of i, and those that i is a neighbour of."""
    found = [set() for _ in range(len(a))]
    for x, y in ((a, a), (p, p), (a, p), (p, a)):
        for i in range(len(a)):
            for j in nearest(x, y, i, k):
                found[i].add(j)
                found[j].add(i)
    return found


def twin_second_order(a, p, neighbours_of=released_neighbours):
    return [
        math.sqrt(sum((norm(a[i] - a[j]) - norm(p[i] - p[j])) ** 2 for j in near))
        for i, near in enumerate(neighbours_of(a, p, 3))
    ]


def twin_hynet(a, p):
    # Z by trying: the steepest of alpha (1 - s) + d over the angle.
    angles = np.linspace(0, np.pi, 1_000_001)
    slope = np.diff(2 * (1 - np.cos(angles)) + 2 * np.sin(angles / 2)) / np.diff(angles)

    def hybrid(distance):
        return (2 * (1 - (1 - distance**2 / 2)) + distance) / slope.max()

    return [
        max(0, 1.2 + hybrid(norm(a[i] - p[i])) - hybrid(least_across(a, p, i, "within")))
        for i in range(len(a))
    ]


def twin_swap(a, p):
    found = []
    for i in range(len(a)):
        negative = a[i - 1]
        nearer = min(norm(a[i] - negative), norm(p[i] - negative))
        found.append(max(0, 2 + norm(a[i] - p[i]) - nearer))
    return found


def twin_relative(similarity):
    total = 0.0
    for k in range(len(similarity)):
        row = [math.exp(x) for x in similarity[k]]
        column = [math.exp(x) for x in similarity[:, k]]
        total += math.log(row[k] / sum(row)) + math.log(column[k] / sum(column))
    return -total / 2


def twin_e1(a, p):
    return twin_relative(2 - np.array([[norm(x - y) for y in p] for x in a]))


def twin_e2(a, p):
    total = 0.0
    for y in (a, p):
        for i in range(y.shape[1]):
            for j in range(y.shape[1]):
                if i != j:
                    total += (sum(row[i] * row[j] for row in y) / len(y)) ** 2
    return total / 2


def twin_e3(a, p):
    return twin_relative(np.array([[float(x @ y) for y in p] for x in a]))


def twin_mixed(a, p, of):
    found = []
    for i in range(len(a)):
        match, negative = norm(a[i] - p[i]), least_across(a, p, i, "cross")
        theta = 0.5 * (match + negative) / 2 + 0.5 * 1.15
        near = of(5 * (2 * theta - 2 * match - 0.1)) / 5
        far = of(5 * (2 * negative - 2 * theta - 0.1)) / 5
        found.append((near + far) / 2)
    return found


def twin_relational(a, p):
    pairs = [(i, j) for i in range(len(a)) for j in range(len(a)) if i != j]
    student = [norm(a[i] - a[j]) for i, j in pairs]
    teacher = [norm(p[i] - p[j]) for i, j in pairs]
    total = 0.0
    for s, t in zip(student, teacher, strict=True):
        apart = abs(s / np.mean(student) - t / np.mean(teacher))
        total += apart**2 / 2 if apart <= 1 else apart - 0.5
    return total / len(pairs)


def smax(x, y):
    return math.exp(x) / (math.exp(x) + math.exp(y))


TWINS = {
    "hardnet": twin_hardnet,
    "gor": twin_gor,
    "sosnet first order": twin_quadratic,
    "sosnet second order": twin_second_order,
    "sosnet paper": lambda a, p: twin_second_order(a, p, paper_neighbours),
    "hynet": twin_hynet,
    "hynet lengths": lambda a, p: [(norm(x) - norm(2 * y)) ** 2 for x, y in zip(a, p, strict=True)],
    "triplet swap": twin_swap,
    "l2net E1": twin_e1,
    "l2net E2": twin_e2,
    "l2net E3": twin_e3,
    "distilled vectors": lambda a, p: np.mean(
        [norm(x - y) ** 2 for x, y in zip(a, p, strict=True)]
    ),
    "distilled distances": twin_relational,
    "mixed context log": lambda a, p: twin_mixed(a, p, lambda x: -math.log(smax(x, 0))),
    "mixed context sse": lambda a, p: twin_mixed(a, p, lambda x: smax(-x, 0) ** 2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("n", [2, 3, 12])
def test_it_equals_its_slow_twin(name, n):
    a, p = matching_pairs(n, seed=n)
    twin = TWINS[name](a.double().numpy(), p.double().numpy())
    expected = torch.tensor(twin, dtype=torch.float64)
    found = FUNCTIONS[name](a, p, torch.arange(n))
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=5e-5)


# --- what is said beside the formulas


@pytest.mark.parametrize("name", ["hardnet", "sosnet first order", "hynet", "mixed context log"])
def test_patches_of_the_same_point_are_no_negatives(name):
    a, p = matching_pairs(6)
    twice = torch.cat([a, a]), torch.cat([p, p])
    once = FUNCTIONS[name](a, p, torch.arange(6))
    found = FUNCTIONS[name](*twice, torch.arange(6).repeat(2))
    torch.testing.assert_close(found, torch.cat([once, once]))


def test_a_negative_too_near_to_be_one_is_passed_over():
    a, p = matching_pairs(6)
    near, far = p.clone(), p.clone()
    near[3] = a[0] + 0.005 * p[0]
    far[3] = a[0] + 0.05 * p[0]
    usual, passed, seen = (triplet(a, x, torch.arange(6), margin=1.0)[0] for x in (p, near, far))
    assert passed <= usual < seen


@pytest.mark.parametrize("name", ["hardnet", "sosnet first order", "hynet"])
def test_nothing_is_lost_where_every_negative_is_too_near(name):
    a, p = awkward_pairs(6)["all equal"]
    assert (FUNCTIONS[name](a, p, torch.arange(6)) == 0).all()


@pytest.mark.parametrize("neighbourhood", ["released", "paper"])
def test_second_order_similarity_is_full_where_both_sides_are_alike(neighbourhood):
    a, _ = matching_pairs(9)
    turned = a.flip(1)  # an isometry
    found = second_order(a, turned, torch.arange(9), neighbours=3, neighbourhood=neighbourhood)
    assert found.max() < 2e-3


def test_the_released_code_of_sosnet_has_about_twice_the_neighbours_of_the_paper():
    a, p = matching_pairs(512, dim=128, noise=1.0)
    within = euclidean(a, a), euclidean(p, p)
    other = ~alike(torch.arange(512))
    means = []
    for between, twin in ((None, paper_neighbours), (euclidean(a, p), released_neighbours)):
        found = neighbours_of(*within, between, other, 8)
        slow = torch.zeros_like(other)
        for i, near in enumerate(twin(a.numpy(), p.numpy(), 8)):
            slow[i, list(near)] = True
        assert (found != slow).sum() <= 4  # where float32 does not tell the eighth from the ninth
        means.append(round(float(found.sum(dim=1).float().mean()), 1))
    assert means == [14.7, 26.9]


def test_released_neighbours_are_mutual_and_not_too_near():
    a, p = matching_pairs(40, dim=8, noise=1.0)
    p[3] = a[5]
    other = ~alike(torch.arange(40))
    found = neighbours_of(euclidean(a, a), euclidean(p, p), euclidean(a, p), other, 3)
    assert torch.equal(found, found.T) and not found.diagonal().any()
    far = torch.full((40, 40), 2.0)
    near = far.clone()
    near[3, 5] = near[5, 3] = 0.007
    near[0, 1] = 0.009
    found = neighbours_of(near, far, far + 1, other, 38)
    assert found[0, 1] and found[1, 0]
    only = neighbours_of(near, near, near, other, 1)
    assert not only[3, 5] and only[0, 1] and only[1, 0]


def released_hynet(a, p, raw_a, raw_p):
    """As yuruntian/HyNet computes it: a sum of undivided distances, margin 1.2, gamma 0.1."""
    total = 0.0
    for i in range(len(a)):
        near, far = norm(a[i] - p[i]), least_across(a, p, i, "within")
        total += max(0.0, 1.2 + (near + near**2 / 2 * 2) - (far + far**2 / 2 * 2))
        total += 0.1 * (norm(raw_a[i]) - norm(raw_p[i])) ** 2
    return total


def test_the_recipe_of_hynet_is_its_released_run_divided_by_z():
    read = recipe.read("hynet").method.options
    margin, alpha, gamma = read["margin"], read["alpha"], read["gamma"]
    a, p = matching_pairs(20, dtype=torch.float64)
    lengths = 1 + torch.arange(20)[:, None] / 10
    raw = a * lengths, p / lengths

    def ours(margin, gamma):
        losses = hybrid_triplet(a, p, torch.arange(20), margin=margin, alpha=alpha)
        return float((losses + gamma * unlike_lengths(*raw)).sum())

    theirs = released_hynet(*(x.numpy() for x in (a, p, *raw)))
    z = steepest(alpha)
    assert (margin, alpha, gamma) == (0.4386, 2.0, 0.0366)
    assert z == pytest.approx(2.736, abs=5e-4)
    assert z * ours(1.2 / z, 0.1 / z) == pytest.approx(theirs, rel=1e-5)
    assert z * ours(margin, gamma) == pytest.approx(theirs, rel=2e-3)  # rounded to four decimals


def test_random_directions_are_as_orthogonal_as_regularisation_wants_them():
    a, p = matching_pairs(1024, dim=64, noise=1000)
    assert orthogonal(a, p) < 1e-3
    assert orthogonal(a, a) > 1.9
