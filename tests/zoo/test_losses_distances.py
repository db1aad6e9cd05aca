import math

import pytest
import torch
from vectors import awkward_pairs, matching_pairs, unit_rows

from zoo.exact import exact
from zoo.training.distances import (
    Coarse,
    angle,
    angle_paired,
    euclidean,
    euclidean_paired,
    hardest,
    inner,
    root,
)

CROSSED = {"euclidean": (euclidean, euclidean_paired), "angle": (angle, angle_paired)}
both = pytest.mark.parametrize(("crossed", "paired"), CROSSED.values(), ids=CROSSED)


@both
def test_all_with_all_and_row_with_row_agree(crossed, paired):
    a, p = matching_pairs(33)
    torch.testing.assert_close(crossed(a, p).diagonal(), paired(a, p))


@both
def test_autocast_does_not_touch_them(crossed, paired):
    a, p = matching_pairs(33)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(crossed(a, p), crossed(a, p).float())
        found = crossed(a, p)
    assert torch.equal(found, crossed(a, p))


def test_coarse_products_are_the_inner_products_where_there_is_no_tf32():
    """And in both directions they are allowed to be coarse, which nothing else is."""
    seen, matmul = [], torch.backends.cuda.matmul
    found = []
    for product in (inner, Coarse.apply):
        a, b = unit_rows(50, 128, 0).requires_grad_(), unit_rows(60, 128, 1).requires_grad_()
        value = product(a, b)
        (value.square() * torch.arange(60)).sum().backward()
        found.append((value, a.grad, b.grad))
    for plain, coarse in zip(*found, strict=True):
        torch.testing.assert_close(coarse, plain)

    class Seen(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            if function in (torch.Tensor.matmul, torch.Tensor.__matmul__):
                seen.append(matmul.allow_tf32)
            return super().__torch_function__(function, types, args, kwargs or {})

    with exact():
        Coarse.apply(unit_rows(2, 3).as_subclass(Seen), unit_rows(2, 3))
        inner(unit_rows(2, 3).as_subclass(Seen), unit_rows(2, 3))
        euclidean(unit_rows(2, 3).as_subclass(Seen), unit_rows(2, 3))
    assert seen == [True, False, False]


def test_euclidean_is_right_to_a_millionth():
    a, b = unit_rows(50, 128, 0), unit_rows(60, 128, 1)
    torch.testing.assert_close(euclidean(a, b), torch.cdist(a, b), rtol=0, atol=1e-6)


def test_what_it_reads_at_zero_and_beside_it():
    a = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    b = torch.tensor([[1.0, 0.1]], dtype=torch.float64)
    assert euclidean(a, a).item() == pytest.approx(0.001)
    assert euclidean(a, b).item() == pytest.approx(0.100005, abs=1e-8)
    assert root(torch.tensor(-1e-3)).item() == pytest.approx(0.001)


def test_angles_are_those_of_the_arc_cosine():
    a, b = unit_rows(50, 128, 0, torch.float64), unit_rows(60, 128, 1, torch.float64)
    torch.testing.assert_close(angle(a, b), (a @ b.T).arccos(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("radians", [0.01, 0.1, math.pi - 0.1, math.pi - 0.01])
def test_small_and_straight_angles_are_right(radians):
    a = torch.tensor([[1.0, 0.0]])
    b = torch.tensor([[math.cos(radians), math.sin(radians)]])
    assert angle(a, b).item() == pytest.approx(radians, abs=1e-4)
    assert angle_paired(a, b).item() == pytest.approx(radians, abs=1e-4)


@pytest.mark.parametrize(
    ("distance", "longest"),
    [(euclidean, 1.0), (euclidean_paired, 1.0), (angle, 2.0), (angle_paired, 2.0)],
)
def test_no_gradient_is_longer_than_promised(distance, longest):
    for name, (a, p) in awkward_pairs(9).items():
        for i in range(9):
            x, y = (rows[i : i + 1].clone().requires_grad_() for rows in (a, p))
            distance(x, y).sum().backward()
            for gradient in (x.grad, y.grad):
                assert gradient.norm() <= longest + 1e-3, name


def test_a_pair_at_rest_is_not_moved():
    a = unit_rows(5, 8).requires_grad_()
    euclidean_paired(a, a.detach()).sum().backward()
    assert (a.grad == 0).all()


def test_the_hardest_is_sought_over_row_and_column():
    distance = torch.tensor([[0.0, 5.0, 9.0], [3.0, 0.0, 7.0], [8.0, 4.0, 0.0]])
    found = hardest(torch.arange(3), distance)
    assert found.tolist() == [3, 3, 4]


def test_the_hardest_is_sought_over_all_that_is_given():
    cross, within = torch.full((2, 2), 5.0), torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    assert hardest(torch.arange(2), cross, within).tolist() == [2, 2]


def test_where_no_other_point_is_left_nothing_is_near():
    assert hardest(torch.zeros(3, dtype=torch.long), torch.zeros(3, 3)).isinf().all()


def test_those_that_tie_share_the_gradient():
    distance = torch.ones(3, 3, requires_grad=True)
    hardest(torch.arange(3), distance)[0].backward()
    assert distance.grad[0, 1] == distance.grad[0, 2] == distance.grad[1, 0] == 0.25
