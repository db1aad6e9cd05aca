"""The run-time checker of shapes and types; it accepts int for float, as mypy does."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
