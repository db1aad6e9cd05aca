"""harness: evaluate descriptors, make leaderboards, look at what is installed."""

import errno
import logging
import os
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

import typer

from harness import extras, stopping
from harness.commands import (
    comparing,
    data,
    evaluating,
    installed,
    looking,
    onnx_export,
    options,
    training,
    weights,
)
from harness.errors import HarnessError, OutOfMemory
from harness.escape import visible

# What is heavy (NumPy, torch, OpenCV, pydantic) is imported by the command that needs it.


def _commands(about: str | None, epilog: str | None = None) -> typer.Typer:
    return typer.Typer(
        help=about,
        epilog=epilog,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # rich would double the time that `harness --help` takes
    )


app = _commands(__doc__, "With HARNESS_DEBUG=1 an error is shown with its traceback.")
app.command("eval")(evaluating.evaluate)
app.command()(looking.describe)
app.command()(onnx_export.export)
app.command()(looking.show)
app.command()(installed.models)
app.command()(installed.protocols)
app.command()(evaluating.leaderboard)
app.command()(comparing.compare)
app.command()(looking.check)
app.command()(training.train)
app.command()(training.recipes)
app.command("doctor")(installed.doctor)

data_app = _commands("Make, fetch and check data sets.")
data_app.command()(data.build)
data_app.command("list")(data.listing)
data_app.command()(data.fetch)
data_app.command()(data.verify)
data_app.command()(data.path)
app.add_typer(data_app, name="data")

weights_app = _commands("Published weights.")
weights_app.command()(weights.add)
weights_app.command()(weights.fetch)
weights_app.command("list")(weights.listing)
app.add_typer(weights_app, name="weights")


# A full disk or a file without permission is the user's to correct, whoever meets it.
OF_THE_USER = (HarnessError, OSError, MemoryError)
INTERRUPTED = 130  # what typer exits with on KeyboardInterrupt


class _OneLine(logging.Formatter):
    """Log messages with names in them: nothing that a name holds moves the cursor."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return visible(super().formatMessage(record))


def main() -> None:
    """Run the command line; an error of the user is one line on stderr, and the exit status is 2.

    Any other error is a fault of the harness: it shows its traceback, and where to report it.
    """
    shown = logging.StreamHandler(sys.stderr)
    shown.setFormatter(_OneLine("harness: %(message)s"))
    logging.basicConfig(handlers=[shown], level=logging.INFO)
    with stopping.as_interrupts():
        try:
            options.must_hold_lists_together(sys.argv[1:])
            app()
        except Exception as error:
            if stopping.asked():  # a library makes its own error of an interrupt
                _end_stopped()
            is_of_the_user = isinstance(error, OF_THE_USER)
            if os.environ.get("HARNESS_DEBUG") and is_of_the_user:
                raise
            if not is_of_the_user:
                _end_faulty(error)
            print(f"harness: {visible(_message(error) + _hint(error))}", file=sys.stderr)
            sys.exit(2)
        except SystemExit as stop:
            if stop.code == INTERRUPTED:
                _end_stopped()
            raise


def _end_stopped() -> NoReturn:
    told = "stopped; run it again: it goes on from what is kept, a training by --resume"
    print(f"harness: {told}", file=sys.stderr)
    # Python remembers an interrupt of a text in exec(), by which dataclasses are made, and under
    # `python -m` it would then end by SIGINT, whatever the status is. The next text resets that.
    exec("")
    sys.exit(stopping.status())


def _end_faulty(error: Exception) -> NoReturn:
    """Show the traceback of an error that no user can correct, and ask for a report."""
    sys.excepthook(type(error), error, error.__traceback__)
    print(
        "harness: this is a fault of the harness, not yours: please report it, with the lines"
        f" above and the output of `harness doctor`, {_tracker()}",
        file=sys.stderr,
    )
    sys.exit(1)


def _tracker() -> str:
    """Where faults are reported: the address that the installed package names, if it names one."""
    from importlib.metadata import metadata

    urls = metadata("descriptor-harness").get_all("Project-URL") or []
    for name, _, url in (line.partition(", ") for line in urls):
        if name.casefold() == "issues":
            return f"at {url}"
    return "in the project's issue tracker"


def _hint(error: BaseException) -> str:
    """How to install the extra whose absence caused an error, unless its message says so."""
    cause = error.__cause__
    package = extras.missing(cause) if cause else None
    if package is None or extras.remedy(package) in str(error):
        return ""
    return f"; {extras.remedy(package)}"


def _message(error: BaseException) -> str:
    if isinstance(error, MemoryError) and not isinstance(error, OutOfMemory):
        return str(OutOfMemory("this command", error))
    if isinstance(error, KeyError) and error.args:
        return str(error.args[0])  # str() would quote it
    if isinstance(error, OSError) and error.strerror:
        return _told(error)
    return str(error) or type(error).__name__


def _told(error: OSError) -> str:
    """An error of the system, with its file, and with the variable that moves it elsewhere."""
    from harness.files import home

    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    if error.filename is None:
        where = f"; files are written to {home.cache()} and {tempfile.gettempdir()}, too"
        return f"{error.strerror}{where if full else ''}"
    in_cache = Path(error.filename).is_relative_to(home.cache())
    return f"{error.filename}: {error.strerror}{f'; {home.REMEDY}' if in_cache else ''}"
