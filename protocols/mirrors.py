"""Addresses, hashes, sizes and licences of the published data sets.

A hash or a size is given only if somebody published it. None means "not known"; no value is a
guess. The addresses come from the authors' pages and from code; they were not tried. A dead address
stays in the list, in case its server comes back.
"""

from harness.data.copies import Copy
from harness.data.datasets import PublishedSet, SetPart
from protocols.official import official
from protocols.open_photographs.sets import photograph_sets

NONE_STATED = "none stated; treat it as for research only"


def _phototour() -> list[PublishedSet]:
    # Hashes: torchvision, datasets/phototour.py. torchvision takes the DoG sets from
    # icvl.ee.ic.ac.uk, a name that does not resolve since 2024 (pytorch/vision#8960), and the
    # Harris sets from matthewalunbrown.com, which answers with an unrelated page
    # (pytorch/vision#9493). A torchvision user packed the unpacked DoG sets again for
    # cmp.felk.cvut.cz (pytorch/vision#9002): those archives have other hashes, not known to us.
    md5 = {
        "liberty": "fdd9152f138ea5ef2091746689176414",
        "notredame": "509eda8535847b8c0a90bbb210c83484",
        "yosemite": "533b2e8eb7ede31be40abc317b2fd4f0",
        "liberty_harris": "c731fcfb3abb4091110d0ae8c7ba182c",
        "notredame_harris": "69f8c90f78e171349abdf0307afefe4d",
        "yosemite_harris": "a73253d1c6fbd3ba2613c45065c00d46",
    }
    sizes = official("phototour")
    rows = []
    for scene, value in md5.items():
        original = Copy(f"http://matthewalunbrown.com/patchdata/{scene}.zip", f"md5:{value}")
        copies = [original]
        if not scene.endswith("_harris"):
            copies = [
                Copy(f"http://icvl.ee.ic.ac.uk/vbalnt/{scene}.zip", f"md5:{value}"),
                Copy(f"https://cmp.felk.cvut.cz/~mishkdmy/datasets/BrownPhotoTour/{scene}.zip"),
                original,
            ]
        detector = "Harris" if scene.endswith("_harris") else "DoG"
        rows.append(
            PublishedSet(
                name=f"phototour/{scene}",
                title=f"UBC/Brown PhotoTour, {scene.partition('_')[0]}, {detector} points",
                page="http://matthewalunbrown.com/patchdata/patchdata.html",
                parts=(SetPart(tuple(copies)),),
                licence=NONE_STATED,
                citation="Brown, Hua, Winder: Discriminative Learning of Local Image Descriptors,"
                " PAMI 33(1), 2011",
                needs={
                    "phototour": (
                        "patches*.bmp",
                        "info.txt",
                        "interest.txt",
                        "m50_100000_100000_0.txt",
                    )
                },
                roughly="1-2 GB",  # as its page says
                sizes=_sizes(sizes.get(scene, {})),
            )
        )
    return rows


def _sizes(known: dict[str, int]) -> dict[str, tuple[int, int]]:
    """Number and size of each kind of file of a scene, from its facts in `official.json`."""
    rest = dict(known)
    tiles = {"patches*.bmp": (rest.pop("tiles"), rest.pop("bytes of a tile"))} if rest else {}
    return tiles | {name: (1, size) for name, size in rest.items()}


def _hpatches() -> list[PublishedSet]:
    page = "https://github.com/hpatches/hpatches-dataset"
    citation = (
        "Balntas, Lenc, Vedaldi, Mikolajczyk: HPatches: A benchmark and evaluation of handcrafted"
        " and learned local descriptors, CVPR 2017"
    )
    old = "http://icvl.ee.ic.ac.uk/vbalnt/hpatches"  # not resolved since 2024: hpatches-dataset#11
    new = "https://huggingface.co/datasets/vbalnt/hpatches/resolve/main"  # by the first author
    tasks = "https://raw.githubusercontent.com/hpatches/hpatches-benchmark/master/tasks"
    blobs: dict[str, str] = official("hpatches")["git_blob_sha1"]
    return [
        PublishedSet(
            name="hpatches/patches",
            title="HPatches, patches of 116 sequences",
            page=page,
            parts=(
                SetPart(
                    (
                        # md5: a torchvision fork with an HPatches class, by the authors' group
                        Copy(
                            f"{old}/hpatches-release.tar.gz", "md5:0ab830d37fceb2b4c86cb1cc6cc79a61"
                        ),
                        # The README names this file; only the sequences' address is documented.
                        Copy(f"{new}/hpatches-release.zip"),
                    )
                ),
            ),
            licence="MIT (repository); images of others: see references.txt there",
            citation=citation,
            needs={"hpatches": ("[iv]_*/ref.png", "[iv]_*/e5.png", "[iv]_*/t5.png")},
            roughly="4.2 GB",  # as its README says
            by_hand="people found it at https://aistudio.baidu.com/datasetdetail/107865 and"
            " https://www.kaggle.com/datasets/javidtheimmortal/hpatches, which were not tried: it"
            " must hold 116 folders such as v_wall, and in each 16 strips (ref.png, e1.png to"
            " e5.png, h1.png to h5.png, t1.png to t5.png), 65 pixels wide",
        ),
        PublishedSet(
            name="hpatches/tasks",
            title="HPatches, official pairs, queries and splits",
            page="https://github.com/hpatches/hpatches-benchmark",
            parts=tuple(
                SetPart((Copy(f"{tasks}/{place}", f"git:{blob}", size),))
                for place, blob, size in [
                    ("splits/splits.json", "6690984369b884e020deafe237a6b992f9111015", 7613),
                    *((name, blob, None) for name, blob in sorted(blobs.items())),
                ]
            ),
            licence="BSD-2-Clause style (COPYING there)",
            citation=citation,
            needs={"hpatches": ("splits.json", *sorted(blobs))},
            roughly="0.5 GB",  # estimated: 18 files of a million lines
        ),
        PublishedSet(
            name="hpatches/sequences",
            title="HPatches, the full images and homographies",
            page=page,
            parts=(
                SetPart(
                    (
                        # sha256 and size: as listed on that site and as two users measured them
                        Copy(
                            f"{new}/hpatches-sequences-release.zip",
                            "sha256:99cf7e1ca167896eb4ca2fe3d903beff6566243a3c0c8e07a13a2596648ad670",
                            1279545572,
                        ),
                        Copy(f"{old}/hpatches-sequences-release.tar.gz"),
                    )
                ),
            ),
            licence="MIT (repository); images of others: see references.txt there",
            citation=citation,
            needs={
                "hpatches-sequences": ("[iv]_*/1.ppm", "[iv]_*/H_1_6"),
                "data build hpatches": ("[iv]_*/1.ppm", "[iv]_*/H_1_6"),
            },
        ),
    ]


def _romepatches() -> list[PublishedSet]:
    page = "http://lear.inrialpes.fr/people/paulin/projects/RomePatches/"
    base = "http://pascal.inrialpes.fr/data2/paulin/RomePatches"
    citation = (
        "Paulin, Douze, Harchaoui, Mairal, Perronnin, Schmid: Local Convolutional Features with"
        " Unsupervised Training for Image Retrieval, ICCV 2015; images: Li, Snavely, Huttenlocher,"
        " ECCV 2010"
    )
    halves = [
        f"patch_retrieval_Rome_{half}{ending}.mat"
        for half in ("train", "test")
        for ending in ("", "_labels")
    ]
    sifts = [f"patch_retrieval_Rome_sifts_{half}.mat" for half in ("train", "test")]
    # The page gives no size and no hash.
    return [
        PublishedSet(
            name="romepatches",
            title="RomePatches, patches and labels",
            page=page,
            parts=tuple(SetPart((Copy(f"{base}/{file}"),)) for file in halves),
            licence=NONE_STATED,
            citation=citation,
            needs={"romepatches": tuple(halves)},
        ),
        PublishedSet(
            name="romepatches-sifts",
            title="RomePatches, the authors' SIFT vectors",
            page=page,
            parts=tuple(SetPart((Copy(f"{base}/{file}"),)) for file in sifts),
            licence=NONE_STATED,
            citation=citation,
            needs={},
        ),
    ]


def _oxford() -> list[PublishedSet]:
    # sha256: pinned in the scripts of two projects (boat: in one).
    sha256 = {
        "bark": None,
        "bikes": None,
        "boat": "sha256:6e5721f37fbf9c3e974fd05935a42c1670f3e71aa3e5b218807ea046a068c603",
        "graf": "sha256:999871b945ee968a00a0d5f9af957d1382fb9dae1511cdee9553366817b53b5b",
        "leuven": None,
        "trees": None,
        "ubc": None,
        "wall": None,
    }
    old = "https://www.robots.ox.ac.uk/~vgg/research/affine/det_eval_files"  # redirects to thor
    return [
        PublishedSet(
            name=f"oxford/{sequence}",
            title=f"Oxford affine covariant regions, {sequence}",
            page="https://www.robots.ox.ac.uk/~vgg/research/affine/",
            parts=(
                SetPart(
                    (
                        Copy(f"https://thor.robots.ox.ac.uk/affine/{sequence}.tar.gz", hash),
                        Copy(f"{old}/{sequence}.tar.gz", hash),
                    )
                ),
            ),
            licence=NONE_STATED,
            citation="Mikolajczyk, Schmid: A performance evaluation of local descriptors,"
            " PAMI 27(10), 2005",
            needs={"oxford": ("img1.p[gp]m", "img6.p[gp]m", "H1to2p", "H1to6p")},
            roughly="a few MB",
        )
        for sequence, hash in sha256.items()
    ]


def _eth() -> list[PublishedSet]:
    # Addresses and layout: INSTRUCTIONS.md of the benchmark. No size and no hash is published.
    page = "https://github.com/ahojnnes/local-feature-evaluation"
    eth = "https://cvg-data.inf.ethz.ch/local-feature-evaluation-schoenberger2017"
    cornell = "http://landmark.cs.cornell.edu/projects/1dsfm"
    oxford = "oxbuildings/oxbuild_images"
    citation = (
        "Schönberger, Hardmeier, Sattler, Pollefeys: Comparative Evaluation of Hand-Crafted and"
        " Learned Local Features, CVPR 2017"
    )
    strecha = "Strecha, von Hansen, Van Gool, Fua, Thoennessen, CVPR 2008"
    wilson = "Wilson, Snavely: Robust Global Translations with 1DSfM, ECCV 2014"
    philbin = "Philbin, Chum, Isard, Sivic, Zisserman, CVPR 2007"
    scenes = {
        "fountain": ("11 images", f"{eth}/Strecha-Fountain.zip", strecha),
        "herzjesu": ("8 images", f"{eth}/Strecha-Herzjesu.zip", strecha),
        "south-building": ("128 images", f"{eth}/South-Building.zip", "images: C. Zach"),
        "madrid-metropolis": ("1344 images", f"{cornell}/images.Madrid_Metropolis.tar", wilson),
        "gendarmenmarkt": ("1463 images", f"{cornell}/images.Gendarmenmarkt.tar", wilson),
        "tower-of-london": ("1576 images", f"{cornell}/images.Tower_of_London.tar", wilson),
        "alamo": ("2915 images", f"{cornell}/images.Alamo.tar", wilson),
        "roman-forum": ("2364 images", f"{cornell}/images.Roman_Forum.tar", wilson),
    }
    rows = [
        PublishedSet(
            name=f"eth/{scene}",
            title=f"ETH local features, {scene.replace('-', ' ')}, {images}",
            page=page,
            parts=(SetPart((Copy(url),)),),
            licence=NONE_STATED,
            citation=f"{citation}; {origin}",
            needs={"eth": ("images/*",)},
        )
        for scene, (images, url, origin) in scenes.items()
    ]
    more = [
        (
            "eth/cornell",
            "ETH local features, Cornell (Arts Quad), 6514 images",
            (Copy("http://vision.soic.indiana.edu/disco_files/ArtsQuad_dataset.tar"),),
            f"{citation}; Crandall, Owens, Snavely, Huttenlocher, CVPR 2011",
            ("ArtsQuad_*",),  # as other projects' scripts unpack it
            NONE_STATED,
        ),
        (
            "eth/databases",
            "ETH local features, databases with images and cameras",
            (Copy(f"{eth}/Databases.tar.gz"),),
            citation,
            ("*/database.db",),
            NONE_STATED,
        ),
        (
            "eth/keypoints",
            "ETH local features, the SIFT keypoints to describe",
            (Copy(f"{eth}/Keypoints.tar.gz"),),
            citation,
            ("*/keypoints",),
            NONE_STATED,
        ),
        (
            "eth/oxford5k",
            "Oxford buildings, 5062 images to train vocabularies on",
            (
                # size: as one user measured it
                Copy(f"https://thor.robots.ox.ac.uk/{oxford}-v1.tgz", size=1938238004),
                Copy(f"https://www.robots.ox.ac.uk/~vgg/data/{oxford}.tgz"),
            ),
            philbin,
            (),
            "Flickr's terms, and the terms of access on its page",
        ),
        (
            "eth/vocabulary-tree",
            "COLMAP's vocabulary tree for SIFT, 256K words",
            (
                # sha256: COLMAP's source, kDefaultSiftVocabTreeUri
                Copy(
                    "https://github.com/colmap/colmap/releases/download/3.11.1/"
                    "vocab_tree_faiss_flickr100K_words256K.bin",
                    "sha256:96ca8ec8ea60b1f73465aaf2c401fd3b3ca75cdba2d3c50d6a2f6f760f275ddc",
                ),
            ),
            "Schönberger, Price, Sattler, Frahm, Pollefeys: A Vote-and-Verify Strategy for Fast"
            " Spatial Verification in Image Retrieval, ACCV 2016",
            (),
            "BSD-3-Clause (COLMAP)",
        ),
    ]
    pages = {
        "eth/oxford5k": "https://www.robots.ox.ac.uk/~vgg/data/oxbuildings/",
        "eth/vocabulary-tree": "https://github.com/colmap/colmap/releases",
    }
    for name, title, copies, cited, needed, licence in more:
        rows.append(
            PublishedSet(
                name=name,
                title=title,
                page=pages.get(name, page),
                parts=(SetPart(copies),),
                licence=licence,
                citation=cited,
                needs={"eth": needed} if needed else {},
            )
        )
    return rows


DATASETS = (
    *_phototour(), *_hpatches(), *_romepatches(), *_oxford(), *_eth(), *photograph_sets()
)  # fmt: skip
