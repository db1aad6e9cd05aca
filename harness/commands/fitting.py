"""`harness fit`: learns the parameters of a wrapper from training patches."""

from pathlib import Path
from typing import Annotated

import typer

from harness.commands.command import LIST
from harness.commands.options import BatchSize, Device, names
from harness.escape import say


def fit(
    model: Annotated[
        str,
        typer.Option(
            "--model",
            help="MODEL|WRAPPER: the wrapper's parameters are learned from the model's vectors.",
        ),
    ],
    data: Annotated[
        str,
        typer.Option(
            "--data",
            metavar=f"NAME{LIST}",
            help="Training data, as for train; labels are not used.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="The file of parameters, .safetensors.")],
    device: Device = "auto",
    batch_size: BatchSize = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="An option of the fit, as KEY=VALUE.")
    ] = None,
) -> None:
    """Learn the parameters of a wrapper; use them as --model "MODEL|WRAPPER(FILE)"."""
    import harness
    from harness.fitting import parted
    from harness.settings import options

    base, wrapper = parted(model)
    given = options(settings=setting, device=device, batch_size=batch_size, progress=True)
    file = harness.fit(base, wrapper, names("--data", data), out, **given)
    say(f"{file}: use it as --model {f'{base}|{wrapper}({file})'!r}")
