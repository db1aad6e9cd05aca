"""Pictures of the patches on which models fail, for the pages of these models in a report."""

import base64
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from harness import cache, evaluation, loading, progress
from harness.pictures import mistakes
from harness.pictures.canvas import GAP, SIDE
from harness.pictures.patches import dataset_of
from harness.report.contents import Json

SHOWN = 12  # mistakes of a kind
WIDTH = SHOWN * (SIDE + GAP)  # pixels of a picture
QUALITY = 80  # of the JPEG file, percent


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
        models: names of models of the report.
        protocol: its name, or a family of protocols.
        data: folder of the data set; None takes the sample.
        split: a split of the data set.
        device: as for `load_model`.

    Raises:
        HarnessError: if a model or the data can't be loaded, or the data do not say which patches
            match.
    """
    places = {model["name"]: place for place, model in enumerate(contents["models"])}
    dataset = dataset_of(protocol, data, split)
    found = []
    for model in loading.load_models(models, device=device):
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


def _source(drawn: np.ndarray) -> str:
    """A picture as a `data:` address."""
    made = cv2.imencode(
        ".jpg", np.ascontiguousarray(drawn[..., ::-1]), [cv2.IMWRITE_JPEG_QUALITY, QUALITY]
    )[1]
    return f"data:image/jpeg;base64,{base64.b64encode(made.tobytes()).decode()}"
