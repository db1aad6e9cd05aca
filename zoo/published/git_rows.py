"""Published weights of which git's hash is known: files of repositories, at any commit."""

from pathlib import PurePosixPath

from harness.data.weights import TENSORS, Weights


def _of(
    name: str,
    repository: str,
    path: str,
    git_blob: str,
    *,
    licence: str,
    trained_on: frozenset[str] | None,
    folders: int = 0,
    read: str = TENSORS,
) -> Weights:
    """The row of a file; its local name has the last `folders` folders of its path."""
    return Weights(
        name=name,
        file="/".join(PurePosixPath(path).parts[-1 - folders :]),
        urls=(f"https://raw.githubusercontent.com/{repository}/master/{path}",),
        licence=licence,
        trained_on=trained_on,
        published_in=f"{repository}:{PurePosixPath(path).parent}",
        git_blob=git_blob,
        read=read,
    )


def _scene(scene: str) -> frozenset[str]:
    return frozenset({f"phototour/{scene}"})


def _hardnet(
    name: str, path: str, git_blob: str, trained_on: frozenset[str], licence: str = "MIT"
) -> Weights:
    path = f"pretrained/{path}"
    return _of(name, "DagnyT/hardnet", path, git_blob, licence=licence, trained_on=trained_on)


HARDNET = {
    "liberty": _hardnet(
        "hardnet-official.liberty",
        "train_liberty_with_aug/checkpoint_liberty_with_aug.pth",
        "c1b2a5f4e79a5f3e50ec9a1ac98a428965cef37b",
        _scene("liberty"),
    ),
    "liberty-no-aug": _hardnet(
        "hardnet-official.liberty-no-aug",
        "train_liberty/checkpoint_liberty_no_aug.pth",
        "8694b2a670aec840800966e42cd8c79e3be66e9a",
        _scene("liberty"),
    ),
    "notredame": _hardnet(
        "hardnet-official.notredame",
        "train_notredame_with_aug/checkpoint_notredame_with_aug.pth",
        "e3d10581066a9408db8c9a6b545e08318bdead2c",
        _scene("notredame"),
    ),
    "yosemite": _hardnet(
        "hardnet-official.yosemite",
        "train_yosemite_with_aug/checkpoint_yosemite_with_aug.pth",
        "ec9124d045fa7c05cefa76a7ae48a016754aae85",
        _scene("yosemite"),
    ),
    "brown6": _hardnet(
        "hardnet-official.brown6",
        "6Brown/hardnetBr6.pth",
        "26df901859b3bbfc0cafaca504f09e771ac7b427",
        frozenset({"phototour"}),
    ),
    "hardnet++": _hardnet(
        "hardnet++",
        "pretrained_all_datasets/HardNet++.pth",
        "84aa9c230b7cd6d0a8a7d13b65b39cfb0f406eec",
        # The README recommends other weights to those who test on HPatches. Which parts of the two
        # data sets it saw is not stated, so none is counted as unseen.
        frozenset({"phototour", "hpatches"}),
    ),
    "hardnet-ps": _hardnet(
        "hardnet-ps",
        "3rd_party/HardNetPS/HardNetPS.pth",
        "2d5b2988f18d6bd9523c69907ee4cbf07e060ab0",
        frozenset({"other/ps-dataset"}),
        licence="unknown",  # of other authors than the repository, whose licence is MIT
    ),
    "hardnet8": Weights(
        name="hardnet8",
        file="hardnet8v2.pt",
        urls=(
            "https://huggingface.co/kornia/hardnet/resolve/main/hardnet8v2.pt",
            "https://cmp.felk.cvut.cz/~mishkdmy/hardnet8v2.pt",
        ),
        licence="MIT",  # of huggingface.co/kornia/hardnet
        # huggingface.co/kornia/hardnet says HPatches. The author's README says Liberty, Colosseum
        # and Notre Dame of the weights of this layout that he calls PTv2.
        trained_on=None,
        published_in="huggingface.co/kornia/hardnet",
        # As a user of the file quotes it; the authors give no hash.
        sha256="5982f6d2c647545f13e74e8b011110fea2408130015a1496713253d9c00a941b",
    ),
}

# Training sequences of split a: splits.json of hpatches/hpatches-benchmark@e0c993c:tasks.
HPATCHES_A = frozenset(
    f"hpatches/{sequence}"
    for sequence in (
        "i_boutique i_castle i_chestnuts i_contruction i_crownday i_crownnight i_dc i_dome i_duda"
        " i_fenis i_gonnenberg i_greenhouse i_greentea i_indiana i_kions i_ktirio i_leuven"
        " i_lionday i_londonbridge i_melon i_miniature i_nescafe i_nuts i_objects i_parking"
        " i_partyfood i_pencils i_pinard i_pool i_school i_ski i_smurf i_steps i_toy i_veggies"
        " i_village i_yellowtent v_adam v_apprentices v_artisans v_astronautis v_bark v_beyus v_bip"
        " v_bird v_blueprint v_boat v_bricks v_calder v_cartooncity v_charing v_churchill v_circus"
        " v_colors v_dirtywall v_dogman v_gardens v_grace v_graffiti v_home v_laptop v_london"
        " v_machines v_maskedman v_posters v_samples v_sunseason v_tempera v_there v_vitro v_wall"
        " v_wapping v_war v_weapons v_wormhole v_wounded"
    ).split()
)


def _sosnet(name: str, part: str, git_blob: str, trained_on: frozenset[str]) -> Weights:
    path = f"sosnet-weights/sosnet_32x32_{part}.pth"
    return _of(
        f"sosnet-official.{name}",
        "yuruntian/SOSNet",
        path,
        git_blob,
        licence="unknown",  # no licence was found in the repository
        trained_on=trained_on,
    )


SOSNET = {
    "liberty": _sosnet(
        "liberty", "liberty", "e1654f36def583bb942cccbe149b0162d57d3d2a", _scene("liberty")
    ),
    "notredame": _sosnet(
        "notredame", "notredame", "386016b63ca2f18a77370b9a5254b0784428323c", _scene("notredame")
    ),
    "yosemite": _sosnet(
        "yosemite", "yosemite", "3b16e9f3afba50bb8138586bf829255f58fb0465", _scene("yosemite")
    ),
    "hpatches-a": _sosnet(
        "hpatches-a", "hpatches_a", "9154f47b3ead6f6eadd21bec48bd9b61e256e704", HPATCHES_A
    ),
}


def _hynet(scene: str, short: str, git_blob: str) -> Weights:
    return _of(
        f"hynet-official.{scene}",
        "yuruntian/HyNet",
        f"weights/HyNet_{short}.pth",
        git_blob,
        licence="MIT",
        trained_on=_scene(scene),
    )


HYNET = {
    "liberty": _hynet("liberty", "LIB", "30e43b29b92162617e7b34f0c7cc6c454798943d"),
    "notredame": _hynet("notredame", "ND", "0592b59d1c560c0fb0c4f702950478dd91fc2408"),
    "yosemite": _hynet("yosemite", "YOS", "060fb65541317560504c816e353fe6ea249c80bc"),
}


def _soft_margin(name: str, scene: str, kind: str, git_blob: str) -> Weights:
    return _of(
        f"{name}.{scene}",
        "lg-zhang/dynamic-soft-margin-pytorch",
        f"pretrained/{scene}_{kind}/model.state_dict",
        git_blob,
        licence="unknown",  # the repository has none
        trained_on=_scene(scene),
        folders=1,
    )


DSM = {
    scene: _soft_margin("dsm", scene, "float", git_blob)
    for scene, git_blob in (
        ("liberty", "a93d2b10b0f0f0609f4c072662cf74cd58bcd9f0"),
        ("notredame", "3471c95f922fafacc4bccd9c814a0a5fa28ee235"),
        ("yosemite", "293b8586165c6f3d7794498ebd36f07b0dfc8375"),
    )
}
DSM_BINARY = {
    scene: _soft_margin("dsm-binary", scene, "binary", git_blob)
    for scene, git_blob in (
        ("liberty", "fe4d41a0b9255eeaa7024210fc950dad03a18ee6"),
        ("notredame", "98b1a7153038b6ed4d45866ea0dab3828f2ddf4e"),
        ("yosemite", "55e4815c727303dd0d64f4f7c5a6eb22187daabe"),
    )
}


def _l2net(name: str, file: str, git_blob: str, trained_on: frozenset[str]) -> Weights:
    return _of(
        f"l2net-official.{name}",
        "yuruntian/L2-Net",
        f"matlab/L2Net-{file}.mat",
        git_blob,
        licence="unknown",  # the repository has none
        trained_on=trained_on,
        read="zoo.published.files.l2net:tensors",
    )


L2NET = {  # "+": trained with turned and mirrored patches
    "liberty": _l2net(
        "liberty", "LIB", "421df758db7535924f297f22961594b0e9625cc4", _scene("liberty")
    ),
    "notredame": _l2net(
        "notredame", "ND", "7633fec5ddd0f3b8f0a6d8e216041a46ed0c0d36", _scene("notredame")
    ),
    "yosemite": _l2net(
        "yosemite", "YOS", "1e2159e0ebde0fa818513d7c250ade3a5d2d8973", _scene("yosemite")
    ),
    # Which sequences it saw is not stated, so none is counted as unseen.
    "hpatches": _l2net(
        "hpatches", "HP", "9c30488488f8ef67c0cb16265e15e63dac959343", frozenset({"hpatches"})
    ),
    "liberty+": _l2net(
        "liberty+", "LIB+", "fb13559c8c954266c790fe68bb3c9871233d243b", _scene("liberty")
    ),
    "notredame+": _l2net(
        "notredame+", "ND+", "886d3c8016b50185042a6458b661f7631146c1b6", _scene("notredame")
    ),
    "yosemite+": _l2net(
        "yosemite+", "YOS+", "e1ec8f24b3a90fb9471fe22c9d3bc5ce08732d08", _scene("yosemite")
    ),
    "hpatches+": _l2net(
        "hpatches+", "HP+", "e50abaec78d543164ab549973ae1f17437e703a1", frozenset({"hpatches"})
    ),
}

GEODESC = {
    "geodesc": _of(
        "geodesc",
        "lzx551402/geodesc",
        "model/geodesc.pb",
        "fef16e4bc6443fedaf727f981d654fa785baae49",
        licence="MIT",
        trained_on=frozenset({"other/GL3D"}),
        read="zoo.published.files.geodesc:tensors",
    )
}
