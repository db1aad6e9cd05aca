"""harness: evaluate descriptors, make leaderboards, list what is installed."""

import errno
import logging
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import typer

from harness import extras, stopping
from harness.commands import (
    auditing,
    comparing,
    data,
    evaluating,
    fitting,
    images,
    installed,
    looking,
    onnx_export,
    options,
    reporting,
    reproducing,
    training,
    weights,
)
from harness.commands.command import Command
from harness.errors import HarnessError, OutOfMemory
from harness.escape import visible

# Slow imports (NumPy, torch, OpenCV, pydantic) are made inside the command that needs them.


def _commands(about: str | None, epilog: str | None = None) -> typer.Typer:
    return typer.Typer(
        help=about,
        epilog=epilog,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # rich would double the time that `harness --help` takes
    )


def _add(to: typer.Typer, function: Callable[..., None], name: str | None = None) -> None:
    to.command(name, cls=Command)(function)


app = _commands(__doc__, "With HARNESS_DEBUG=1 an error is shown with its traceback.")
_add(app, evaluating.evaluate, "eval")
_add(app, looking.describe)
_add(app, onnx_export.export)
_add(app, looking.show)
_add(app, installed.models)
_add(app, installed.protocols)
_add(app, evaluating.leaderboard)
_add(app, reporting.report)
_add(app, comparing.compare)
_add(app, auditing.audit)
_add(app, looking.check)
_add(app, training.train)
_add(app, training.recipes)
_add(app, reproducing.reproduce)
_add(app, fitting.fit)
_add(app, images.extract)
_add(app, images.match)
_add(app, images.colmap)
_add(app, installed.doctor, "doctor")

data_app = _commands("Make, fetch and check data sets.")
_add(data_app, data.build)
_add(data_app, data.listing, "list")
_add(data_app, data.fetch)
_add(data_app, data.verify)
_add(data_app, data.path)
app.add_typer(data_app, name="data")

weights_app = _commands("Published weights.")
_add(weights_app, weights.add)
_add(weights_app, weights.fetch)
_add(weights_app, weights.listing, "list")
app.add_typer(weights_app, name="weights")


# The user can correct a full disk or a missing permission, whichever code reports it.
OF_THE_USER = (HarnessError, OSError, MemoryError)
INTERRUPTED = 130  # typer's exit status after a KeyboardInterrupt


class _OneLine(logging.Formatter):
    """Log messages in which control characters are escaped, so that no name moves the cursor."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return visible(super().formatMessage(record))


def main() -> None:
    """Run the command line; an error of the user is one line on stderr, with exit status 2.

    Any other error is a fault of the harness: its traceback is shown, and where to report it.
    """
    shown = logging.StreamHandler(sys.stderr)
    shown.setFormatter(_OneLine("harness: %(message)s"))
    logging.basicConfig(handlers=[shown], level=logging.INFO)
    with stopping.as_interrupts():
        try:
            options.must_hold_lists_together(sys.argv[1:])
            app()
        except Exception as error:
            if stopping.asked():  # some libraries turn an interrupt into an error of their own
                _end_stopped()
            is_of_the_user = isinstance(error, OF_THE_USER)
            if os.environ.get("HARNESS_DEBUG") and is_of_the_user:
                raise
            if not is_of_the_user:
                _end_faulty(error)
            print(f"harness: {visible(_message(error) + _hint(error))}", file=sys.stderr)
            sys.exit(2)
        except KeyboardInterrupt:  # typer turns only those in a command into an exit status
            _end_stopped()
        except SystemExit as stop:
            if stop.code == INTERRUPTED:
                _end_stopped()
            raise


def _end_stopped() -> NoReturn:
    told = "stopped; run the command again to continue (a training: with --resume)"
    print(f"harness: {told}", file=sys.stderr)
    # If an interrupt comes during an exec(), which dataclasses use, Python remembers it; under
    # `python -m` the process would then end by SIGINT and ignore the exit status. Another exec()
    # resets that.
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
    """Where to report faults: the address in the installed package's metadata, if there is one."""
    from importlib.metadata import metadata

    urls = metadata("descriptor-harness").get_all("Project-URL") or []
    for name, _, url in (line.partition(", ") for line in urls):
        if name.casefold() == "issues":
            return f"at {url}"
    return "in the project's issue tracker"


def _hint(error: BaseException) -> str:
    """How to install the missing extra that caused an error; "" if the message says it already."""
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
    """The text of a system error: its file, and a remedy if the file is in the cache."""
    from harness.files import home

    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    if error.filename is None:
        where = f"; files are written to {home.cache()} and {tempfile.gettempdir()}, too"
        return f"{error.strerror}{where if full else ''}"
    in_cache = Path(error.filename).is_relative_to(home.cache())
    return f"{error.filename}: {error.strerror}{f'; {home.REMEDY}' if in_cache else ''}"
