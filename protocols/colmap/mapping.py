"""Runs COLMAP's incremental mapping: without its log, and the same every time for the same seed."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pycolmap


@contextmanager
def quiet(*, failures: bool = True) -> Iterator[None]:
    """Suppress COLMAP's log of every image and every adjustment; only its errors are shown.

    Args:
        failures: False hides errors too, where failures are usual and the result shows them.
    """
    before = pycolmap.logging.minloglevel
    least = pycolmap.logging.ERROR if failures else pycolmap.logging.FATAL
    pycolmap.logging.minloglevel = int(least)
    try:
        yield
    finally:
        pycolmap.logging.minloglevel = before


def largest_model(
    database: Path, images: Path, *, seed: int, threads: int
) -> pycolmap.Reconstruction | None:
    """The model with the most images of `models`; None if there is no model."""
    return next(iter(models(database, images, seed=seed, threads=threads)), None)


def models(
    database: Path, images: Path, *, seed: int, threads: int, colours: bool = False
) -> list[pycolmap.Reconstruction]:
    """The models that incremental mapping finds, those with the most images first.

    One thread gives the same bits every time; several threads add numbers in varying order.

    Args:
        database: has verified matches.
        images: the folder that the names in the database are relative to.
        seed: of random draws.
        threads: most threads at a time.
        colours: read the images, and give each point its colour.
    """
    options = pycolmap.IncrementalPipelineOptions(
        num_threads=threads, random_seed=seed, extract_colors=colours
    )
    pycolmap.set_random_seed(seed)  # of this thread
    with tempfile.TemporaryDirectory(dir=database.parent) as tried:
        found = pycolmap.incremental_mapping(database, images, tried, options)
    return sorted(found.values(), key=lambda model: -model.num_reg_images())
