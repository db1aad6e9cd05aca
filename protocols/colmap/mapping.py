"""COLMAP's mapping: quiet, and with one seed the same every time."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pycolmap


@contextmanager
def quiet(*, failures: bool = True) -> Iterator[None]:
    """COLMAP reports every image and every adjustment on stderr; here only its errors.

    Args:
        failures: False where they are nothing unusual, and are seen in what comes back.
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
    """Of the models that incremental mapping finds, the one of most images; None if it finds none.

    One thread gives the same bits every time; of several, sums come in another order.

    Args:
        database: with verified matches.
        images: the folder that its names are relative to.
        seed: of random draws.
        threads: most at a time.
    """
    options = pycolmap.IncrementalPipelineOptions(
        num_threads=threads, random_seed=seed, extract_colors=False
    )
    pycolmap.set_random_seed(seed)  # of this thread
    with tempfile.TemporaryDirectory(dir=database.parent) as tried:
        found = pycolmap.incremental_mapping(database, images, tried, options)
    return max(found.values(), key=lambda model: model.num_reg_images(), default=None)
