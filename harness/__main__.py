"""Runs the command line as `python -m harness`, so that torchrun can start it."""

from harness.commands.main import main

main()
