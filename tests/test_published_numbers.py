"""The committed numbers of papers: their arithmetic, their names, and their sources."""

import json
from collections import defaultdict
from decimal import ROUND_HALF_UP, Decimal

import pytest
from checkout import ROOT

from harness import data_names, registry
from harness.data import published_weights
from harness.records import published

NUMBERS = published.read(ROOT / "results/published")
SCENES = ("liberty", "notredame", "yosemite")
COUNTED = {"mean of three": 3, "mean of four": 4, "mean of six": 6, "mean/": 3}
NOISES = ("easy", "hard", "tough")


def half(text):
    """Half a unit of the last printed digit."""
    return Decimal(5).scaleb(Decimal(text).as_tuple().exponent - 1)


def by(*fields, of=NUMBERS):
    found = defaultdict(list)
    for one in of:
        found[tuple(getattr(one, field) for field in fields)].append(one)
    return found


ROWS = by("source", "method", "dim")


def cells_of(mean):
    """The scenes' numbers that a printed mean sums up."""
    name = mean.score.removeprefix("mean/")
    for words in COUNTED:
        name = name.removeprefix(f"{words} ")
    alike = [
        one
        for one in ROWS[mean.source, mean.method, mean.dim]
        if one.score in (name, f"{one.split}/{name}") and one.split in SCENES
    ]
    return (
        [one for one in alike if one.trained_on == mean.trained_on] if "/" in mean.score else alike
    )


MEANS = [one for one in NUMBERS if one.score.startswith(tuple(COUNTED))]


def test_the_numbers_are_as_many_as_the_tables_have_cells():
    assert {paper: len(found) for (paper,), found in by("paper").items()} == {
        "AdaSample v1": 264,
        "AdaSample v2": 189,
        "DOAP": 128,
        "ETH": 432,
        "HPatches": 7,
        "HPatches third party": 297,
        "HardNet": 54,
        "L2-Net": 185,
        "PhotoTour revisited": 68,
        "TFeat": 2,
        "mixed-context": 54,
    }


# ---- arithmetic


def test_a_printed_mean_is_that_of_its_cells_or_a_remark_says_what_that_is():
    without = set()
    for mean in MEANS:
        values = [Decimal(one.value) for one in cells_of(mean)]
        if not values:
            without.add((mean.paper, mean.method, mean.score))
            continue
        words = next(words for words in COUNTED if mean.score.startswith(words))
        assert len(values) == COUNTED[words], mean
        found = sum(values) / len(values)
        said = f"the mean of the cells is {found.quantize(Decimal('0.01'), ROUND_HALF_UP)}"
        agrees = abs(found - Decimal(mean.value)) <= half(mean.value)
        assert agrees is not (said in mean.remark), (mean, found)
    assert without == {  # means that are known without their cells
        ("HardNet", "MatchNet", "mean of six FDR95"),
        ("HardNet", "TFeat-M*", "mean of six FDR95"),
        ("HardNet", "HardNet_NIPS", "mean of six FDR95"),
        ("HardNet", "HardNet_NIPS", "mean of six fpr95"),
    }


def test_a_remark_on_the_mean_stands_beside_means_only():
    remarked = [one for one in NUMBERS if "the mean of the cells" in one.remark]
    assert remarked
    assert {one.score for one in remarked} <= {one.score for one in MEANS}


@pytest.mark.parametrize(
    ("mean", "parts", "count"),
    [
        ("matching/map", [f"matching/{noise}/all/map" for noise in NOISES], 28),
        (
            "verification/map",
            [f"verification/{noise}/{kind}/ap" for noise in NOISES for kind in ("inter", "intra")],
            27,
        ),
    ],
)
def test_the_means_of_hpatches_are_those_of_their_parts(mean, parts, count):
    checked = 0
    for row in by("source", "method", "split").values():
        found = {one.score: one for one in row}
        values = [found[part] for part in parts if part in found]
        if mean in found and values:
            assert len(values) == len(parts)
            rounded = max(half(one.value) for one in (*values, found[mean]))
            parted = sum(Decimal(one.value) for one in values) / len(parts)
            assert abs(parted - Decimal(found[mean].value)) <= 2 * rounded
            checked += 1
    assert checked == count


@pytest.mark.parametrize(
    ("name", "of", "where"),
    [
        ("track_length", "points", ["ETH", "AdaSample v1"]),
        ("observations_per_image", "registered", ["ETH"]),
    ],
)
def test_eth_s_ratios_are_those_of_its_counts(name, of, where):
    checked = 0
    for (paper, _, split), rows in by("paper", "method", "split").items():
        found = {one.score: one for one in rows if one.protocol == "eth"}
        if f"{split}/{name}" not in found or paper not in where:
            continue
        ratio, low, high = found[f"{split}/{name}"], *ends(found, split, of)
        unit = 2 * float(half(ratio.value))  # the tables cut digits off, or round
        agrees = low - unit <= ratio.number <= high + unit
        assert agrees is not ("observations over points is" in ratio.remark), (ratio, low, high)
        checked += 1
    assert checked == {"track_length": 79, "observations_per_image": 54}[name]


def ends(found, split, of):
    """The least and the largest ratio that the printed digits allow."""
    over, under = (range_of(found[f"{split}/{count}"]) for count in ("observations", of))
    return over[0] / under[1], over[1] / under[0]


def range_of(count):
    _, printed, thousands = count.remark.partition("printed as ")
    if not printed:
        return count.number, count.number
    assert Decimal(thousands.removesuffix("K")) * 1000 == Decimal(count.value)
    return count.number, count.number + 2000 * float(half(thousands.removesuffix("K")))


def test_relative_improvements_follow_from_the_means():
    checked = 0
    rows = by("source", "split", "trained_on", of=[n for n in NUMBERS if n.paper == "AdaSample v2"])
    for group in rows.values():
        found = {(one.method, one.score): one for one in group}
        scene = group[0].split
        if ("AdaSample+* over HardNet+*", "relative improvement") not in found:
            continue
        told = found["AdaSample+* over HardNet+*", "relative improvement"].number
        before, after = (
            found[method, f"{scene}/fpr95"].number for method in ("HardNet+*", "AdaSample+*")
        )
        unit = 5e-6  # half of the last digit of a mean, in percent
        low = 1 - (after + unit) / (before - unit)
        high = 1 - (after - unit) / (before + unit)
        assert low - 5e-5 <= told <= high + 5e-5
        checked += 1
    assert checked == 6


@pytest.mark.parametrize(
    ("fdr", "fpr", "agree"),
    [
        (("L2-Net", "MatchNet"), ("DOAP", "MatchNet"), 5),
        (("mixed-context", "T-Feat"), ("DOAP", "TFeat-M*"), 4),
    ],
)
def test_false_discovery_rates_give_the_re_estimated_false_positive_rates(fdr, fpr, agree):
    before, after = (
        {
            (one.trained_on, one.split): one.number
            for one in NUMBERS
            if (one.paper, one.method) == row and one.split in SCENES
        }
        for row in (fdr, fpr)
    )
    assert before.keys() == after.keys()
    found = [rate / (1 - rate) * 0.95 for rate in before.values()]
    close = [abs(a - b) < 1e-4 for a, b in zip(found, after.values(), strict=True)]
    assert close.count(True) == agree


def test_where_sources_disagree_both_stand():
    last = {
        one.paper: one.value
        for one in NUMBERS
        if one.method in ("DC-2ch2st+", "DeepCompare 2ch-2stream+")
        and (one.trained_on, one.split) == ("phototour/notredame", "yosemite")
    }
    assert last == {"DOAP": "8.39", "HardNet": "4.10", "L2-Net": "4.10"}


# ---- names


def test_models_are_of_the_zoo_or_published_weights():
    known = {"", *registry.names("descriptors"), *published_weights.known()}
    assert {model for one in NUMBERS for model in one.models} <= known
    trained_here = {card.stem for card in (ROOT / "zoo" / "weights").glob("*.json")}
    for one in NUMBERS:  # the published weights go before another training of the method
        ours = [model in trained_here for model in one.models]
        assert ours == sorted(ours), one


def test_protocols_and_options_are_known():
    assert {one.protocol for one in NUMBERS} <= {"", *registry.names("protocols")}
    assert {one.options for one in NUMBERS} == {"", "ties=official", "fpr95=tian"}


def test_training_data_are_known():
    names = data_names.known()
    for trained_on in {one.trained_on for one in NUMBERS} - {""}:
        for name in trained_on.split("+"):
            assert names.canonical(name) == name


def test_a_score_by_our_name_is_of_the_protocol_and_of_the_tested_part():
    for one in NUMBERS:
        first, ours, _ = one.score.partition("/")
        if ours:
            family, _, task = one.protocol.partition("/")
            parts = {"hpatches": [task], "romepatches": ["train", "test"]}
            assert family == one.data, one
            assert one.split, one
            assert first in parts.get(family, [one.split, "mean"]), one


def test_only_real_valued_rows_have_false_positive_rates_by_our_name():
    binary = [one for one in NUMBERS if one.protocol == "phototour" and "bin" in one.source.lower()]
    assert binary
    assert all("/" not in one.score for one in binary)


# ---- the source that is a file


@pytest.mark.data
def test_the_third_party_s_numbers_are_all_those_that_can_be_trusted(shared):
    told = json.loads((shared / "hpatches/third_party_results_summary.json").read_text())
    wanted = {}
    for key, found in told.items():
        method, task, split = key.rsplit("_", 2)
        if method == "DOAP-ST-Lib-256b":  # the matching of DOAP-Lib-256b again
            continue
        for noise in NOISES:
            if task == "matching":
                wanted[method, split, f"matching/{noise}/all/map"] = found["mAP"][noise[0]]
                wanted[method, split, "matching/map"] = found["mean"]
                continue
            for kind in ("inter", "intra"):
                ap = found[noise[0]][kind]["imbalanced"]["ap"]
                wanted[method, split, f"verification/{noise}/{kind}/ap"] = ap
    numbers = {
        (one.method, one.split, one.score): one.number
        for one in NUMBERS
        if one.paper == "HPatches third party" and one.score != "verification/map"
    }
    assert numbers == wanted
