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


def _deepdesc(split: int, step: str, sha256: str, scenes: tuple[str, ...]) -> Weights:
    file = f"CNN3_p8_n8_split{split}_{step}.t7"
    return Weights(
        name=f"deepdesc.split{split}",
        file=file,
        sha256=sha256,
        size=2308993,
        urls=(f"https://github.com/etrulls/deepdesc-release/raw/0a97828/models/{file}",),
        licence="CC-BY-NC-SA-4.0",
        trained_on=frozenset(f"phototour/{scene}" for scene in scenes),
        published_in="etrulls/deepdesc-release@0a97828:models",
        read="zoo.published.files.deepdesc:tensors",
    )


DEEPDESC = {
    "split1": _deepdesc(
        1,
        "072000",
        "e2e7d1b9b274510e4cd86ab0ce70228703c002f2142b26939c7d6335a2876267",
        ("liberty", "yosemite"),
    ),
    "split2": _deepdesc(
        2,
        "104000",
        "bdf83f8d6bc05455eceb0d64036da8e9727826deb3fd2e444513e7d9e9f84017",
        ("liberty", "notredame"),
    ),
    "split3": _deepdesc(
        3,
        "067000",
        "e34f186da5bb29563b11372b4eccf48d0d25595b45641a5e7a5fc9f39a245fd3",
        ("yosemite", "notredame"),
    ),
    "split4": _deepdesc(
        4,
        "073000",
        "e89b84c2fe5c86e342684a0e67653f2dfafac00b92182ede4ef86e9279dfd36b",
        ("liberty", "yosemite", "notredame"),  # a part of each
    ),
}


def _tnet(scene: str, size: int, sha256: str) -> Weights:
    file = f"model_global_triplet_{scene}.mat"
    return Weights(
        name=f"tnet.{scene}",
        file=file,
        sha256=sha256,
        size=size,
        urls=(f"https://github.com/vijaykbg/deep-patchmatch/raw/a1a66c2/models/embedding/{file}",),
        licence="Apache-2.0",
        trained_on=frozenset({f"phototour/{scene}"}),
        published_in="vijaykbg/deep-patchmatch@a1a66c2:models/embedding",
        read="zoo.published.files.tnet:tensors",
    )


TNET = {
    "liberty": _tnet(
        "liberty", 3966031, "7debc39fe553f068bfb80e6b3a6144cb7b40f2c1d09e1edd9500564e6da55d87"
    ),
    "notredame": _tnet(
        "notredame", 3962119, "7c972926083cbd30744195186ce091bfecc768337acfc7e5ab8580a318099cec"
    ),
    "yosemite": _tnet(
        "yosemite", 3962989, "ad8acccbbf07b9a0f4eb54a3785ad5fa81efc1b20a8ff1cc8aa7d0843634a63b"
    ),
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
