"""Finds images that look alike by COLMAP's vocabulary tree: the same pairs for every descriptor."""

import hashlib
import json
import logging
import shutil
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pycolmap

from harness import cache as caches
from harness.files import atomic, home
from protocols.colmap.mapping import quiet
from protocols.eth.pair_lists import ImagePairs
from protocols.resuming import resuming

FEATURES = 2000  # largest SIFT features of an image that the search uses
WORDS = 16_384  # of the vocabulary
LEARNED = 40  # features per word that the vocabulary is learned from
ROUNDS, ITERATIONS = 1, 30  # of learning: 16,384 words take about half an hour on one thread
THREADS = 1  # with more threads, the same images sometimes give other words and other pairs
EMBEDDED = 64  # bits of COLMAP's Hamming embedding, which has no other size

DATABASE, TREE = "database.db", "tree.bin"

log = logging.getLogger(__name__)


def alike(images: Path, names: Sequence[str], sha256: Sequence[str], neighbours: int) -> ImagePairs:
    """Pairs of each image with the images that are most alike, the smaller number first, in order.

    COLMAP retrieves them by its SIFT features and a vocabulary tree that it learns from a sample of
    them. The official pipeline differs: it retrieves by each descriptor, on a tree of other images.
    The pairs are kept in the cache, by the contents of the images.
    """
    learning = [WORDS, LEARNED, ROUNDS, ITERATIONS]
    settings = [neighbours, FEATURES, *learning, version("pycolmap")]
    origin = {"settings": settings, "images": list(sha256)}

    def find() -> bytes:
        key = hashlib.sha256(json.dumps(origin).encode()).hexdigest()
        folder = home.place("pairs", f"{key}.work")
        with resuming(folder, {"settings": settings}), quiet():
            retrieved = _retrieved(images, names, folder, neighbours)
            shutil.rmtree(folder)  # up to gigabytes, not needed again
        return json.dumps(retrieved).encode()

    return [(a, b) for a, b in json.loads(caches.kept("pairs").get(origin, find))]


def _retrieved(images: Path, names: Sequence[str], folder: Path, neighbours: int) -> ImagePairs:
    """The pairs that COLMAP retrieves; an interrupted run resumes at images without features."""
    database = folder / DATABASE
    if not (folder / "listed").is_file():
        database.unlink(missing_ok=True)
        pycolmap.Database.open(database).close()
        pycolmap.import_images(database, images, pycolmap.CameraMode.AUTO, list(names))
        atomic.write_text(folder / "listed", "")
    extraction = pycolmap.FeatureExtractionOptions(use_gpu=False)
    extraction.sift.max_num_features = FEATURES
    log.info("features of %d images in %s, to find which look alike", len(names), images)
    pycolmap.extract_features(
        database, images, list(names), extraction_options=extraction, device=pycolmap.Device.cpu
    )
    with pycolmap.Database.open(database) as opened:
        number = {name: row for row, name in enumerate(names)}
        rows = {image.image_id: number[image.name] for image in opened.read_all_images()}
        options = pycolmap.VocabTreePairingOptions(
            num_images=neighbours + 1,  # the image itself is among them
            vocab_tree_path=_vocabulary(opened, list(rows), folder / TREE),
            num_threads=THREADS,
        )
        id_pairs = pycolmap.VocabTreePairGenerator(options, opened).all_pairs()
    pairs = {(min(rows[a], rows[b]), max(rows[a], rows[b])) for a, b in id_pairs if a != b}
    return sorted(pairs)


def _vocabulary(database: pycolmap.Database, ids: Sequence[int], file: Path) -> Path:
    most = -(-WORDS * LEARNED // len(ids))  # features of each image
    some = []
    for image in ids:
        features = database.read_descriptors(image).data
        some.append(features[:: -(-len(features) // most) or 1].astype(np.float32))
    learned = np.concatenate(some)
    options = pycolmap.VisualIndex.BuildOptions(
        num_visual_words=max(1, min(WORDS, len(learned) // LEARNED)),
        num_rounds=ROUNDS,
        num_iterations=ITERATIONS,
        num_threads=THREADS,
    )
    pycolmap.set_random_seed(0)
    index = pycolmap.VisualIndex.create(learned.shape[1], EMBEDDED)
    index.build(
        options,
        pycolmap.FeatureDescriptorsFloat(type=pycolmap.FeatureExtractorType.SIFT, data=learned),
    )
    index.write(file)
    return file
