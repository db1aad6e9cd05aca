"""Pictures of the patches on which models fail, for the pages of these models in a report."""

import base64
import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import cv2
import numpy as np

from harness import cache, evaluation, loading, progress, registry
from harness.errors import HarnessError, UnknownNameError
from harness.pictures import mistakes
from harness.pictures.canvas import GAP, SIDE
from harness.pictures.patches import dataset_of
from harness.report.contents import Json
from harness.report.models import inside
from harness.vector_folder import Model

SHOWN = 5  # mistakes of a kind; as many as fit on a phone
WIDTH = SHOWN * (SIDE + GAP)  # pixels of a picture
QUALITY = 65  # of the WebP file, percent: 60 models take about 0.6 MB of the 2 MB of a page

log = logging.getLogger(__name__)


def pictures(
    contents: Json,
    models: Sequence[str],
    protocol: str,
    data: Path | None,
    *,
    split: str | None = None,
    device: str = "auto",
) -> list[Json]:
    """The false and missed matches of each model, as images that a page can hold.

    Args:
        contents: of the report; its models are named by their places.
        models: names of models of the report; where empty, those with a record of the protocol. Of
            these, a model that can't be loaded here is left out and told.
        protocol: its name, or a family of protocols.
        data: folder of the data set; None takes the sample.
        split: a split of the data set.
        device: as for `load_model`.

    Raises:
        HarnessError: if a named model or the data can't be loaded, or the data do not say which
            patches match.
    """
    places = {model["name"]: place for place, model in enumerate(contents["models"])}
    dataset = dataset_of(protocol, data, split)
    loaded = (
        loading.load_models(models, device=device)
        if models
        else _loadable(measured(contents, protocol), device)
    )
    found = []
    for model in loaded:
        with progress.describing(model.name, len(dataset), protocol) as advance:
            described = evaluation.describe(
                model, dataset, cache=cache.kept("vectors"), progress=advance
            )
        title, strips = mistakes.strips(model.name, described, shown=SHOWN, width=WIDTH)
        for strip in strips:
            source = _source(strip.drawn) if len(strip.drawn) else None
            told = f"{title}. {strip.told}."
            found.append({"model": places[model.name], "title": told, "source": source})
    return found


def measured(contents: Json, protocol: str) -> list[str]:
    """The names of the models that the report's boards of a protocol's family show."""
    family = loading.protocol_names(protocol)[0].partition("/")[0]
    boards = [board for board in contents["boards"] if board["family"] == family]
    places = {row["model"] for board in boards for row in board["rows"]}
    return [contents["models"][place]["name"] for place in sorted(places)]


def _loadable(models: Iterable[str], device: str) -> Iterator[Model]:
    """Those of some models of records that can be loaded here; the others are told."""
    installed = registry.names("descriptors")
    for name in models:
        try:
            # A record may come from anybody: its name must not lead to a file that would be run.
            if inside(name) not in installed:
                raise UnknownNameError("no model of this name is installed")
            yield loading.load_model(name, device=device)
        except HarnessError as error:
            log.warning("no mistakes of %s are shown: %s", name, error)


def _source(drawn: np.ndarray) -> str:
    """A picture as a `data:` address."""
    made = cv2.imencode(
        ".webp", np.ascontiguousarray(drawn[..., ::-1]), [cv2.IMWRITE_WEBP_QUALITY, QUALITY]
    )[1]
    return f"data:image/webp;base64,{base64.b64encode(made.tobytes()).decode()}"
