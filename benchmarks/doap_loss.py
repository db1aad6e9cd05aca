"""Memory and time of DOAP's loss, forward and backward, beside the tensor of all pairs and bins.

    python -m benchmarks.doap_loss [--patches 4096] [--bins 25 | --bits 256] [--plain] [--device D]

Peak memory is the process's on a CPU, torch's own included and told beside it; on CUDA it is what
torch allocates. `--plain` computes the same loss through the tensor of queries x patches x bins.
"""

import argparse
import resource
import time
from collections.abc import Callable, Iterator

import torch

from benchmarks.comparison import Comparison
from zoo.doap import Bins, average_precision, closed_form, euclidean, hamming


def plain(vectors: torch.Tensor, point: torch.Tensor, bins: Bins) -> torch.Tensor:
    """Average precision of each query, through the tensor of queries x patches x bins."""
    place = bins.place(vectors @ vectors.T).clamp(0, bins.last)
    middle = torch.arange(bins.last + 1, device=place.device)
    share = (1 - (place[..., None] - middle).abs()).relu()
    other = ~torch.eye(len(point), dtype=torch.bool, device=place.device)
    match = (point[:, None] == point) & other
    return closed_form((share * match[..., None]).sum(1), (share * other[..., None]).sum(1))


def mebibytes(device: str) -> float:
    """Peak memory so far."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


Loss = Callable[[torch.Tensor, torch.Tensor, Bins], torch.Tensor]


def timed(loss: Loss, n: int, dim: int, bins: Bins, device: str) -> tuple[float, float, float]:
    """1 - mean AP of n random patches, and seconds forward and backward."""
    x = torch.randn(n, dim, generator=torch.Generator().manual_seed(n))
    x = (x.tanh() if bins.last == dim else x / x.norm(dim=1, keepdim=True)).to(device)
    x.requires_grad_()
    point = torch.arange(n, device=device) // 4
    began = time.perf_counter()
    value = 1 - loss(x, point, bins).mean()
    found = float(value.detach())  # waits for the device
    forward = time.perf_counter()
    value.backward()
    assert x.grad is not None and float(x.grad.norm()) > 0
    return found, forward - began, time.perf_counter() - forward


def comparisons(quick: bool) -> Iterator[Comparison]:
    """Yields the rows of `python -m benchmarks`."""
    n, bins = 128 if quick else 1024, euclidean(25)
    timed(average_precision, 64, 128, bins, "cpu")
    found, *ours = timed(average_precision, n, 128, bins, "cpu")
    wanted, *theirs = timed(plain, n, 128, bins, "cpu")
    results = f"losses differ by {abs(found - wanted):.0e}"
    task = f"DOAP's loss of {n:,} patches, both ways"
    yield Comparison(task, sum(ours), "tensor of all pairs and bins", sum(theirs), results)


def main() -> None:
    """Time one step, print time and memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--patches", type=int, default=4096)
    parser.add_argument("--bins", type=int, default=25)
    parser.add_argument("--bits", type=int)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--plain", action="store_true")
    given = parser.parse_args()
    dim = given.bits or 128
    bins = hamming(dim) if given.bits else euclidean(given.bins)
    loss = plain if given.plain else average_precision
    timed(loss, 64, dim, bins, given.device)
    before = mebibytes(given.device)
    found, forward, backward = timed(loss, given.patches, dim, bins, given.device)
    peak = mebibytes(given.device)
    print(f"M = {given.patches}, b = {bins.last}, {given.device}: 1 - mean AP = {found:.6f}")
    print(f"forward {forward:.3f} s, backward {backward:.3f} s")
    print(f"peak {peak:.0f} MiB, of which {before:.0f} MiB were there before")


if __name__ == "__main__":
    main()
