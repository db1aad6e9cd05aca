"""`harness extract`, `match` and `colmap`: from images to features, matches and databases."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from harness.commands.options import AsJson, Device, ModelName, names, one_model
from harness.escape import say

Images = Annotated[Path, typer.Argument(help="Folder of images; folders below it count, too.")]
Detector = Annotated[
    str | None,
    typer.Option(
        "--detector",
        help="sift (COLMAP's), harris-affine, or a file with keypoints: FILE.h5, FILE.db, or"
        " FILE.py:NAME. Default: sift.",
    ),
]
Keypoints = Annotated[
    int | None, typer.Option("--keypoints", help="Wanted number in an image; default: 8192.")
]
Masks = Annotated[
    Path | None,
    typer.Option("--masks", help="Folder of masks, NAME.png; keypoints on black are dropped."),
]
Ratio = Annotated[
    float | None,
    typer.Option(
        "--ratio", help="Largest ratio of nearest and second-nearest distance; default: 0.8."
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of random draws.")]
Cut = Annotated[
    list[str] | None,
    typer.Option("--set", help="How patches are cut: side, extent or smoothing, as KEY=VALUE."),
]


def extract(
    images: Images,
    model: ModelName,
    out: Annotated[Path, typer.Option("--out", help="The HDF5 file, for example features.h5.")],
    detector: Detector = None,
    keypoints: Keypoints = None,
    masks: Masks = None,
    precision: Annotated[
        str, typer.Option("--precision", help="Of vectors of numbers: float32 or float16.")
    ] = "float32",
    device: Device = "auto",
    cut: Cut = None,
    as_json: AsJson = False,
) -> None:
    """Detect and describe keypoints of images, and write them in the HDF5 layout of hloc."""
    found = _run(
        "extract",
        [images, out],
        cut,
        model=(model, device),
        detector=detector,
        keypoints=keypoints,
        masks=masks,
        precision=precision,
        silent=False,
    )
    if as_json:
        _print_json(found)
        return
    say(f"{found.images} images with {found.keypoints} keypoints in {found.file}")
    say(f"  {found.added} of them described now")
    _say_left(found.empty, found.skipped)


def match(
    first: Annotated[Path, typer.Argument(help="An image.")],
    second: Annotated[Path, typer.Argument(help="Another image.")],
    model: ModelName,
    detector: Detector = None,
    keypoints: Keypoints = None,
    ratio: Ratio = None,
    geometry: Annotated[
        str,
        typer.Option(
            "--geometry",
            help="fundamental, for a scene with depth, or homography, for a plane or a turned"
            " camera.",
        ),
    ] = "fundamental",
    threshold: Annotated[
        float | None, typer.Option("--threshold", help="Of inliers, pixels; default: 1.")
    ] = None,
    seed: Seed = 0,
    draw: Annotated[
        Path | None, typer.Option("--draw", help="File of a picture of the matches, PNG.")
    ] = None,
    device: Device = "auto",
    cut: Cut = None,
    as_json: AsJson = False,
) -> None:
    """Match two images, and count the matches that agree with one geometry."""
    found = _run(
        "match",
        [first, second],
        cut,
        model=(model, device),
        detector=detector,
        keypoints=keypoints,
        ratio=ratio,
        kind=geometry,
        threshold=threshold,
        seed=seed,
        draw=draw,
    )
    if as_json:
        print(json.dumps(found.as_json(), indent=1, sort_keys=True))
        return
    for file, frames in zip((first, second), found.frames, strict=True):
        say(f"{file}: {len(frames)} keypoints")
    say(f"{len(found.matches)} matches: mutual nearest neighbours, ratio {found.ratio:g}")
    estimated = found.geometry
    kind = {"fundamental": "fundamental matrix"}.get(estimated.kind, estimated.kind)
    say(f"{int(found.inlier.sum())} of them agree with one {kind} ({estimated.settings})")
    if estimated.matrix is None:
        say(f"no {kind} was found: there are too few matches that agree")
    else:
        for row in estimated.matrix.tolist():
            say("  " + " ".join(f"{number:15.8g}" for number in row))
    if draw is not None:
        say(draw)


def colmap(
    images: Images,
    model: ModelName,
    database: Annotated[
        Path, typer.Option("--database", help="COLMAP's database; made if it is missing.")
    ],
    detector: Annotated[
        str | None,
        typer.Option(
            "--detector",
            help="As for extract. Default: the keypoints of the database, or sift if it has none.",
        ),
    ] = None,
    keypoints: Keypoints = None,
    masks: Masks = None,
    pairs: Annotated[
        str,
        typer.Option(
            "--pairs", help="exhaustive, sequential, retrieval, or a file of two names a line."
        ),
    ] = "exhaustive",
    neighbours: Annotated[
        int | None,
        typer.Option(
            "--neighbours", help="Of an image, for sequential and retrieval; default: 20."
        ),
    ] = None,
    ratio: Ratio = None,
    camera_mode: Annotated[
        str,
        typer.Option(
            "--camera-mode",
            help="Images that share a camera: auto, single, per-folder or per-image.",
        ),
    ] = "auto",
    camera_model: Annotated[
        str, typer.Option("--camera-model", help="Of new cameras, as COLMAP names it.")
    ] = "SIMPLE_RADIAL",
    seed: Seed = 0,
    mapped: Annotated[
        Path | None, typer.Option("--map", help="A new folder: map the database into it.")
    ] = None,
    device: Device = "auto",
    cut: Cut = None,
    as_json: AsJson = False,
) -> None:
    """Fill a COLMAP database with verified matches of any descriptor, and map it."""
    found = _run(
        "colmap",
        [images, database],
        cut,
        model=(model, device),
        detector=detector,
        keypoints=keypoints,
        masks=masks,
        pairs=pairs,
        neighbours=neighbours,
        ratio=ratio,
        camera_mode=camera_mode,
        camera_model=camera_model,
        seed=seed,
        mapped=mapped,
        silent=False,
    )
    if as_json:
        _print_json(found)
        return
    counts = found.counts
    say(f"{found.images} images in {found.database}")
    say(f"{found.pairs} pairs of images, {found.added} of them matched now")
    say(
        f"  in the database: {counts['keypoints']} keypoints, {counts['matches']} matches,"
        f" {counts['inlier_matches']} verified in {counts['verified_pairs']} pairs"
    )
    _say_left(found.empty, found.skipped)
    for one in found.models:
        say(
            f"{one.folder}: {one.registered} images, {one.points} points,"
            f" {one.observations} observations, track length {one.track_length:.2f}, error"
            f" {one.reprojection_error_px:.3f} px"
        )
    if mapped is not None and not found.models:
        say("COLMAP maps no model from these matches")


def _run(
    name: str,
    files: Sequence[Path],
    cut: Sequence[str] | None,
    *,
    model: tuple[str, str],
    **given: object,
) -> Any:
    """Call a pipeline with the options that were given."""
    from harness import errors, registry
    from harness.images import describer
    from harness.settings import accepted, options

    pipeline = registry.load("pipelines", name)
    spec, device = model
    loaded = describer(
        one_model(f"{name} takes one model, not", names("--model", spec)), device=device
    )
    chosen = options(settings=cut, model=loaded, **given)
    with errors.naming(name):
        return pipeline(*files, **accepted(pipeline, chosen, name))


def _say_left(empty: Sequence[str], skipped: Mapping[str, str]) -> None:
    if empty:
        say(
            f"  {len(empty)} without a keypoint: {', '.join(empty[:5])}{', ...' * (len(empty) > 5)}"
        )
    if skipped:
        say(f"  {len(skipped)} skipped, as told above: {', '.join(list(skipped)[:5])}")


def _print_json(found: Any) -> None:
    from dataclasses import asdict

    print(json.dumps(asdict(found), indent=1, sort_keys=True, default=str))
