"""The training loop; a training that was killed can be resumed.

All random numbers of a step come from the seed and the step's number. So no state of a generator
has to be kept, and the next batch can be read during a step.
"""

import hashlib
import logging
import math
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import nn

from harness import Dataset
from harness.data.training_sets import photograph
from harness.errors import ComputeError, InputError
from harness.types import Patches
from zoo.backbones import Network
from zoo.training import average, held_out, state
from zoo.training.augment import augmented
from zoo.training.describe import Described
from zoo.training.groups import Groups
from zoo.training.method import Batch, Method, Sampler, Selection
from zoo.training.recipe import Pairs, Recipe, make
from zoo.training.sending import resident, sent
from zoo.training.together import add_gradients, any_of, number, together
from zoo.training.wrong_labels import with_wrong_labels

log = logging.getLogger(__name__)

LATE = 10  # steps whose losses are read together on a GPU, which is waited for at each reading
VALIDATIONS = 10  # validations in a training, at ends of epochs; one more comes before step 1


@dataclass(frozen=True)
class Seen:
    """Progress after a step, or before the first step."""

    step: int  # steps done
    loss: float | None = None
    lr: float | None = None
    fpr95: float | None = None  # of held-out points
    patches: int = 0  # rows of the batch
    seconds: float = 0.0  # of training so far, including the time before an interruption


@dataclass(frozen=True, eq=False)
class Run:
    """A training that is ready to start."""

    recipe: Recipe  # its steps_per_epoch is a number
    dataset: Dataset
    patches: Patches  # of the data set, at the size that the network takes
    network: Network
    method: Method
    sampler: Sampler
    split: held_out.Split
    device: torch.device
    precision: torch.dtype  # of convolutions
    kept: UInt8[torch.Tensor, "all side side"] | None = None  # the patches, if a GPU holds them all
    averaged: Network | None = None  # a copy whose weights are the average, if the recipe asks

    @property
    def result(self) -> Network:
        """The network that is validated and exported."""
        return self.network if self.averaged is None else self.averaged


def prepare(
    recipe: Recipe,
    dataset: Dataset,
    patches: Callable[[int], Patches],
    *,
    device: torch.device,
    precision: torch.dtype,
) -> Run:
    """Make the network, the method and its sampler; data that cannot be trained on are refused.

    Args:
        recipe: a checked recipe.
        dataset: the training data.
        patches: returns the patches of the data set at a size.
        device: device of the computation.
        precision: of convolutions: float32 or bfloat16.
    """
    torch.manual_seed(recipe.seed)
    network: Network = make("network", recipe.network)
    method: Method = make("method", recipe.method)
    must_fit(recipe, network, method)
    home = photograph(dataset)
    split = held_out.split(dataset.point, home, recipe.held_out, recipe.seed)
    split = replace(split, train=with_pairs(dataset.point, split.train))
    if not len(split.a) and number() == 0:
        log.info("held_out is 0: training uses all points, so no held-out error is shown")
    point = with_wrong_labels(dataset.point, split.train, recipe.wrong_labels, recipe.seed)
    groups = Groups.of(point, dataset.image, split.train)
    sampler = method.sampler(groups, recipe.seed)
    recipe = recipe.model_copy(update={"steps_per_epoch": steps_per_epoch(recipe, method, groups)})
    method.study(patches, groups)
    stored = patches(network.side)
    network.study(stored, split.train)
    averaged = deepcopy(network) if recipe.average else None
    for one in filter(None, (network, averaged)):
        one.to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    return Run(
        recipe,
        dataset,
        stored,
        network,
        method.to(device),
        sampler,
        split,
        device,
        precision,
        resident(stored, device),
        averaged,
    )


def steps_per_epoch(recipe: Recipe, method: Method, groups: Groups) -> int:
    """Number of steps of an epoch with this training set.

    Raises:
        InputError: if the method can't tell the number; says what to do.
    """
    asked = recipe.steps_per_epoch
    if isinstance(asked, int):
        return asked
    try:
        if isinstance(asked, Pairs):
            return math.ceil(asked.pairs / method.pairs_per_step())
        return max(1, method.steps_of_a_pass(groups))
    except NotImplementedError:
        form = "a number of pairs" if isinstance(asked, Pairs) else repr(asked)
        raise InputError(
            f"steps_per_epoch is {form}, but method {recipe.method.name!r} does not say how many"
            " steps that is: give a number with --set steps_per_epoch=..."
        ) from None


def with_pairs(
    point: Int[np.ndarray, " n"], rows: Int[np.ndarray, " rows"]
) -> Int[np.ndarray, " some"]:
    """The rows of points with two or more rows; the number of points that are left out is logged.

    A point with one patch gives no matching pair, so no method can train on it.
    """
    _, of_row, size = np.unique(point[rows], return_inverse=True, return_counts=True)
    alone = int(np.count_nonzero(size == 1))
    if alone and number() == 0:
        log.warning(
            "%d of %d points have one patch and give no matching pair: they are left out",
            alone,
            len(size),
        )
    return rows[size[of_row] > 1]


def must_fit(recipe: Recipe, network: Network, method: Method) -> None:
    """Refuse a method and a network that do not fit, as if only one is for binary codes.

    Raises:
        InputError: if they do not fit; names both, or what the network lacks.
    """
    gives, takes = network.codes, method.codes
    if gives != takes:
        kinds = {True: "activations for the bits of a code", False: "vectors to be compared whole"}
        raise InputError(
            f"method {recipe.method.name!r} trains {kinds[takes]}, but network"
            f" {recipe.network.name!r} as set gives {kinds[gives]}: give another of the two"
            f" (of DOAP's, --set network.binary={str(takes).lower()})"
        )
    method.must_fit(network)


def train(
    run: Run,
    out: Path,
    *,
    resume: bool = False,
    keep_every: float = 60.0,
    keep_weights: Callable[[Seen], None] = lambda seen: None,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Seen]:
    """Train to the end, or until `stop` returns true; keeps a state in `out` to resume from.

    Args:
        run: from `prepare`.
        out: folder of the state.
        resume: continue from the state in `out`.
        keep_every: seconds between two kept states; the last state is always kept.
        keep_weights: called after the epochs whose weights are kept, before the state is kept. If
            the training is killed in between, it writes the same weights again when it is resumed.
        stop: called after each step; if it returns true, the training stops.

    Raises:
        ComputeError: if a loss is not finite; the last kept state is not changed.
    """
    recipe, network, method = run.recipe, run.network, run.method
    optimiser = optimiser_of(run)
    of = state.Trained(network, method, optimiser, run.averaged)
    origin = state.origin(
        recipe,
        run.dataset.sha256,
        held_out=hashlib.sha256(run.split.train.astype("<i8").tobytes()).hexdigest(),
        processes=together(),
        precision=str(run.precision),
    )
    first, before = state.load(out, of, origin=origin) if resume else (0, 0.0)
    began = kept = time.monotonic()

    def keep(step: int) -> None:
        if number() == 0:
            seconds = before + time.monotonic() - began
            state.save(out, of, step=step, seconds=seconds, origin=origin)

    network.train()
    if first in (0, recipe.steps):  # no step is done yet, or all are
        yield Seen(first, fpr95=_validated(run), seconds=before)
    unread: list[tuple[Seen, torch.Tensor]] = []  # steps whose losses were not read yet
    late = 1 if run.device.type == "cpu" else LATE
    seconds = before
    for step, selected, patches in fed(run, first):
        loss, lr = update(run, optimiser, step, selected, patches)
        done = step + 1
        last = done == recipe.steps
        moment = is_moment(recipe, done)
        unread.append((Seen(done, lr=lr, patches=len(selected)), loss))
        if len(unread) < late and not (last or moment or recipe.keeps_weights(done)):
            continue
        now = before + time.monotonic() - began
        *told, seen = _read(unread, seconds, now)
        unread, seconds = [], now
        # The caller logs a step before its state is kept. If the training is killed in between,
        # the step runs again, but the log misses no step.
        yield from told
        if moment or recipe.keeps_weights(done):
            settle(run, done)
        seen = replace(seen, fpr95=_validated(run) if moment else None)
        yield seen
        if recipe.keeps_weights(done):
            keep_weights(seen)
        # A signal may reach several processes in different steps; they stop after the same step.
        stopped = not last and any_of(stop(), run.device)
        due = recipe.keeps_weights(done) or time.monotonic() - kept > keep_every
        if last or stopped or due:
            keep(done)
            kept = time.monotonic()
        if stopped:
            return


def _read(unread: list[tuple[Seen, torch.Tensor]], before: float, now: float) -> list[Seen]:
    """The steps with their losses; the time since the last reading is divided among them.

    Raises:
        ComputeError: if a loss is not finite.
    """
    losses = torch.stack([loss for _, loss in unread]).tolist()
    told = []
    for i, ((seen, _), loss) in enumerate(zip(unread, losses, strict=True), 1):
        if not math.isfinite(loss):
            raise ComputeError(
                f"step {seen.step - 1}: the loss is {loss}: train again with a smaller --set"
                " optimiser.lr=..., and another --out"
            )
        seconds = before + (now - before) * i / len(losses)
        told.append(replace(seen, loss=loss, seconds=seconds))
    return told


def is_moment(recipe: Recipe, step: int) -> bool:
    """Whether the network is validated after this number of steps."""
    every = recipe.epoch * max(1, recipe.epochs // VALIDATIONS)
    return step == recipe.steps or step % every == 0


def optimiser_of(run: Run) -> torch.optim.Optimizer:
    """The recipe's optimiser, over the trainable parameters of network and method."""
    settings = run.recipe.optimiser
    groups: dict[float, list[nn.Parameter]] = {}
    named = [*run.network.named_parameters(), *run.method.named_parameters(prefix="method")]
    for name, parameter in named:
        if parameter.requires_grad:
            factors = run.network.lr_factors.items()
            factor = next((value for part, value in factors if name.startswith(part)), 1.0)
            groups.setdefault(factor, []).append(parameter)
    parameters = [{"params": group, "factor": factor} for factor, group in groups.items()]
    fused = run.device.type != "cpu" or None  # on a GPU, all weights in one kernel
    if settings.name == "adam":
        return torch.optim.Adam(
            parameters,
            lr=settings.lr,
            betas=(settings.momentum, 0.999),
            weight_decay=settings.weight_decay,
            fused=fused,
        )
    return torch.optim.SGD(
        parameters,
        lr=settings.lr,
        momentum=settings.momentum,
        dampening=settings.dampening,
        weight_decay=settings.weight_decay,
        fused=fused,
    )


def fed(
    run: Run, first: int
) -> Iterator[tuple[int, Selection, UInt8[np.ndarray, "n side side"] | None]]:
    """Yields the steps from `first` on with their patches, read during the step before.

    Instead of patches that the device holds, None.
    """

    def read(step: int) -> tuple[int, Selection, Any]:
        selected = run.sampler(step)
        return step, selected, run.patches[selected.rows] if run.kept is None else None

    with ThreadPoolExecutor(1) as pool:
        ahead = pool.submit(read, first) if first < run.recipe.steps else None
        while ahead:
            ready = ahead.result()
            following = ready[0] + 1
            ahead = pool.submit(read, following) if following < run.recipe.steps else None
            yield ready


def update(
    run: Run,
    optimiser: torch.optim.Optimizer,
    step: int,
    selected: Selection,
    patches: UInt8[np.ndarray, "n side side"] | None,
) -> tuple[Float[torch.Tensor, ""], float]:
    """Update the weights once; returns the loss before the update, and the learning rate.

    A GPU has not computed the loss yet: to read it is to wait for the step.
    """
    recipe, device = run.recipe, run.device
    torch.manual_seed(_seed(recipe.seed, step, number() + 1))  # of dropout
    random = torch.Generator().manual_seed(_seed(recipe.seed, step, 0))
    here = torch.from_numpy(selected.point)
    row = sent(torch.from_numpy(selected.rows), device)
    x = shown(run, selected, row, patches, random)
    batch = Batch(
        Described(run.network, run.precision),
        x,
        sent(here, device),
        random,
        row,
        point_here=here,
        coarse=run.precision is not torch.float32,
    )
    loss = run.method(batch)
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    add_gradients(run.network)
    lr = recipe.optimiser.lr * recipe.factor_at(step)
    for group in optimiser.param_groups:
        group["lr"] = lr * group["factor"]
    optimiser.step()
    if run.averaged is not None and recipe.average is not None:
        share = average.kept_share(recipe.average.decay, step)
        average.follow(run.averaged, run.network, share)
    return loss.detach(), lr


def shown(
    run: Run,
    selected: Selection,
    row: Int[torch.Tensor, " n"],
    patches: UInt8[np.ndarray, "n side side"] | None,
    random: torch.Generator,
) -> Float[torch.Tensor, "n 1 side side"]:
    """The patches of a step as the network sees them: on the device, and augmented."""
    if run.kept is not None:
        stored = run.kept[row]
    else:
        assert patches is not None
        stored = sent(torch.from_numpy(patches), run.device)
    return augmented(
        stored,
        torch.from_numpy(selected.point),
        None if selected.angle is None else torch.from_numpy(selected.angle),
        dihedral=run.recipe.augmentation.dihedral,
        random=random,
    )


def settle(run: Run, done: int) -> None:
    """Make the averaged network ready to be used after a number of steps; see `average.settle`.

    Its statistics are those of the last batches of the training, so they depend on the seed and on
    the number of steps alone.
    """
    if run.averaged is None:
        return

    def batch(step: int) -> torch.Tensor:
        selected = run.sampler(step)
        patches = None if run.kept is not None else run.patches[selected.rows]
        random = torch.Generator().manual_seed(_seed(run.recipe.seed, step, 0))
        row = sent(torch.from_numpy(selected.rows), run.device)
        return shown(run, selected, row, patches, random)[: average.PATCHES]

    torch.manual_seed(_seed(run.recipe.seed, done, number() + 1))  # of dropout
    steps = range(max(0, done - average.BATCHES), done)
    describe = Described(run.averaged, run.precision)
    average.settle(run.averaged, run.network, describe, map(batch, steps))


def _seed(*numbers: int) -> int:
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _validated(run: Run) -> float | None:
    """FPR95 of the held-out points; None if there are none."""
    if not len(run.split.a):
        return None
    rows = np.concatenate([run.split.a, run.split.b])
    vectors = held_out.vectors(run.result, run.patches[rows], run.device)
    return held_out.fpr95(vectors, run.result.distance)
