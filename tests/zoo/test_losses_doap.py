"""Relaxed average precision: its slow twins, its laws, and how little memory it takes."""

import itertools

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from vectors import awkward_pairs, unit_rows

from harness.metrics import average_precision as step_sum
from harness.metrics import rank
from zoo import doap
from zoo.doap import (
    DOAP,
    BinaryDOAP,
    Bins,
    Histograms,
    average_precision,
    closed_form,
    euclidean,
    hamming,
)
from zoo.training.distances import wide
from zoo.training.method import Batch, Describe

DIM = 8


def batch(points=4, each=3, dim=DIM, noise=0.7, seed=0, dtype=torch.float64):
    """Vectors of so many points, and the points."""
    point = torch.arange(points).repeat_interleave(each)
    near = unit_rows(points, dim, seed, dtype)[point]
    vectors = near + noise * unit_rows(len(point), dim, seed + 1, dtype)
    return vectors / vectors.norm(dim=1, keepdim=True), point


def codes(points=4, each=3, bits=DIM, flips=0.2, seed=0):
    rng = np.random.default_rng(seed)
    point = np.arange(points).repeat(each)
    code = np.where(rng.random((points, bits)) < 0.5, -1.0, 1.0)[point]
    code = np.where(rng.random(code.shape) < flips, -code, code)
    return torch.from_numpy(code), torch.from_numpy(point)


def relaxed(vectors, point, ignored=None, b=10):
    return average_precision(vectors, point, euclidean(b), ignored=ignored)


def relaxed_binary(vectors, point, ignored=None):
    return average_precision(
        wide(vectors).tanh(), point, hamming(vectors.shape[1]), ignored=ignored
    )


both = pytest.mark.parametrize("relaxation", [relaxed, relaxed_binary])


# --- slow twins


def twin_in_loops(vectors, point, kind, ignored=None, b=10):
    """The paper's steps for one query after the other: D, delta, h+, h, H, average precision."""
    n, found = len(point), []
    for q in range(n):
        matches, everything = [0.0] * (b + 1), [0.0] * (b + 1)
        for x in range(n):
            if x == q or (ignored is not None and ignored[q, x]):
                continue
            if kind == "hamming":
                place = (b - vectors[q] @ vectors[x]) / 2
            else:
                place = np.linalg.norm(vectors[q] - vectors[x]) * b / 2
            for k in range(b + 1):
                share = max(0.0, 1 - abs(place - k))
                everything[k] += share
                matches[k] += share * (point[x] == point[q])
        if sum(matches):
            total = 0.0
            for k in range(b + 1):
                found_here = sum(matches[: k + 1]) + sum(matches[:k])
                passed_here = sum(everything[: k + 1]) + sum(everything[:k])
                total += matches[k] * (found_here + 1) / (passed_here + 1)
            found.append(total / sum(matches))
    return np.array(found)


def twin_with_a_tensor_of_all_bins(vectors, point, bins, ignored=None):
    """M x M x (b + 1), and its gradients by autograd."""
    place = bins.place(vectors @ vectors.T).clamp(0, bins.last)
    share = (1 - (place[..., None] - torch.arange(bins.last + 1)).abs()).relu()
    counted = ~torch.eye(len(point), dtype=torch.bool)
    if ignored is not None:
        counted &= ~ignored
    match = (point[:, None] == point) & counted
    matches = (share * match[..., None]).sum(dim=1)
    everything = (share * counted[..., None]).sum(dim=1)
    query = match.any(dim=1)
    return closed_form(matches[query], everything[query])


def exact_with_ties(match, distance):
    """The mean over all orders of what ties, in closed form (McSherry & Najork 2008)."""
    found = passed = total = 0.0
    for value in np.unique(distance):
        here = distance == value
        n, hits = here.sum(), match[here].sum()
        for j in range(n):
            others = j * (hits - 1) / (n - 1) if n > 1 else 0.0
            total += hits / n * (found + others + 1) / (passed + j + 1)
        found, passed = found + hits, passed + n
    return total / match.sum()


def exact(vectors, point):
    """Average precision of each query by its true distances."""
    d = np.linalg.norm(vectors[:, None].numpy() - vectors.numpy(), axis=2)
    rows = []
    for q in range(len(point)):
        others = np.arange(len(point)) != q
        match = (point == point[q]).numpy()[others]
        rows.append(step_sum(rank(match, d[q][others])))
    return np.array(rows)


@pytest.mark.parametrize("seed", range(5))
def test_exact_with_ties_is_the_mean_over_all_orders(seed):
    rng = np.random.default_rng(seed)
    match, distance = np.arange(6) < 3, rng.integers(0, 3, 6)
    areas = []
    for order in itertools.permutations(range(6)):
        if (np.diff(distance[list(order)]) >= 0).all():
            hits = match[list(order)]
            areas.append((hits * np.cumsum(hits) / np.arange(1, 7)).sum() / 3)
    assert exact_with_ties(match, distance) == pytest.approx(np.mean(areas))


def some_ignored(point, seed=0):
    drawn = torch.rand(len(point), len(point), generator=torch.Generator().manual_seed(seed)) < 0.4
    return drawn & (point[:, None] != point)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("skip", [False, True])
def test_equals_the_papers_steps_one_after_the_other(seed, skip):
    vectors, point = batch(seed=seed)
    ignored = some_ignored(point, seed) if skip else None
    slow = twin_in_loops(vectors.numpy(), point.numpy(), "euclidean", ignored)
    np.testing.assert_allclose(relaxed(vectors, point, ignored).numpy(), slow, atol=1e-5)
    slow = twin_in_loops(vectors.tanh().numpy(), point.numpy(), "hamming", ignored, b=DIM)
    np.testing.assert_allclose(relaxed_binary(vectors, point, ignored).numpy(), slow, atol=1e-12)


@pytest.mark.parametrize("bins", [euclidean(10), euclidean(25), euclidean(1), hamming(DIM)])
@pytest.mark.parametrize("skip", [False, True])
def test_value_and_gradient_are_those_of_the_tensor_of_all_bins(bins, skip, monkeypatch):
    monkeypatch.setattr(doap, "CELLS", 40)  # three queries at a time
    vectors, point = batch()
    point[-1] = 99  # a patch alone, which is found but doesn't ask
    ignored = some_ignored(point) if skip else None
    weight = torch.rand(11, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    gradients = []
    for run in (average_precision, twin_with_a_tensor_of_all_bins):
        x = vectors.clone().requires_grad_()
        found = run(x, point, bins, ignored=ignored)
        (found * weight).sum().backward()
        gradients.append((found.detach(), x.grad))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, atol=1e-12, rtol=1e-9)


def test_counts_are_those_of_a_library_that_has_fast_ap():
    """The authors' later FastAP: the same histograms, of squared distances, in another formula."""
    losses = pytest.importorskip("pytorch_metric_learning.losses")
    squared = Bins(10, lambda g: (2 - 2 * g) * 10 / 4, lambda place: torch.full_like(place, -5.0))
    vectors, point = batch(points=6, each=4)
    ours, theirs = (vectors.clone().requires_grad_() for _ in range(2))
    counts = Histograms.apply(ours, point, None, torch.arange(24), squared)
    matches, others = counts.unbind(dim=1)
    passed = (matches + others).cumsum(dim=1)
    fast = (matches * matches.cumsum(dim=1) / passed.clamp(min=1e-9)).sum(dim=1) / 3
    (1 - fast.mean()).backward()
    library = losses.FastAPLoss(num_bins=10)
    library.distance.normalize_embeddings = False
    value = library(theirs, point)
    value.backward()
    torch.testing.assert_close(1 - fast.mean(), value, atol=1e-6, rtol=0)
    # Theirs is |x - y|^2, which is 2 - 2xy on the sphere alone: gradients agree along it.
    one, other = (
        g - (g * vectors).sum(1, keepdim=True) * vectors for g in (ours.grad, theirs.grad)
    )
    torch.testing.assert_close(one, other, atol=1e-6, rtol=1e-4)


# --- laws


@both
def test_no_count_is_lost(relaxation, monkeypatch):
    kept = []

    def keep(matches, everything):
        kept.append((matches, everything))
        return closed_form(matches, everything)

    monkeypatch.setattr(doap, "closed_form", keep)
    vectors, point = batch(points=5, each=4, dtype=torch.float32)
    vectors[3] = -vectors[2]  # the farthest that there is
    vectors[5] = vectors[4]
    relaxation(vectors, point)
    matches, everything = kept[0]
    torch.testing.assert_close(matches.sum(dim=1), torch.full((20,), 3.0))
    torch.testing.assert_close(everything.sum(dim=1), torch.full((20,), 19.0))
    assert matches.min() >= 0 and (everything - matches).min() >= -1e-6


@pytest.mark.parametrize("seed", range(10))
def test_the_closed_form_is_exact_where_no_bin_holds_two(seed):
    rng = np.random.default_rng(seed)
    match = rng.permutation(np.arange(30) < 7)
    counts = torch.from_numpy(match.astype(float))[None], torch.ones(1, 30, dtype=torch.float64)
    assert float(closed_form(*counts)) == pytest.approx(step_sum(rank(match, np.arange(30.0))))


@pytest.mark.parametrize("seed", range(5))
def test_binary_codes_score_about_the_mean_over_the_orders_of_ties(seed):
    code, point = codes(points=8, each=4, bits=32, seed=seed)
    found = average_precision(code, point, hamming(32)).numpy()
    d = (32 - code.numpy() @ code.numpy().T) / 2
    truth = []
    for q in range(len(point)):
        others = np.arange(len(point)) != q
        truth.append(exact_with_ties((point == point[q]).numpy()[others], d[q][others]))
    assert np.abs(found - truth).max() < 0.1  # the middle of a bin stands for all its places
    assert found.mean() == pytest.approx(np.mean(truth), abs=0.02)


@pytest.mark.parametrize("seed", range(5))
def test_the_relaxed_one_nears_the_exact_one_from_below_as_bins_grow(seed):
    vectors, point = batch(points=8, each=4, seed=seed)
    truth = exact(vectors, point)
    errors = [relaxed(vectors, point, b=b).numpy() - truth for b in (5, 25, 125, 100_000)]
    typical = [np.abs(one).mean() for one in errors]
    assert typical == sorted(typical, reverse=True)
    assert errors[-1].max() < 1e-9
    assert errors[-1].min() > -1 / 123


def test_a_match_alone_in_its_two_bins_loses_less_than_1_of_123():
    """The most behind one distractor."""
    share = torch.linspace(0, 1, 1001, dtype=torch.float64)
    match = torch.stack([torch.zeros_like(share), share, 1 - share], dim=1)
    for behind in range(1, 6):
        distractors = torch.tensor([[behind, 0, 0]], dtype=torch.float64)
        lost = 1 / (1 + behind) - closed_form(match, match + distractors)
        assert -1e-9 < lost.min() and lost.max() < 1 / 123
        assert behind > 1 or lost.max() > 1 / 125


def test_a_ranking_without_fault_scores_1():
    vectors, point = batch(points=4, each=3, noise=0.1)
    assert (exact(vectors, point) == 1).all()
    torch.testing.assert_close(relaxed(vectors, point, b=25), torch.ones(12, dtype=torch.float64))


@both
def test_the_order_of_the_batch_decides_nothing(relaxation):
    vectors, point = batch(points=6)
    order = torch.randperm(18, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        relaxation(vectors[order], point[order]), relaxation(vectors, point)[order]
    )


@both
def test_the_gradient_is_that_of_the_value(relaxation):
    vectors, point = batch(points=3, each=2, dim=4)
    ignored = some_ignored(point)
    for skip in (None, ignored):
        assert torch.autograd.gradcheck(
            lambda v, skip=skip: relaxation(v, point, skip), vectors.requires_grad_()
        )


@both
@pytest.mark.parametrize("n", [2, 3, 33, 1024])
@pytest.mark.parametrize("autocast", [None, torch.bfloat16, torch.float16], ids=str)
def test_value_and_gradient_are_finite(relaxation, n, autocast):
    for name, pair in awkward_pairs(n).items():
        if n == 1024 and name not in ("all equal", "duplicates"):
            continue
        vectors = torch.cat(pair).requires_grad_()
        with torch.autocast("cpu", dtype=autocast or torch.bfloat16, enabled=bool(autocast)):
            found = relaxation(vectors, torch.arange(n).repeat(2))
            found.mean().backward()
        assert found.dtype == torch.float32 and len(found) == 2 * n, name
        assert ((found > 0) & (found <= 1 + 1e-6)).all(), name
        assert torch.isfinite(vectors.grad).all(), name


@both
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_vectors_are_measured_in_float32(relaxation, dtype):
    vectors, point = batch(dtype=torch.float32)
    found = relaxation(vectors.to(dtype).requires_grad_(), point)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, relaxation(vectors.to(dtype).float(), point))


@both
def test_autocast_changes_nothing(relaxation):
    gradients = []
    for enabled in (False, True):
        vectors, point = batch(dtype=torch.float32)
        vectors.requires_grad_()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
            relaxation(vectors, point).mean().backward()
        gradients.append(vectors.grad)
    assert torch.equal(*gradients)


@both
def test_where_all_patches_match_precision_is_1_and_nothing_is_to_be_gained(relaxation):
    vectors = batch(points=1, each=5)[0].requires_grad_()
    found = relaxation(vectors, torch.zeros(5, dtype=torch.long))
    found.sum().backward()
    torch.testing.assert_close(found, torch.ones(5, dtype=torch.float64))
    torch.testing.assert_close(vectors.grad, torch.zeros_like(vectors), atol=1e-12, rtol=0)


@both
def test_a_batch_without_matches_is_refused(relaxation):
    with pytest.raises(ValueError, match="no two of 4 patches show the same point"):
        relaxation(unit_rows(4, DIM), torch.arange(4))


@both
def test_what_is_no_number_gives_no_number(relaxation):
    vectors, point = batch()
    vectors[4, 0] = torch.nan
    vectors.requires_grad_()
    found = relaxation(vectors, point)
    assert found.isnan().all()  # and no index out of bounds, which on CUDA would end the process
    found.sum().backward()


@both
def test_gradient_descent_on_free_vectors_raises_average_precision(relaxation):
    _, point = batch(points=8, each=4)
    free = unit_rows(32, DIM, 3).requires_grad_()
    optimiser = torch.optim.SGD([free], lr=20.0)
    binary = relaxation is relaxed_binary
    scores = []
    for step in range(61):
        vectors = free if binary else torch.nn.functional.normalize(free)
        if step in (0, 60):
            scores.append(exact((vectors.sign() if binary else vectors).detach(), point).mean())
        optimiser.zero_grad()
        (1 - relaxation(vectors, point).mean()).backward()
        optimiser.step()
    assert scores[0] < 0.4 and scores[-1] > 0.95


def test_no_tensor_is_larger_than_it_must_be(monkeypatch):
    """Neither queries x all x bins nor queries x all is ever held, forward or backward."""
    monkeypatch.setattr(doap, "CELLS", 1 << 14)
    sizes = {}

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            for one in out if isinstance(out, tuple | list) else [out]:
                if isinstance(one, torch.Tensor):
                    sizes[str(func)] = max(sizes.get(str(func), 0), one.numel())
            return out

    n = 1024
    vectors = unit_rows(n, DIM).requires_grad_()
    with Watch():
        average_precision(vectors, torch.arange(n) // 4, euclidean(9)).sum().backward()
    assert "aten.gather.default" in sizes  # the backward was watched
    assert max(sizes.values()) <= max(1 << 14, 3 * 10 * n)


# --- methods


class Described(Describe):
    def __init__(self, vectors):
        self.vectors = vectors

    def __call__(self, patches):
        return self.vectors


def test_the_loss_is_what_average_precision_lacks():
    vectors, point = batch()
    random = torch.Generator()
    patches = torch.zeros(12, 1, 2, 2)
    given = Batch(Described(vectors), patches, point, random)
    loss = DOAP(patches=12, bins=10)(given)
    torch.testing.assert_close(loss, 1 - relaxed(vectors, point).mean())
    loss = BinaryDOAP(patches=12)(given)
    torch.testing.assert_close(loss, 1 - relaxed_binary(vectors, point).mean())
