"""Files of features: readers of hloc's layout read them, and interrupted runs continue."""

import json
import subprocess
import sys

import h5py
import numpy as np
import pytest
from PIL import Image, ImageOps
from scene_images import calls, grid_detector, texture, views, write_png

from harness import load_model
from harness.errors import FileInTheWayError, InputError, UnknownNameError
from protocols.imaging.affine import from_similarity
from protocols.imaging.grey import read_grey
from protocols.imaging.keypoint_patches import USUAL
from protocols.pipelines import photographs
from protocols.pipelines.detectors import detector
from protocols.pipelines.extract import extract
from protocols.pipelines.orientation import upright

NAMES = ["a b.png", "left/é.png", "left/c.png"]


@pytest.fixture
def images(tmp_path):
    return views(tmp_path / "images", NAMES)


@pytest.fixture
def grid(tmp_path):
    return grid_detector(tmp_path)


def as_hloc_reads(file):
    """Every data set of every image as float32, as a matcher of hloc gets them."""
    names, images = set(), {}
    with h5py.File(file, "r", libver="latest") as opened:
        opened.visititems(
            lambda _, entry: (
                names.add(entry.parent.name.strip("/")) if isinstance(entry, h5py.Dataset) else None
            )
        )
        for name in names:
            images[name] = {key: value.__array__() for key, value in opened[name].items()}
    for arrays in images.values():
        for array in arrays.values():
            array.astype(np.float32)  # fails for text
    return images


def same(a, b):
    assert a.keys() == b.keys()
    for name in a:
        assert a[name].keys() == b[name].keys()
        for key in a[name]:
            np.testing.assert_array_equal(a[name][key], b[name][key])
    return True


def test_a_reader_of_hlocs_layout_finds_every_image(images, grid, tmp_path):
    model = load_model("rootsift", device="cpu")
    found = extract(images, tmp_path / "f.h5", model=model, detector=grid)
    read = as_hloc_reads(tmp_path / "f.h5")
    assert read.keys() == set(NAMES)
    assert (found.images, found.added) == (3, 3)
    for name, arrays in read.items():
        n = len(arrays["keypoints"])
        assert arrays["keypoints"].shape == (n, 2) and n > 50
        assert arrays["descriptors"].shape == (128, n)
        assert arrays["scores"].shape == arrays["scales"].shape == (n,)
        assert arrays["image_size"].tolist() == [320, 240]
        frames = detector(grid)(photographs.one(images / name))
        np.testing.assert_allclose(arrays["keypoints"].T, [frames.x, frames.y])
        grey = read_grey(images / name).astype(np.float32)
        wanted = model.describe(USUAL.patches(grey, frames))
        np.testing.assert_array_equal(arrays["descriptors"].T, wanted)


def test_nearest_neighbours_by_products_find_the_same_places(images, tmp_path):
    """The matcher of hloc: the largest product of unit vectors, both ways."""
    model = load_model("rootsift", device="cpu")
    extract(images, tmp_path / "f.h5", model=model, detector="harris-affine", keypoints=300)
    read = as_hloc_reads(tmp_path / "f.h5")
    a, b = read["left/c.png"], read["left/c.png"]
    product = np.einsum("dn,dm->nm", a["descriptors"], b["descriptors"])
    np.testing.assert_allclose(product.max(axis=1), 1, atol=1e-4)
    assert "affine" in a  # the regions are ellipses


def test_bits_are_packed_and_the_file_says_so(images, grid, tmp_path):
    model = load_model("hashsift.256", device="cpu")
    extract(images, tmp_path / "f.h5", model=model, detector=grid)
    frames = detector(grid)(photographs.one(images / "left/c.png"))
    grey = read_grey(images / "left/c.png").astype(np.float32)
    with h5py.File(tmp_path / "f.h5") as file:
        stored = file["left/c.png/descriptors"]
        assert stored.dtype == np.uint8
        assert stored.attrs["packed_bits"] == 256 and stored.attrs["bit_order"] == "big"
        assert file.attrs["distance"] == "hamming"
        bits = np.unpackbits(stored[:].T, axis=1, bitorder=stored.attrs["bit_order"])
    wanted = model.describe(USUAL.patches(grey, frames))
    np.testing.assert_array_equal(bits, np.unpackbits(wanted, axis=1))


def test_half_precision_rounds_vectors_and_never_keypoints(images, grid, tmp_path):
    model = load_model("rootsift", device="cpu")
    for precision in ("float32", "float16"):
        extract(images, tmp_path / precision, model=model, detector=grid, precision=precision)
    full, half = (as_hloc_reads(tmp_path / name)["a b.png"] for name in ("float32", "float16"))
    assert half["descriptors"].dtype == np.float16
    np.testing.assert_array_equal(half["descriptors"], full["descriptors"].astype(np.float16))
    np.testing.assert_array_equal(half["keypoints"], full["keypoints"])


def test_a_killed_run_continues_and_gives_the_same_file(images, tmp_path):
    command = [sys.executable, "-m", "harness", "extract", images, "--model", "rootsift"]
    killer = grid_detector(tmp_path, stop=3)
    out = tmp_path / "killed.h5"
    for status in (-9, 0):
        done = subprocess.run([*command, "--out", out, "--detector", killer], capture_output=True)
        assert done.returncode == status, done.stderr
        assert out.exists() == (status == 0)
    assert calls(tmp_path, 3) in (4, 5)  # what was detected ahead is lost
    model = load_model("rootsift", device="cpu")
    whole = tmp_path / "whole.h5"
    extract(images, whole, model=model, detector=grid_detector(tmp_path))
    assert same(as_hloc_reads(out), as_hloc_reads(whole))
    assert not [*tmp_path.glob(".*")]


def test_only_new_and_changed_images_are_described_again(images, grid, tmp_path):
    model, out = load_model("rootsift", device="cpu"), tmp_path / "f.h5"
    extract(images, out, model=model, detector=grid)
    before = as_hloc_reads(out)
    write_png(images / "new.png", texture())
    write_png(images / "a b.png", texture()[:, ::-1])
    (images / "left/c.png").unlink()
    found = extract(images, out, model=model, detector=grid)
    assert (found.added, found.images, calls(tmp_path)) == (2, 4, 5)
    after = as_hloc_reads(out)
    assert same({"x": before["left/c.png"]}, {"x": after["left/c.png"]})  # nothing is lost
    assert not np.array_equal(before["a b.png"]["descriptors"], after["a b.png"]["descriptors"])


def test_a_file_of_another_model_is_refused_and_kept(images, grid, tmp_path):
    out = tmp_path / "f.h5"
    extract(images, out, model=load_model("rootsift", device="cpu"), detector=grid)
    before = out.read_bytes()
    with pytest.raises(InputError, match="has features of model rootsift, not sift"):
        extract(images, out, model=load_model("sift", device="cpu"), detector=grid)
    out.write_bytes(b"no HDF5")
    with pytest.raises(InputError, match="can't be read as HDF5"):
        extract(images, out, model=load_model("rootsift", device="cpu"), detector=grid)
    assert before and out.read_bytes() == b"no HDF5"


def test_unfinished_work_of_another_model_is_refused_and_kept(images, tmp_path):
    out, killer = tmp_path / "f.h5", grid_detector(tmp_path, stop=3)
    command = [sys.executable, "-m", "harness", "extract", images, "--out", out]
    command += ["--detector", killer, "--model"]
    assert subprocess.run([*command, "rootsift"], capture_output=True).returncode == -9
    left = sorted(tmp_path.glob(".f.h5.parts/*.npz"))
    assert left
    with pytest.raises(FileInTheWayError, match="unfinished work of another model"):
        extract(images, out, model=load_model("sift", device="cpu"), detector=killer)
    assert sorted(tmp_path.glob(".f.h5.parts/*.npz")) == left
    left[0].write_bytes(left[0].read_bytes()[:-100])  # damaged: it is made again
    rootsift = load_model("rootsift", device="cpu")
    assert extract(images, out, model=rootsift, detector=killer).added == 3


def test_the_command_says_what_it_wrote(run, images, grid, tmp_path):
    (images / "bad.png").write_bytes(b"no image")
    command = ["extract", images, "--model", "rootsift", "--out", tmp_path / "f.h5"]
    command += ["--detector", grid, "--set", "extent=5"]
    status, out, told = run(*command)
    assert status == 0
    assert f"3 images with 288 keypoints in {tmp_path / 'f.h5'}" in out
    assert "1 skipped, as told above: bad.png" in out
    assert "bad.png can't be decoded" in told
    status, out, _ = run(*command, "--json")
    assert status == 0 and json.loads(out)["added"] == 0
    status, _, told = run(*command[:-1], "extnt=5")
    assert status == 2 and "did you mean 'extent'" in told


def test_unreadable_and_empty_images_are_told_and_counted(images, grid, tmp_path, caplog):
    (images / "cut.png").write_bytes((images / "a b.png").read_bytes()[:-50])
    write_png(images / "tiny.png", np.full((30, 30), 9, np.uint8))
    model = load_model("rootsift", device="cpu")
    found = extract(images, tmp_path / "f.h5", model=model, detector=grid)
    assert found.skipped.keys() == {"cut.png"}
    assert found.empty == ("tiny.png",)
    assert found.images == 4
    assert "1 of 5 images skipped: cut.png: " in caplog.text
    assert as_hloc_reads(tmp_path / "f.h5")["tiny.png"]["descriptors"].shape == (128, 0)


def test_a_folder_without_a_readable_image_is_an_error(tmp_path):
    model = load_model("rootsift", device="cpu")
    with pytest.raises(InputError, match="is not a folder"):
        extract(tmp_path / "no", tmp_path / "f.h5", model=model)
    (tmp_path / "a.png").write_bytes(b"no image")
    with pytest.raises(InputError, match="none of the 1 images in"):
        extract(tmp_path, tmp_path / "f.h5", model=model, detector="harris-affine")
    with pytest.raises(UnknownNameError, match="did you mean 'sift'"):
        extract(tmp_path, tmp_path / "f.h5", model=model, detector="sft")


def test_keypoints_on_black_pixels_of_a_mask_are_dropped(images, grid, tmp_path):
    mask = np.full((240, 320), 255, np.uint8)
    mask[:, :160] = 0
    write_png(tmp_path / "masks/left/c.png.png", mask)
    write_png(tmp_path / "masks/a b.png.png", mask[:100])
    model, out = load_model("rootsift", device="cpu"), tmp_path / "f.h5"
    found = extract(images, out, model=model, detector=grid, masks=tmp_path / "masks")
    read = as_hloc_reads(out)
    assert read["left/c.png"]["keypoints"][:, 0].min() >= 159.5
    assert read["left/é.png"]["keypoints"][:, 0].min() == 20  # it has no mask
    assert "320 x 100 pixels, its image 320 x 240" in found.skipped["a b.png"]


@pytest.mark.parametrize("orientation", range(1, 9))
def test_patches_of_keypoints_without_angle_are_upright_as_the_image_is_shown(
    tmp_path, orientation
):
    shown = texture(120, 160)
    places = np.array([[60, 50], [90, 70], [80, 45]])
    stored, row, column = (
        _as_stored(array, orientation) for array in (shown, *np.indices(shown.shape))
    )
    photograph = _saved(tmp_path, stored, orientation)
    there = [np.argwhere((column == x) & (row == y))[0] for x, y in places]
    y, x = np.array(there, float).T
    circles = from_similarity(x, y, np.full(3, 3.0), np.zeros(3))
    found = USUAL.patches(photograph.read(), upright(photograph.file, circles))
    wanted = USUAL.patches(
        shown.astype(np.float32), from_similarity(*places.T.astype(float), circles.x * 0 + 3, x * 0)
    )
    assert np.abs(found.astype(int) - wanted).max() <= 1


def _as_stored(shown, orientation):
    """The pixels that a viewer turns to these."""
    backwards = {1: None, 2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}[orientation]
    image = Image.fromarray(shown.astype(np.uint8))
    if backwards is not None:
        image = image.transpose(Image.Transpose(backwards))
    return np.asarray(image)


def _saved(folder, stored, orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    Image.fromarray(stored).save(folder / "a.png", exif=exif)
    with Image.open(folder / "a.png") as image:  # Pillow agrees on what is shown
        shown = np.asarray(ImageOps.exif_transpose(image))
    np.testing.assert_array_equal(_as_stored(shown, orientation), stored)
    return photographs.one(folder / "a.png")
