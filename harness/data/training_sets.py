"""Opens training data, folders in any installed format, and joins them to one data set."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from harness import registry, settings
from harness.data import datasets
from harness.data.photographs import Photograph
from harness.errors import FileMissingError, InputError, UnknownNameError
from harness.types import Dataset, Rows


def open_sets(
    specs: Sequence[str],
    options: Mapping[str, str] | None = None,
    tests: Sequence[Path] = (),
) -> list[Dataset]:
    """The data sets in some folders.

    Args:
        specs: folders, or names from `harness data list`.
        options: of the readers, as `--set` gives them; each goes to the sets whose form has it.
        tests: folders of test images. Sets that show the same photographs are refused, and so are
            those that can't tell.

    Raises:
        UnknownNameError: if a spec is neither, or no set takes an option.
        FileMissingError: if a named set is not here, or a file of it is missing.
        InputError: if a format is not known, a file is damaged, or an option has a wrong value; or
            if a set shows a test image, or can't tell.
    """
    given = {name: settings.Typed(value) for name, value in (options or {}).items()}
    opened = [_opened(spec, given, tests) for spec in specs]
    known = {name for _, names in opened for name in names}
    for name in given:
        if name not in known:
            sets = ", ".join(dataset.name for dataset, _ in opened)
            raise UnknownNameError(
                f"data_options of {sets}: {registry.unknown('options', name, known)}"
            )
    return [dataset for dataset, _ in opened]


def open_set(spec: str) -> Dataset:
    """The data set in one folder, as `open_sets` opens it without options."""
    return open_sets([spec])[0]


def _opened(spec: str, given: settings.Options, tests: Sequence[Path]) -> tuple[Dataset, list[str]]:
    """A data set, and the names of the options that its form has."""
    folder = _folder(spec)
    for form in registry.names("training"):
        reader = registry.load("training", form)
        names = settings.named(reader)
        of_form = {name: value for name, value in given.items() if name in names}
        read = settings.accepted(reader, of_form, "data_options")
        compares = "tests" in settings.positional(reader)
        dataset: Dataset | None = reader(folder, *[tests] * compares, **read)
        if dataset is not None:
            if tests and not compares:
                raise InputError(
                    f"{folder} has the form {form}, which keeps nothing to compare photographs"
                    " with test images: train without it, or leave the comparison out"
                )
            return dataset, names
    forms = ", ".join(registry.names("training"))
    raise InputError(
        f"{folder} holds no training data in a known format ({forms}): give the folder of a"
        " set in one of these formats, or build one by `harness data build`"
    )


def joined(parts: Sequence[Dataset]) -> Dataset:
    """One data set of all blocks; points and images of different parts are always different.

    Two parts may show the same photograph, such as its homographies and its views. `photograph`
    sees that by the hashes of the files, so that it is held out of all parts or of none.

    Raises:
        InputError: if there is no part, or one is given twice, or its photographs don't fit its
            images.
    """
    if not parts:
        raise InputError("no training data: give --data NAME or --data DIR")
    if len({part.sha256 for part in parts}) < len(parts):
        names = ", ".join(part.name for part in parts)
        raise InputError(f"one training set is given twice: {names}")
    points, images = [], []
    photographs: list[str] = []
    next_point = next_image = 0
    for part in parts:
        points.append(part.point + next_point)
        images.append(part.image + next_image)
        count = int(part.image.max()) + 1
        if len(part.photographs) not in (0, count):
            raise InputError(
                f"{part.name} names {len(part.photographs)} photographs of {count} images: its"
                ' reader has to name one for each image, "" if unknown, or none at all'
            )
        photographs += part.photographs or [""] * count
        next_point += int(part.point.max()) + 1
        next_image += count
    return Dataset(
        name="+".join(part.name for part in parts),
        split="+".join(part.split for part in parts),
        blocks=tuple(block for part in parts for block in part.blocks),
        point=np.concatenate(points),
        image=np.concatenate(images),
        truth=" ".join(part.truth for part in parts),
        sources=frozenset().union(*(part.sources for part in parts)),
        complete=all(part.complete for part in parts),
        photographs=tuple(photographs),
        cut_from=_all_of([part.cut_from for part in parts]),
    )


def _all_of(parts: Sequence[frozenset[str] | None]) -> frozenset[str] | None:
    known = [part for part in parts if part is not None]
    return frozenset().union(*known) if len(known) == len(parts) else None


def cut_from(dataset: Dataset) -> tuple[Photograph, ...]:
    """The photographs that patches were cut from, by file; () if no list has one of them."""
    known = {one.sha256: one for row in datasets.known().values() for one in row.photographs}
    files = dataset.cut_from or ()
    if not all(file in known for file in files):
        return ()
    return tuple(sorted((known[file] for file in files), key=lambda one: one.file))


def photograph(dataset: Dataset) -> Rows:
    """The number of each row's photograph; the same file has the same number in all parts.

    An image of an unknown file counts as a photograph of its own. In a scene, the image of a row
    is the one in which its point was found; the patch may be cut from another image.
    """
    files = dataset.photographs or [""] * (int(dataset.image.max()) + 1)
    names = [file or f"image {i:09}" for i, file in enumerate(files)]
    return np.unique(names, return_inverse=True)[1][dataset.image]


def _folder(spec: str) -> Path:
    folder = Path(spec) if spec and Path(spec).is_dir() else datasets.path(spec)
    if folder is None:
        raise FileMissingError(f"{spec} is not here: harness data fetch {spec}")
    return folder
