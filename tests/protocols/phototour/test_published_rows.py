"""Published numbers below the table of training and test scenes."""

from published_files import number
from toy import toy_dataset, toy_descriptor

from harness import Protocol, Scores
from harness.evaluation import evaluate
from harness.records import leaderboard
from protocols.phototour import cross_scene

SCENES = ("liberty", "notredame", "yosemite")
ALL = "+".join(SCENES)
SIX = [
    ("notredame", "liberty", "1.54"), ("yosemite", "liberty", "2.62"),
    ("liberty", "notredame", "0.43"), ("yosemite", "notredame", "0.87"),
    ("liberty", "yosemite", "2.00"), ("notredame", "yosemite", "1.21"),
]  # fmt: skip


def measured(name, *trained):
    """A record by PhotoTour's names: FPR95 is 10 % on every scene."""
    protocol = Protocol(
        "phototour",
        1,
        toy_dataset(name="phototour", split=ALL),
        lambda described: Scores({f"{scene}/fpr95": 0.1 for scene in (*SCENES, "mean")}),
        "mean/fpr95",
        cells={scene: frozenset({f"phototour/{scene}"}) for scene in SCENES},
    )
    sources = frozenset(f"phototour/{scene}" for scene in trained)
    (record,) = evaluate(toy_descriptor(name, trained_on=sources), [protocol])
    return record


def printed(score, value, split, **change):
    task = {"protocol": "phototour", "data": "phototour", "paper": "DOAP", "model": ""}
    return number(**(task | {"score": score, "value": value, "split": split} | change))


def six(method="DOAP+", model=lambda train: "", mean="1.45", **change):
    cells = [
        printed(f"{test}/fpr95", value, test, trained_on=f"phototour/{train}", method=method,
                model=model(train), **change)
        for train, test, value in SIX
    ]  # fmt: skip
    return [*cells, printed("mean of six fpr95", mean, ALL, method=method, **change)]


def three(method="SIFT", **change):
    values = zip((*SCENES, "mean"), ("29.84", "22.53", "27.29", "26.55"), strict=True)
    return [
        printed(f"{scene}/fpr95", value, ALL if scene == "mean" else scene, method=method, **change)
        for scene, value in values
    ]


def page(numbers, *records):
    board = leaderboard.board(("phototour", "phototour", ALL), records, numbers)
    return cross_scene.to_markdown(board, cross_scene.tables(board))


def test_a_published_method_has_one_row_in_the_papers_order():
    text = page(six(), measured("sift"))
    assert (
        "| train → test | dim | notredame → liberty | yosemite → liberty | liberty → notredame |"
        " yosemite → notredame | liberty → yosemite | notredame → yosemite | mean | here |" in text
    )
    row = "| DOAP+ | 8 | 1.54 | 2.62 | 0.43 | 0.87 | 2.00 | 1.21 | 1.45 | | DOAP, Table 1 | |"
    assert text.count(row) == 1


def test_a_published_method_that_learned_no_scene_has_three_cells():
    text = page(three(model="sift", remark="by VLFeat"), measured("sift"))
    row = (
        "| SIFT | 8 | — | 29.84 (-19.84) | 22.53 (-12.53) | 27.29 (-17.29) | 26.55 (-16.55) |"
        " sift | DOAP, Table 1 | by VLFeat |"
    )
    assert row in text
    other = page(three("L2-Net", trained_on="hpatches"), measured("sift"))
    assert "| L2-Net | 8 | hpatches | 29.84 | 22.53 | 27.29 | 26.55 | |" in other


def test_each_cell_is_compared_with_the_model_of_its_training_scene():
    numbers = six("TFeat-M*", lambda train: f"tfeat.{train}")
    text = page(numbers, measured("tfeat.liberty", "liberty"))
    row = "| 1.54 | 2.62 | 0.43 (+9.57) | 0.87 | 2.00 (+8.00) | 1.21 | 1.45 | tfeat.liberty |"
    assert rf"| TFeat-M\* | 8 {row}" in text


def test_numbers_of_another_definition_or_option_stay_out():
    fdr = [printed("FDR95", "7.74", "liberty", method="MatchNet", trained_on="phototour/notredame")]
    assert "Published" not in page(fdr, measured("sift"))
    assert "Published" not in page(six(options="fpr95=tian"), measured("sift"))


def test_published_numbers_stand_once_and_not_among_the_measured():
    records = [measured("far.rome", "rome"), measured("net.liberty", "liberty"), measured("sift")]
    text = page([*six(), *three()], *records)
    assert text.count("### Published, on the same data") == 1
    assert text.count("| DOAP+ | 8 |") == text.count("| SIFT | 8 |") == 1
    board = leaderboard.board(("phototour", "phototour", ALL), records, six())
    plain = leaderboard.board(("phototour", "phototour", ALL), records)
    assert cross_scene.tables(board) == cross_scene.tables(plain)
