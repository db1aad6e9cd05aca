"""The log of a training: one line of JSON for each step, and optionally TensorBoard files."""

import json
import logging
from collections.abc import Callable
from pathlib import Path

from pydantic import TypeAdapter

from harness.files import atomic
from zoo.training.loop import Seen
from zoo.training.state import LOG

log = logging.getLogger(__name__)

_FORM = TypeAdapter(Seen)


def open_log(out: Path, *, upto: int, tensorboard: bool = False) -> Callable[[Seen], None]:
    """A function that writes log entries; old entries after step `upto` are dropped.

    The steps after `upto` run again, so they get new entries.
    """
    file = out / LOG
    known = file.read_text("utf-8", "replace").splitlines() if file.is_file() else []
    steps = [(line, seen.step) for line in known if (seen := _seen(line))]
    kept = [line for line, step in steps if step <= upto]
    lost = upto + 1 - len({step for _, step in steps if step <= upto})
    if lost > 0:
        log.warning(
            "%s lacks %d earlier steps, so the card's curve will lack them, too", file, lost
        )
    atomic.write_text(file, "".join(f"{line}\n" for line in kept))
    board = _board(out, upto) if tensorboard else None

    def write(seen: Seen) -> None:
        entry = {name: value for name, value in vars(seen).items() if value is not None}
        with atomic.naming(file), file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(entry) + "\n")
        for name in ("loss", "lr", "fpr95"):
            if board and name in entry:
                board.add_scalar(name, entry[name], seen.step)

    return write


def read_log(out: Path) -> list[Seen]:
    """Log entries in the order of steps; damaged lines are left out."""
    file = out / LOG
    lines = file.read_text("utf-8", "replace").splitlines() if file.is_file() else []
    return [seen for line in lines if (seen := _seen(line))]


def _seen(line: str) -> Seen | None:
    """The entry of a line; None if the line is damaged, for example cut off by a power failure."""
    try:
        seen = _FORM.validate_json(line, strict=True)
        is_known = set(json.loads(line)) <= vars(seen).keys()
    except ValueError:  # pydantic's error is a ValueError, also for too deeply nested JSON
        return None
    return seen if is_known and seen.step >= 0 else None


def _board(out: Path, upto: int):  # type: ignore[no-untyped-def]  # tensorboard is an extra
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(out / "tensorboard"), purge_step=upto + 1)
