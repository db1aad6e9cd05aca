"""Names of the data that the protocols test, and how else papers and code write them."""

import json
from importlib.resources import files

from harness.data_names import Family

_SEQUENCES = json.loads((files("protocols.hpatches") / "official.json").read_text())["lengths"]

# fmt: off
FAMILIES = (
    Family(
        "hpatches",
        aliases=(
            "HPatches dataset",
            "HPatches benchmark",
            "HPatches full",
            "HPatches release",
            "HPatches patches",
            "HPatches tasks",
            "HPatches sequences",
            "HPatches sequences release",
            "homography patches",
        ),
        parts={sequence: () for sequence in _SEQUENCES},
        alone=True,
        sets=("hpatches-sample", "hpatches-mini"),
    ),
    Family(
        "phototour",
        aliases=(
            "UBC",
            "UBC PhotoTour",
            "UBC patches",
            "UBC patch",
            "UBC patch dataset",
            "UBC Brown",
            "Brown",
            "Brown PhotoTour",
            "Brown patches",
            "Brown dataset",
            "Brown UBC",
            "BrownPhotoTour",
            "PhotoTour patches",
            "PhotoTour dataset",
            "Winder Brown",
            "multi-view stereo correspondence",
            "multi-view stereo correspondence dataset",
            "MVS",
        ),
        parts={
            "liberty": ("statue of liberty", "liberty_dog"),
            "notredame": ("notre dame de paris", "notredame_dog"),
            "yosemite": ("yosemite half dome", "halfdome", "half dome", "yosemite_dog"),
            "liberty_harris": (),
            "notredame_harris": (),
            "yosemite_harris": (),
        },
        alone=True,
        grows=True,
    ),
    Family(
        "romepatches",
        aliases=("Rome", "Rome16K", "Rome 16K", "RomePatches dataset", "RomePatches SIFTs"),
        parts={"train": ("training",), "test": ("testing",)},
    ),
    Family(
        "oxford",
        aliases=(
            "Oxford affine",
            "Oxford affine covariant regions",
            "affine covariant regions",
            "Oxford affine regions",
            "Oxford affine dataset",
            "Oxford matching dataset",
            "Oxford dataset",
            "Oxford six",
            "Oxford VGG",
            "VGG affine",
            "VGG Oxford",
            "Mikolajczyk",
        ),
        parts={
            "bark": (),
            "bikes": (),
            "boat": (),
            "graf": ("graffiti", "graffity"),
            "leuven": (),
            "trees": (),
            "ubc": (),
            "wall": (),
        },
        sets=("oxford-sample",),
    ),
    Family(
        "eth",
        aliases=(
            "ETH SfM",
            "ETH local features",
            "ETH local feature evaluation",
            "local feature evaluation",
        ),
        parts={
            "fountain": ("fountain-P11", "Strecha fountain", "fountain-K6"),
            "herzjesu": ("herzjesu-P8", "herz-jesu-P8", "herz jesu", "Strecha herzjesu"),
            "south-building": ("south",),
            "madrid-metropolis": ("madrid",),
            "gendarmenmarkt": (),
            "tower-of-london": ("tower",),
            "alamo": (),
            "roman-forum": ("roman",),
            "cornell": ("ArtsQuad", "Arts Quad"),
        },
        grows=True,
    ),
)
# fmt: on
