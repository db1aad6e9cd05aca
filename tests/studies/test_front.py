"""The front of accuracy, speed and bytes."""

from studies import front
from studies.front import JUDGED, Model


def model(name, accuracy, speed, size):
    return Model(name, {JUDGED: accuracy}, size, {1: speed})


def test_a_model_of_the_front_is_beaten_by_no_other():
    known = [
        model("accurate", 0.9, 10, 512),
        model("quick", 0.5, 900, 512),
        model("small", 0.4, 10, 16),
        model("worse", 0.4, 10, 512),
        model("equal", 0.9, 10, 512),
    ]
    assert front.front(known) == {"accurate", "quick", "small", "equal"}


def test_the_page_leaves_a_cell_empty_that_was_not_measured():
    lines = [*front.page([model("a|b", 0.5, 1000, 32)], "one")]
    assert r"| **a\|b** | 32 | 1,000 | | 50.0 | | | |" in lines


def test_the_picture_has_the_same_bytes_each_time(tmp_path):
    known = [model("a", 0.9, 10, 512), model("<b>", 0.4, 900, 16)]
    for name in ("one.svg", "two.svg"):
        front.draw(known, tmp_path / name)
    text = (tmp_path / "one.svg").read_text()
    assert text == (tmp_path / "two.svg").read_text() and "&lt;b&gt;" in text
