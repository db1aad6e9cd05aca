"""Runs the command line as `python -m harness`, which torchrun needs."""

from harness.commands.main import main

main()
