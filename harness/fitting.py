"""Learns the parameters of a wrapper from vectors of training patches, and writes their file."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import cache as caches
from harness import expression, extras, loading, parameters, wrapping
from harness.data import training_sets
from harness.errors import InputError
from harness.evaluation import BATCH, describe
from harness.expression import BAR
from harness.files import atomic
from harness.parameters import About, FittedModel, TrainingSet
from harness.progress import describing
from harness.settings import accepted
from harness.types import Dataset, Descriptor


def fit(
    model: str | Descriptor,
    wrapper: str,
    data: Sequence[str | Path | Dataset],
    file: str | Path,
    /,
    *,
    device: str = "auto",
    batch_size: int | None = None,
    progress: bool = False,
    **options: Any,
) -> Path:
    """Learn the parameters of a wrapper from all patches of training sets; returns the file.

    Labels are not used. The same vectors give the same bytes.

    Args:
        model: the model whose vectors are learned from, with or without wrappers.
        wrapper: the name of the wrapper that takes the file, as "pcapl".
        data: folders or names of training sets, as for `harness train`, or data sets.
        file: where to write; the name of the wrapped model has this name without its suffix.
        device: for a model that is loaded here, as for `load_model`.
        batch_size: patches described at a time; 512 where None.
        progress: show a progress bar on stderr.
        options: of the wrapper's `fit`.

    Raises:
        UnknownNameError: if there is no such model, wrapper, data or option.
        InputError: if the wrapper learns nothing, or does not take these vectors.
        HarnessError: if the data can't be read, or the file can't be written.
    """
    file = Path(file)
    found = wrapping.installed(wrapper)
    if found.fit is None:
        raise InputError(f"{wrapper} learns nothing from data: write MODEL{BAR}{wrapper}")
    chosen = accepted(found.fit, options, f"fit of {wrapper}")
    with extras.needed("a file of parameters"):
        import safetensors.numpy  # noqa: F401  # before any work
    atomic.must_be_writable(file.parent, f"{file} can't be written")
    base = loading.load_model(model, device=device)
    if not isinstance(base, Descriptor):
        raise InputError(f"{base.name} is a folder of vectors: it has none of training patches")
    wrapping.must_take(found, wrapper, base)
    parts = [one if isinstance(one, Dataset) else training_sets.open_set(str(one)) for one in data]
    dataset = training_sets.joined(parts)
    with describing(base.name, len(dataset), dataset.name, silent=not progress) as advance:
        described = describe(
            base,
            dataset,
            cache=caches.kept("vectors"),
            batch_size=batch_size or BATCH,
            progress=advance,
        )
        arrays = found.fit(described.vectors, **chosen)
    about = About(
        wrapper=wrapper,
        revision=found.revision,
        model=FittedModel.of(base),
        trained_on=tuple(sorted(dataset.sources)),
        data=tuple(TrainingSet(name=each.name, sha256=each.sha256) for each in parts),
        patches=len(dataset),
        options=chosen,
    )
    parameters.write(file, about, arrays)
    return file


def parted(text: str) -> tuple[str, str]:
    """The model and the last wrapper of "MODEL|WRAPPER", whose parameters are to be learned.

    Raises:
        InputError: if there is no wrapper, or the last has arguments.
    """
    base, calls = expression.parse(text)
    if not calls or calls[-1].arguments:
        raise InputError(
            f"{text!r} does not end with a wrapper without arguments: write MODEL{BAR}WRAPPER, and"
            " its options as --set KEY=VALUE"
        )
    *before, last = calls
    return BAR.join([base, *map(str, before)]), last.name
