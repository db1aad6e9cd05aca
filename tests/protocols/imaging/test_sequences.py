"""Image sequences: the forms that are read, and what is said of malformed ones."""

import cv2
import numpy as np
import pytest
from image_sequences import HEIGHT, VIEWS, WIDTH, turned, write_sequence

from protocols.imaging.fit import check, fit
from protocols.imaging.grey import read_grey
from protocols.imaging.headers import header
from protocols.imaging.sequences import find, if_lossy


def only(root):
    (sequence,), _ = find(root)
    return sequence


@pytest.mark.parametrize("image", ["{}.png", "img{}.png", "0{}.png", "img00{}.png"])
@pytest.mark.parametrize(
    "homography", ["H_1_{}", "H1to{}p", "H1to{}", "H_1_{}.txt", "H1to0{}p.txt"]
)
def test_images_and_homographies_have_the_names_that_people_give_them(tmp_path, image, homography):
    folder = write_sequence(tmp_path / "place", image=image, homography=homography)
    found = only(folder)
    assert [file.name for file in found.files] == [image.format(k) for k in (1, 2, 3)]
    assert [file.name for file in found.map_files] == [homography.format(k) for k in (2, 3)]
    for h, view in zip(found.from_first[1:], VIEWS, strict=True):
        assert h / h[2, 2] == pytest.approx(view / view[2, 2], abs=1e-9)


@pytest.mark.parametrize("images", [2, 3, 12])
def test_a_sequence_has_two_images_or_more(tmp_path, images):
    maps = [turned(k, 1, k, 0) for k in range(1, images)]
    found = only(write_sequence(tmp_path / "place", maps))
    assert len(found.files) == len(found.from_first) == len(found.shapes) == images
    assert [file.name for file in found.files][-1] == f"{images}.png"  # not in the order of texts


@pytest.mark.parametrize("ending", ["ppm", "pgm", "png", "bmp", "tif", "tiff", "PNG", "TIF"])
def test_lossless_images_of_any_format_have_the_same_pixels(tmp_path, ending):
    found = only(write_sequence(tmp_path / "place", image="{}." + ending))
    wanted = only(write_sequence(tmp_path / "other", image="{}.png"))
    assert found.pixels == wanted.pixels
    assert found.lossy == () and if_lossy([found]) == ""


@pytest.mark.parametrize("ending", ["jpg", "jpeg", "JPG"])
def test_one_lossy_image_is_enough_for_the_name(tmp_path, ending):
    names = ["{}.png", "{}." + ending, "{}.png"]
    found = only(write_sequence(tmp_path / "place", image=names))
    assert [file.name for file in found.lossy] == [f"2.{ending}"]
    assert if_lossy([found]) == "-lossy"
    assert fit(found).fault == ""


def test_a_jpeg_in_a_tiff_file_is_lossy(tmp_path):
    folder = write_sequence(tmp_path / "place", image="{}.tif")
    pixels = cv2.imread(str(folder / "3.tif"))
    jpeg = [cv2.IMWRITE_TIFF_COMPRESSION, cv2.IMWRITE_TIFF_COMPRESSION_JPEG]
    written = [*jpeg, cv2.IMWRITE_TIFF_ROWSPERSTRIP, 16]
    assert cv2.imwrite(str(folder / "3.tif"), pixels, written)
    assert header((folder / "3.tif").read_bytes()).lossy
    assert [file.name for file in only(folder).lossy] == ["3.tif"]


def test_content_decides_what_is_lossy_not_the_name(tmp_path):
    folder = write_sequence(tmp_path / "place", image="{}.jpg")
    (folder / "2.jpg").rename(folder / "2.png")
    assert [file.name for file in only(folder).lossy] == ["1.jpg", "2.png", "3.jpg"]


def test_of_an_image_that_is_there_twice_the_lossless_one_is_read(tmp_path):
    folder = write_sequence(tmp_path / "place")
    for k in (1, 2, 3):
        cv2.imwrite(str(folder / f"{k}.jpg"), read_grey(folder / f"{k}.png"))
    found = only(folder)
    assert {file.suffix for file in found.files} == {".png"} and found.lossy == ()


def test_other_files_beside_the_images_do_not_matter(tmp_path):
    folder = write_sequence(tmp_path / "place")
    for name in ("thumbnail.jpg", "img2.haraff", "H_1_1", "notes.txt", "4.txt"):
        (folder / name).write_bytes(b"x")
    assert len(only(folder).files) == 3


def gap(folder):
    (folder / "2.png").unlink()
    return r"has an image 3, but no image 2: .* number the images without a gap"


def far_number(folder):
    (folder / "20240131.jpg").write_bytes((folder / "1.png").read_bytes())
    return r"has an image 20240131, but no image 4"


def one_image(folder):
    for name in ("2.png", "3.png", "H_1_2", "H_1_3"):
        (folder / name).unlink()
    return r"place has only one image: a sequence is a folder with two images or more"


def no_homography(folder):
    (folder / "H_1_3").unlink()
    return r"H_1_3 is missing, and so is H1to3p: .* add the homography"


def last_image_missing(folder):
    (folder / "3.png").unlink()
    return r"H_1_3 is there, but .*place has no image 3: add the image, or take"


def two_homographies(folder):
    np.savetxt(folder / "H1to3p", np.eye(3))
    return r"H1to3p and .*H_1_3 are the same homography twice: remove one"


def two_images(folder):
    (folder / "img2.png").write_bytes((folder / "2.png").read_bytes())
    return r"2\.png and .*img2\.png are the same image twice: remove one"


def other_format(folder):
    (folder / "2.png").rename(folder / "2.webp")
    return r"has an image 3, but no image 2: .*may also be \.pgm, \.png, \.bmp, \.tif or \.jpg"


def damaged_jpeg(folder):
    data = cv2.imencode(".jpg", read_grey(folder / "2.png"))[1].tobytes()
    (folder / "2.png").unlink()
    (folder / "2.jpg").write_bytes(data[:-200])
    return r"2\.jpg can't be decoded, it is cut off"


@pytest.mark.parametrize(
    "spoil",
    [
        gap, far_number, one_image, no_homography, last_image_missing, two_homographies,
        two_images, other_format, damaged_jpeg,
    ],
)  # fmt: skip
def test_what_is_missing_or_there_twice_is_named(tmp_path, spoil):
    complaint = spoil(write_sequence(tmp_path / "place"))
    with pytest.raises(ValueError, match=complaint):
        find(tmp_path)


# ---- homographies that do not fit


def inverted(h):
    return np.linalg.inv(h)


def transposed(h):
    return h.T


@pytest.mark.parametrize(("images", "ending"), [(2, "jpg"), (3, "png")])
@pytest.mark.parametrize("mistake", [inverted, transposed])
def test_a_homography_in_the_wrong_direction_is_named_in_short_and_lossy_sequences(
    tmp_path, images, ending, mistake
):
    maps = [turned(9 + k, 0.9, 12, 9 - 3 * k, 4e-4) for k in range(1, images)]
    written = [mistake(h) for h in maps]
    write_sequence(tmp_path / "place", maps, written=written, image="{}." + ending)
    with pytest.raises(ValueError, match=f"fit(s)?( better)? when read {mistake.__name__}"):
        check([only(tmp_path / "place")])


@pytest.mark.parametrize("k", [1, 2])
def test_an_image_of_another_size_than_its_homography_is_named(tmp_path, k):
    folder = write_sequence(tmp_path / "place")
    small = cv2.resize(read_grey(folder / f"{k}.png"), (WIDTH * 3 // 5, HEIGHT * 3 // 5))
    cv2.imwrite(str(folder / f"{k}.png"), small)
    with pytest.raises(ValueError, match=rf"between images of the size of image .*{WIDTH} x"):
        check([only(folder)])


def test_images_of_a_sequence_may_differ_in_size(tmp_path):
    folder = write_sequence(tmp_path / "place")
    cropped = read_grey(folder / "3.png")[: HEIGHT - 9, : WIDTH - 14]
    cv2.imwrite(str(folder / "3.png"), cropped)
    found = only(folder)
    assert found.shapes[2] == (HEIGHT - 9, WIDTH - 14)
    assert fit(found).fault == "" == fit(found).doubt
