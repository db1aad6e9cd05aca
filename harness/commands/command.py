"""The class of all commands: an option that takes one value is given once."""

from collections import Counter
from typing import Any

from typer.core import TyperCommand

from harness.errors import InputError

LIST = ",..."  # end of the metavar of an option that takes a list, as in "MODEL,..."


class Command(TyperCommand):
    """A command that refuses a second value of an option; typer would drop the first value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments.

        Raises:
            InputError: if an option that takes one value is given twice; names the option.
        """
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        times_of: Counter[Any] = Counter(given)
        for option, times in times_of.items():
            if times > 1 and not (option.multiple or option.is_flag):
                name = max(option.opts, key=len)
                remedy = "it takes one value"
                if (option.metavar or "").endswith(LIST):
                    remedy = f"several are one list with commas, as in {name} A,B"
                raise InputError(f"{name} is given twice: {remedy}")
        return super().parse_args(ctx, args)
