"""The headline's score of each scene."""

import pytest
from checkout import ROOT
from toy import measured

from harness.records import record as results
from harness.records.scenes import scene_scores

RECORDS = ROOT / "results/records"


def record(headline, scores, scenes):
    (one,) = measured("a")
    protocol = one.protocol.model_copy(update={"headline": headline})
    return one.model_copy(update={"protocol": protocol, "scores": scores, "scenes": scenes})


def test_a_scene_has_the_headline_itself():
    one = record("matching/map", {"a/map": 0.1}, {"a": {"matching/map": 0.7, "1/ap": 0.2}})
    assert scene_scores(one) == {"a": 0.7}


def test_or_a_score_of_the_record_is_of_the_scene():
    one = record("mean/fpr95", {"mean/fpr95": 0.2, "a/fpr95": 0.1}, {"a": {"fpr@95": 0.3}})
    assert scene_scores(one) == {"a": 0.1}


def test_or_map_is_the_mean_of_its_average_precisions():
    one = record("v/map", {"v/map": 0.2}, {"a": {"x/ap": 0.3, "y/ap": 0.5, "y/auc": 0.9}})
    assert scene_scores(one) == {"a": pytest.approx(0.4)}


def test_other_scenes_have_none():
    assert scene_scores(record("v/auc", {"v/auc": 0.2}, {"a": {"x/ap": 0.3}})) == {}
    assert scene_scores(record("v/map", {"v/map": 0.2}, {})) == {}


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("hpatches/matching/hpatches-mini/mini/sift.json", "matching/map"),
        ("oxford/oxford-six/all/frames=vlfeat_frames/sift.json", "map"),
        ("phototour/phototour-sfm/castle+entry+sceaux/sift.json", "mean/fpr95"),
        ("phototour/snn/phototour-sfm/castle+entry+sceaux/sift.json", "mean/snn-map"),
    ],
)
def test_where_the_headline_is_a_mean_over_scenes_it_is_the_mean_of_these(place, name):
    one = results.read(RECORDS / place)
    found = scene_scores(one)
    assert one.protocol.headline == name and found.keys() == one.scenes.keys()
    assert sum(found.values()) / len(found) == pytest.approx(one.scores[name])


def test_all_three_ways_agree_where_a_record_has_them():
    own = results.read(RECORDS / "hpatches/matching/hpatches-mini/mini/sift.json")
    without = {
        scene: {name: value for name, value in scores.items() if name.endswith("/ap")}
        for scene, scores in own.scenes.items()
    }
    by_precision = scene_scores(own.model_copy(update={"scenes": without}))
    assert by_precision == pytest.approx(scene_scores(own))
    oxford = results.read(RECORDS / "oxford/oxford/3000/sift.json")
    by_scores = scene_scores(oxford)
    scores = {"map": oxford.scores["map"]}
    assert scene_scores(oxford.model_copy(update={"scores": scores})) == pytest.approx(by_scores)
