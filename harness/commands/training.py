"""`harness train` and `recipes`: train networks, list recipes."""

from pathlib import Path
from typing import Annotated

import typer

from harness import registry
from harness.commands.command import LIST
from harness.commands.options import Device, names
from harness.escape import say


def train(
    recipe: Annotated[
        str, typer.Option("--recipe", help="A name from `harness recipes`, or a TOML file.")
    ],
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            metavar=f"NAME{LIST}",
            help="A folder, or a name from `harness data list`; several separated by commas,"
            " without spaces.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder of the training; default: trained/RECIPE."),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of the recipe, as KEY=VALUE or TABLE.KEY=VALUE."),
    ] = None,
    tests: Annotated[
        str | None,
        typer.Option(
            "--tests",
            metavar=f"DIR{LIST}",
            help="Folders of test images: data that show the same photographs are refused.",
        ),
    ] = None,
    device: Device = "auto",
    precision: Annotated[
        str, typer.Option(help="Precision of convolutions: auto, float32 or bfloat16.")
    ] = "auto",
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the training in the folder.")
    ] = False,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Write TensorBoard's files as well.")
    ] = False,
) -> None:
    """Train a network by a recipe; with torchrun, on several devices together."""
    trainer = registry.load("trainers", "recipes")
    options = {"device": device, "precision": precision}
    flags = {"resume": resume, "tensorboard": tensorboard}
    parts = names("--data", data) if data is not None else []
    apart = [*map(Path, names("--tests", tests))] if tests is not None else []
    say(trainer(recipe, out, data=parts, settings=setting or (), tests=apart, **options, **flags))


def recipes() -> None:
    """List the recipes that can be trained."""
    for name, about in registry.load("trainers", "listing")().items():
        say(f"{name:24} {about}")
