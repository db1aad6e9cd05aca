"""Test whether DOAP's spatial transformer learns to undo turns, scales and shifts.

    python -m studies.transformer_alignment --data DIR --held-out DIR [--factors X,X] [--seeds N]
        [--steps N] [--turn DEGREES] [--whole]

The first table shows the maps of the shipped weights on 2,000 patches of `--held-out`. For the
second table, only the three convolutions that predict the maps are trained, from the zoo's initial
weights. The descriptor is fixed: the 8x8 pixels of the blurred patch. Each patch of `--data`, a set
of homographies (8 patches of each point), is turned, scaled and shifted by random known amounts
before the network gets it. The loss separates matching pairs from the others in a batch of 64
pairs. Adam's learning rate starts at 0.005 and falls linearly to 0; `factor` is the factor of the
prediction layer, 0.01 in the paper. Every tenth point is left out of the training and tested:
errors are between the two patches of a pair, after the maps of both. With `--whole`, L2-Net is
trained, too, by DOAP.
"""

import argparse
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from harness.data import training_sets
from harness.records import markdown_table
from zoo import card, shipped, trained
from zoo.backbones import resize, standardise, unit
from zoo.doap import average_precision, euclidean
from zoo.doap_networks import SpatialTransformer
from zoo.training.patches import stored

PATCHES = 8  # of each point
PAIRS = 64  # of a batch
TESTED = 400  # pairs
RATE = 0.005
SCALE = 0.4  # most octaves, in either direction
SHIFT = 0.1  # largest shift in halves of a patch's side, in either direction
SHARPNESS = 8  # factor of distances in the softmax of the loss
COLUMNS = (
    "factor", "seed", "turn, deviation", "scale", "shift", "correlation of turns",
    "error of turns", "error of scales", "nearest is the match, %",
)  # fmt: skip


def disturbed(
    patches: torch.Tensor, random: torch.Generator, turn: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The 42x42 centres of 64x64 patches under random similarities, and the similarities."""
    n = len(patches)
    angle = (torch.rand(n, generator=random) * 2 - 1) * turn * math.pi / 180
    scale = 2 ** ((torch.rand(n, generator=random) * 2 - 1) * SCALE)
    shift = (torch.rand(n, 2, generator=random) * 2 - 1) * SHIFT
    cos, sin = scale * angle.cos(), scale * angle.sin()
    maps = torch.stack([cos, -sin, shift[:, 0], sin, cos, shift[:, 1]], dim=1).view(-1, 2, 3)
    grid = functional.affine_grid(maps * 42 / 64, [n, 1, 42, 42], align_corners=False)
    seen = functional.grid_sample(patches, grid, padding_mode="border", align_corners=False)
    return seen, maps


def described(patches: torch.Tensor) -> torch.Tensor:
    """The fixed descriptor: unit vectors of blurred pixels."""
    blurred = functional.avg_pool2d(patches, 5, 1, 2, count_include_pad=False)
    return unit(resize(standardise(blurred), 8).flatten(1))


def predicted(network: SpatialTransformer, patches: torch.Tensor) -> torch.Tensor:
    """The maps (n, 2, 3) of a network for 42x42 patches."""
    changes: list[torch.Tensor] = []
    hook = network.predict.register_forward_hook(lambda _, __, change: changes.append(change))
    with torch.inference_mode():
        for some in patches.split(256):
            network.aligned(some)
    hook.remove()
    return torch.cat(changes).view(-1, 2, 3) + torch.eye(2, 3)


def degrees(maps: torch.Tensor) -> torch.Tensor:
    """The turn of each map, in degrees."""
    return torch.atan2(maps[:, 1, 0] - maps[:, 0, 1], maps[:, 0, 0] + maps[:, 1, 1]).rad2deg()


def octaves(maps: torch.Tensor) -> torch.Tensor:
    """The scale of each map, in octaves."""
    return torch.linalg.det(maps[:, :, :2]).abs().sqrt().log2()


def pairs(
    patches: np.ndarray, rows: np.ndarray, n: int, turn: float, rng: np.random.Generator,
    random: torch.Generator,
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """Two disturbed patches of each of n points: all first patches, then all second patches."""
    point = rng.choice(len(rows), n, replace=False)
    which = np.argsort(rng.random((n, PATCHES)), axis=1)[:, :2]
    chosen = np.concatenate([rows[point, which[:, 0]], rows[point, which[:, 1]]])
    return disturbed(torch.from_numpy(patches[chosen])[:, None].float(), random, turn)


def loss_of(vectors: torch.Tensor) -> torch.Tensor:
    """Cross entropy of each vector's match among all vectors of the other half."""
    a, b = vectors.chunk(2)
    distance = SHARPNESS * (2 - 2 * a @ b.T).clamp(min=1e-6).sqrt()
    both = (torch.logsumexp(-distance, 1).mean() + torch.logsumexp(-distance.T, 1).mean()) / 2
    return both + distance.diagonal().mean()


def learned(
    patches: np.ndarray, rows: np.ndarray, *, factor: float, steps: int, turn: float, seed: int
) -> SpatialTransformer:
    """A transformer of which only the layers that predict the maps are trained."""
    torch.manual_seed(seed)
    network = SpatialTransformer().train()
    rng, random = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    parts = ((network.localise, 1.0), (network.predict, factor))
    groups = [{"params": part.parameters(), "factor": of_part} for part, of_part in parts]
    optimiser = torch.optim.Adam(groups, lr=RATE)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = RATE * group["factor"] * (1 - step / steps)
        seen, _ = pairs(patches, rows, PAIRS, turn, rng, random)
        loss = loss_of(described(network.aligned(seen)))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return network.eval()


def learned_together(
    patches: np.ndarray, rows: np.ndarray, *, factor: float, steps: int, turn: float, seed: int
) -> SpatialTransformer:
    """A transformer that is trained as a whole, by DOAP: batches have 64 points of 4 patches."""
    torch.manual_seed(seed)
    network = SpatialTransformer(dropout=0.1).train()
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    rng, random = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    slow = [*network.predict.parameters()]
    named = network.named_parameters()
    rest = [parameter for name, parameter in named if not name.startswith("predict")]
    groups = [{"params": rest, "factor": 1.0}, {"params": slow, "factor": factor}]
    optimiser = torch.optim.Adam(groups, lr=RATE)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = RATE * group["factor"] * (1 - step / steps)
        point = rng.choice(len(rows), 64, replace=False)
        which = np.argsort(rng.random((64, PATCHES)), axis=1)[:, :4]
        chosen = rows[point[:, None], which].ravel()
        grey = torch.from_numpy(patches[chosen])[:, None].float()
        seen, _ = disturbed(grey, random, turn)
        numbers = torch.from_numpy(np.repeat(point, 4))
        loss = 1 - average_precision(network(seen), numbers, euclidean(25)).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return network.eval()


def vectors_of(network: SpatialTransformer, patches: torch.Tensor) -> torch.Tensor:
    """Vectors of a network, in small batches."""
    return torch.cat([network(some) for some in patches.split(64)])


def measured(
    network: SpatialTransformer,
    patches: np.ndarray,
    rows: np.ndarray,
    turn: float,
    whole_network: bool = False,
) -> list[str]:
    """The cells of a row of the second table.

    Args:
        network: the trained network.
        patches: patches of the data set, 64x64.
        rows: rows of the tested points.
        turn: most degrees, in either direction.
        whole_network: whether matches are found by the network's vectors, not by the fixed
            descriptor's.
    """
    rng, random = np.random.default_rng(5), torch.Generator().manual_seed(5)
    seen, given = pairs(patches, rows, TESTED, turn, rng, random)
    maps_found = predicted(network, seen)
    whole = given[:, :, :2] @ maps_found[:, :, :2]

    def error(maps: torch.Tensor, of: Callable[[torch.Tensor], torch.Tensor]) -> float:
        first, second = maps[:, :, :2].chunk(2)
        return float(of(torch.linalg.inv(first) @ second).square().mean().sqrt())

    def right(vectors: torch.Tensor) -> float:
        a, b = vectors.chunk(2)
        return float((torch.cdist(a, b).argmin(1) == torch.arange(len(a))).float().mean())

    with torch.inference_mode():
        vectors = vectors_of(network, seen) if whole_network else described(network.aligned(seen))
    correlation = np.corrcoef(degrees(maps_found).numpy(), -degrees(given).numpy())[0, 1]
    plain = "" if whole_network else f"{100 * right(described(resize(seen, 32))):.1f} → "
    return [
        f"{degrees(maps_found).std():.2f}",
        f"{octaves(maps_found).std():.3f}",
        f"{maps_found[:, 0, 2].std():.3f}",
        f"{correlation:.2f}",
        f"{error(given, degrees):.1f} → {error(whole, degrees):.1f}",
        f"{error(given, octaves):.3f} → {error(whole, octaves):.3f}",
        f"{plain}{100 * right(vectors):.1f}",
    ]


def spread(patches: np.ndarray) -> list[str]:
    """Lines of the first table."""
    rows = np.random.default_rng(0).permutation(len(patches))[:2000]
    facts = card.read(shipped.FOLDER / "doap-st.json")
    network = trained.load(shipped.FOLDER / "doap-st.safetensors", facts)
    assert isinstance(network, SpatialTransformer)
    maps = predicted(network, torch.from_numpy(patches[rows])[:, None].float())
    lengths = torch.linalg.svdvals(maps[:, :, :2])
    values = {
        "turn, degrees": degrees(maps),
        "scale, octaves": octaves(maps),
        "stretch, octaves": (lengths[:, 0] / lengths[:, 1]).log2(),
        "shear": (maps[:, 0, 1] + maps[:, 1, 0]) / 2,
        "shift across, of half a patch": maps[:, 0, 2],
        "shift down, of half a patch": maps[:, 1, 2],
    }
    cells = ((name, f"{v.mean():.3f}", f"{v.std():.3f}") for name, v in values.items())
    return [*markdown_table.lines(["doap-st", "mean", "deviation"], cells)]


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--held-out", required=True, type=Path)
    parser.add_argument("--factors", default="0.01,1")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--whole", action="store_true", help="train the descriptor, too, by DOAP")
    parser.add_argument("--turn", type=float, default=30.0, help="degrees, in either direction")
    given = parser.parse_args()
    print("\n".join(spread(stored(training_sets.open_set(str(given.held_out)), 42))), flush=True)
    dataset = training_sets.open_set(str(given.data))
    patches = stored(dataset, 64)
    _, number = np.unique(dataset.point, return_inverse=True)
    rows = np.argsort(number, kind="stable").reshape(-1, PATCHES)
    test, train = rows[::10], np.delete(rows, np.s_[::10], axis=0)
    train_by = learned_together if given.whole else learned

    def table_rows() -> Iterator[list[str]]:
        for factor in map(float, given.factors.split(",")):
            for seed in range(given.seeds):
                network = train_by(
                    patches, train, factor=factor, steps=given.steps, turn=given.turn, seed=seed
                )
                cells = measured(network, patches, test, given.turn, given.whole)
                yield [f"{factor:g}", f"{seed}", *cells]

    print()
    for line in markdown_table.lines(COLUMNS, table_rows(), "r"):
        print(line, flush=True)


if __name__ == "__main__":
    main()
