"""A scene made from photographs of a real place, whose cameras were surveyed and are not used."""

from pathlib import Path

import cv2
import numpy as np
import pycolmap
import pytest

from protocols.builders.phototour.build import build

pytestmark = pytest.mark.data

BUILT = ["0002", "0004", "0006", "0007"]  # of entry-P10
HELD_BACK = ["0003", "0005"]  # from building
WIDTH, HEIGHT = 768, 512  # half of the photographs at hand, a quarter of what the cameras are for
HALF, FAR = 10, 8  # pixels: half a side of a patch, and how far from its place it is looked for


@pytest.fixture(scope="module")
def place(shared):
    return shared / "sfm" / "entry-P10"


@pytest.fixture(scope="module")
def report(place, tmp_path_factory):
    folder = tmp_path_factory.mktemp("entry")
    (folder / "images").mkdir()
    for name in BUILT:
        cv2.imwrite(str(folder / "images" / f"{name}.png"), photograph(place, name))
    return build(folder / "images", folder / "entry")


def photograph(place, name):
    image = cv2.imread(str(place / "images" / f"{name}.jpg"), cv2.IMREAD_GRAYSCALE)
    assert image.shape == (2 * HEIGHT, 2 * WIDTH)
    return cv2.resize(image, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA)


def surveyed(place, name):
    """3 x 4 matrix, and the centre, of a camera: K, zeros, camera-to-world rotation, centre."""
    lines = (place / "gt_dense_cameras" / f"{name}.jpg.camera").read_text().splitlines()
    rows = [np.array(line.split(), float) for line in lines]
    k, rotation, centre = np.diag([0.25, 0.25, 1]) @ rows[:3], np.array(rows[4:7]).T, rows[7]
    return k @ rotation @ np.c_[np.eye(3), -centre], centre


def fundamental(a, b):
    centre = np.linalg.svd(a)[2][-1]
    x, y, z = b @ centre
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]) @ b @ np.linalg.pinv(a)


def test_all_images_are_placed_and_patches_of_a_point_look_alike(report):
    assert report.registered == len(BUILT)
    assert report.tally.points > 500
    assert report.correlation["matches"] > 0.8
    assert report.correlation["non-matches"] < 0.3


def test_patches_of_a_point_lie_on_the_epipolar_lines_of_the_surveyed_cameras(place, report):
    cameras = [surveyed(place, name)[0] for name in BUILT]
    info, interest = (np.loadtxt(report.folder / f"{n}.txt") for n in ("info", "interest"))
    info = info.astype(int)
    places = np.c_[interest[:, 1:3] + 0.5, np.ones(len(info))]
    a = np.flatnonzero(info[1:, 0] == info[:-1, 0])
    errors = np.empty(len(a))
    for i, j in np.unique(np.stack([info[a, 1], info[a + 1, 1]], 1), axis=0).tolist():
        here = np.flatnonzero((info[a, 1] == i) & (info[a + 1, 1] == j))
        f = fundamental(cameras[i], cameras[j])
        x, y = places[a[here]], places[a[here] + 1]
        lines = x @ f.T, y @ f
        distance = np.abs((y * lines[0]).sum(1))
        errors[here] = np.mean([distance / np.hypot(n[:, 0], n[:, 1]) for n in lines], axis=0)
    assert np.median(errors) < 0.5  # pixels
    assert np.quantile(errors, 0.95) < 2


def test_points_lie_where_two_images_that_were_held_back_see_them(place, report):
    """Carried there by the surveyed cameras: patches look alike, and nowhere near more alike."""
    one, other = (photograph(place, name) for name in HELD_BACK)
    xyz = in_survey(place, report.folder / "colmap" / "sparse")
    a, b = (projected(surveyed(place, name)[0], xyz) for name in HELD_BACK)
    border = HALF + FAR
    seen = ((a > border) & (b > border)).all(1)
    seen &= ((a < [WIDTH - border, HEIGHT - border]) & (b < [WIDTH - border, HEIGHT - border])).all(
        1
    )
    a, b = a[seen], b[seen]
    assert len(a) > 400
    found = np.stack([likeness(one, p, other, q) for p, q in zip(a, b, strict=True)])
    moved = np.random.default_rng(0).permutation(b)
    wrong = np.stack([likeness(one, p, other, q) for p, q in zip(a, moved, strict=True)])
    assert found[:, FAR, FAR].mean() > 0.6
    assert abs(wrong[:, FAR, FAR].mean()) < 0.1
    assert np.median(off_px(found)) <= 1
    assert np.median(off_px(wrong)) > FAR / 2  # what chance gives


def in_survey(place, model):
    """The points of a model in the frame of the survey, by the similarity of the camera centres."""
    sparse = pycolmap.Reconstruction(model)
    images = sparse.images.values()
    x = np.array([image.projection_center() for image in images])
    y = np.array([surveyed(place, Path(image.name).stem)[1] for image in images])
    u, stretch, v = np.linalg.svd((y - y.mean(0)).T @ (x - x.mean(0)))
    sign = np.array([1, 1, np.linalg.det(u @ v)])
    rotation = (u * sign) @ v
    scale = (stretch * sign).sum() / ((x - x.mean(0)) ** 2).sum()

    def moved(points):
        return scale * (points - x.mean(0)) @ rotation.T + y.mean(0)

    assert np.linalg.norm(moved(x) - y, axis=1).max() < 0.05  # metres; up to 17 lie between them
    return moved(np.array([point.xyz for point in sparse.points3D.values()]))


def projected(camera, xyz):
    """Pixels, from the centre of the upper left one."""
    x = np.c_[xyz, np.ones(len(xyz))] @ camera.T
    return x[:, :2] / x[:, 2:] - 0.5


def likeness(one, p, other, q):
    """Correlation of the patch at p with those around q, by how far they lie from it."""
    patch, around = (
        cv2.getRectSubPix(image, (2 * half, 2 * half), tuple(map(float, at)))
        for image, half, at in ((one, HALF, p), (other, HALF + FAR, q))
    )
    return cv2.matchTemplate(around, patch, cv2.TM_CCOEFF_NORMED)


def off_px(likeness):
    best = likeness.reshape(len(likeness), -1).argmax(1)
    return np.hypot(*np.subtract(np.divmod(best, likeness.shape[1]), FAR))
