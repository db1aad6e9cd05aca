"""Published weights that the zoo uses, as rows: apart from the networks, which need PyTorch."""

from harness.data.weights import Weights

TFEAT_MIRRORS = (
    "https://github.com/vbalnt/tfeat/raw/master/pretrained-models",
    "https://raw.githubusercontent.com/vbalnt/tfeat/9434ffa/pretrained-models",
)


def _tfeat(scene: str, sha256: str) -> Weights:
    return Weights(
        name=f"tfeat.{scene}",
        file=f"tfeat-{scene}.params",
        sha256=sha256,
        size=2400533,
        urls=tuple(f"{mirror}/tfeat-{scene}.params" for mirror in TFEAT_MIRRORS),
        licence="MIT",
        trained_on=frozenset({f"phototour/{scene}"}),
        published_in="vbalnt/tfeat@9434ffa:pretrained-models",
    )


TFEAT = {
    "liberty": _tfeat(
        "liberty", "1f2e9516b03c45876161da006ce8047e0a66ef08cc91d3fbf96a75f1a80f445a"
    ),
    "notredame": _tfeat(
        "notredame", "71b9fe3e2a5ec4b90eb5c92c9eb0565504fba8bd2b6a7fa3b7e79d9df6e146a6"
    ),
    "yosemite": _tfeat(
        "yosemite", "548d65103b9e4d7c1f9242d613df96df14a456a2b44565f2c7faed7cbd928e8d"
    ),
}

HARDTFEAT = {
    "hardtfeat": Weights(
        name="hardtfeat",
        file="HardTFeat.pth",
        sha256="cd935728293309b666c20525696c8d323be5ffdac07b3340f4c1c1314e0b6542",
        size=2401008,
        urls=("https://github.com/ducha-aiki/affnet/raw/da7cf51/pretrained/HardTFeat.pth",),
        licence="MIT",
        # Which scenes it saw is not stated, so none of PhotoTour's is counted as unseen.
        trained_on=frozenset(f"phototour/{s}" for s in ("liberty", "notredame", "yosemite")),
        published_in="ducha-aiki/affnet@da7cf51",
    )
}


def _mkd(kind: str, scene: str) -> Weights:
    return Weights(
        name=f"mkd-{kind}.{scene}",
        file="mkd-concat-64.pth",  # one file for all scenes and kinds
        sha256="e31112000009e0d6e159dd7726aeea9f6a7d746cfe7d59b59bfb86c570667641",
        size=1372952,
        urls=("https://github.com/manyids2/mkd_pytorch/raw/master/mkd_pytorch/mkd-concat-64.pth",),
        licence="MIT",
        trained_on=frozenset({f"phototour/{scene}"}),
        published_in="manyids2/mkd_pytorch@fb97c42",
        read="zoo.handcrafted.mkd_file:whitenings",
    )


MKD = {
    f"mkd-{kind}.{scene}": _mkd(kind, scene)
    for kind in ("pcawt", "lw")
    for scene in ("liberty", "notredame", "yosemite")
}
