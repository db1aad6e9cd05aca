"""The run-time checker of shapes and types in tests; an int is a float, as for mypy."""

from beartype import BeartypeConf, beartype

checked = beartype(conf=BeartypeConf(is_pep484_tower=True))
