"""Readers of the zoo: recipes, cards and the states of trainings."""

import shutil
from pathlib import Path
from typing import Any

from studies.foreign_files.reader import ROOT, Reader

# Each function imports the modules that it needs: a process with one reader needs only a few.


def _make_recipes(folder: Path) -> None:
    from zoo.training import recipe

    for name in ("hardnet", "doap-st", "l2net+"):
        shutil.copy(ROOT / f"zoo/recipes/{name}.toml", folder)
    kept = recipe.read(str(folder / "hardnet.toml"), data=["x"])
    (folder / "recipe.json").write_text(kept.model_dump_json())


def _read_recipes(folder: Path) -> None:
    from zoo.training import recipe

    recipe.read_kept(folder / "recipe.json")
    for name in ("hardnet", "doap-st", "l2net+"):
        recipe.read(str(folder / f"{name}.toml"))


def _make_cards(folder: Path) -> None:
    for ending in ("json", "safetensors"):
        shutil.copy(ROOT / f"zoo/weights/hardnet.{ending}", folder)


def _read_cards(folder: Path) -> None:
    from zoo import card, trained

    trained.load(folder / "hardnet.safetensors", card.read(folder / "hardnet.json"))


def _make_state(folder: Path) -> None:
    from zoo.training import state

    state.save(folder, _training(), step=2, seconds=1.0, origin="x")
    lines = [f'{{"step": {k}, "loss": 0.5, "lr": 0.1, "seconds": 0.1}}\n' for k in range(3)]
    (folder / state.LOG).write_text("".join(lines))


def _read_state(folder: Path) -> None:
    from zoo.training import log, state

    log.read_log(folder)
    log.open_log(folder, upto=2)
    state.load(folder, _training(), origin="x")


def _training() -> Any:
    import torch

    from zoo.training.state import Trained

    network = torch.nn.Linear(4, 4)
    return Trained(network, torch.nn.PReLU(), torch.optim.Adam(network.parameters()))


READERS = (
    Reader("recipes", _make_recipes, _read_recipes),
    Reader("cards", _make_cards, _read_cards),
    Reader("training states", _make_state, _read_state),
)
