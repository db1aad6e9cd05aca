"""The text of KEY=VALUE becomes a value of the option's type, or is refused."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import pytest
from annotated_types import Ge

from harness import settings


def maker(
    images,
    *,
    flag: bool = False,
    count: int = 3,
    limit: int | None = 5,
    share: float = 0.5,
    model: Path | None = None,
    name: str | None = None,
    ties: Literal["mean", "official"] = "mean",
    noted: Annotated[int, "pixels"] = 1,
    progress: Callable[[int], None] | None = None,
    sizes: tuple[int, ...] = (),
    names: list[str] | None = None,
    bounded: Annotated[float, Ge(0)] = 1.0,
    plain=None,
): ...


def postponed(*, count: "int" = 3): ...


def accepted(*typed, of=maker):
    return settings.accepted(of, settings.options(settings=typed), "maker")


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("flag=true", True),
        ("flag=False", False),
        ("count=-12", -12),
        ("limit=7", 7),
        ("limit=none", None),
        ("share=1e-3", 1e-3),
        ("share=1", 1.0),
        ("model=a/b", Path("a/b")),
        ("name=2024", "2024"),
        ("name=true", "true"),
        ("name=none", "none"),
        ("name='a b'", "a b"),
        ("name=[1", "[1"),
        ("name=1979-05-27 07:32:00", "1979-05-27 07:32:00"),
        ("count=1_000", 1000),
        ("count=007", 7),
        ("share=.5", 0.5),
        ("share=inf", float("inf")),
        ("model=none", Path("none")),
        ("sizes=[1, 2]", (1, 2)),
        ("names=['a', 'b']", ["a", "b"]),
        ("names=none", None),
        ("bounded=0", 0.0),
        ("name=a=b", "a=b"),
        ("name=", ""),
        ("ties=official", "official"),
        ("noted=4", 4),
        ("plain=5", "5"),
    ],
)
def test_text_becomes_what_the_annotation_asks_for(typed, value):
    found = accepted(typed)[typed.partition("=")[0]]
    assert (found, type(found)) == (value, type(value))


def test_annotations_may_be_postponed():
    assert accepted("count=4", of=postponed) == {"count": 4}


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("flag=1", "maker: flag is '1'; it should be true or false"),
        ("flag=yes", "true or false"),
        ("count=2.0", "count is '2.0'; it should be an integer"),
        ("count=true", "it should be an integer"),
        ('count="3"', "it should be an integer"),
        ('limit="none"', "it should be an integer or none"),
        ("limit=many", "it should be an integer or none"),
        ("share=half", "it should be a number"),
        ("ties=luck", "it should be 'mean' or 'official'"),
        ("progress=1", "it should be a Python function or none"),
        ("sizes=[1, a]", "sizes is"),
        ("sizes=[1.5]", "it should be an integer"),
        ("names=1", "it should be a list or none"),
        ("bounded=-1", "it should be greater than or equal to 0"),
    ],
)
def test_other_text_is_refused_with_what_is_wanted(typed, wanted):
    with pytest.raises(ValueError, match=wanted):
        accepted(typed)


def test_a_value_that_is_no_text_must_have_the_type_of_its_option():
    root = Path("a")
    assert settings.accepted(maker, {"model": root, "flag": True}, "maker") == {
        "model": root,
        "flag": True,
    }
    assert settings.accepted(maker, {"model": "a"}, "maker") == {"model": root}
    with pytest.raises(ValueError, match="flag is 1; it should be true or false"):
        settings.accepted(maker, {"flag": 1}, "maker")


@pytest.mark.parametrize("typed", ["flag", "=true"])
def test_a_setting_without_key_or_value_is_refused(typed):
    with pytest.raises(ValueError, match=f"--set {typed} is not KEY=VALUE"):
        accepted(typed)


@pytest.mark.parametrize("typed", ["cuont=3", "images=x"])
def test_an_unknown_option_is_answered_with_a_known_one(typed):
    with pytest.raises(LookupError, match="maker: no option named"):
        accepted(typed)


def test_a_dash_in_a_key_is_an_underscore():
    assert settings.options(settings=["max-patches=80"]) == {"max_patches": "80"}


@pytest.mark.parametrize("typed", ["allow_partial=true", "allow-partial=true"])
def test_a_key_that_has_an_option_of_its_own_is_pointed_there(typed):
    with pytest.raises(ValueError, match=f"--set {typed}: use --allow-partial"):
        settings.options(allow_partial=None, settings=[typed])


@dataclass(frozen=True, kw_only=True)
class Noise:
    blur: float = 1.0
    grain: int = 2

    def __post_init__(self):
        if self.blur > 9:
            raise ValueError("blur is too strong")


def noisy(*, count: int = 3, noise: Noise = Noise()): ...


def test_an_option_that_is_a_dataclass_is_given_by_its_fields():
    assert accepted("blur=0.5", "count=4", of=noisy) == {"count": 4, "noise": Noise(blur=0.5)}
    assert accepted("count=4", of=noisy) == {"count": 4}
    noise = Noise(blur=2.0)
    assert settings.accepted(noisy, {"noise": noise}, "maker") == {"noise": noise}


@pytest.mark.parametrize(
    ("typed", "error", "message"),
    [
        ("grain=a", ValueError, "maker: grain is 'a'; it should be an integer"),
        ("noise=1", ValueError, "noise is '1'; it should be an instance of Noise"),
        ("blurr=1", LookupError, "did you mean 'blur'"),
        ("blur=10", ValueError, "blur is too strong"),
    ],
)
def test_a_field_of_a_dataclass_is_checked_as_an_option(typed, error, message):
    with pytest.raises(error, match=message):
        accepted(typed, of=noisy)


def reading(
    *,
    data: Path | None = None,
    pairs: str | Path | None = None,
    ap: str = "step",
    count: int = 3,
    noise: Noise = Noise(),
): ...


def test_paths_become_absolute_and_nothing_else_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("mine.txt", "step"):
        (tmp_path / name).touch()
    typed = ["data=new", "pairs=mine.txt", "ap=step", "count=4", "blur=2"]
    given = settings.options(settings=typed)
    wanted = given | {"data": tmp_path / "new", "pairs": tmp_path / "mine.txt"}
    assert settings.absolute(reading, given, "maker") == wanted
    assert settings.absolute(reading, {"pairs": "mine.txt"}, "maker") == {
        "pairs": tmp_path / "mine.txt"
    }
    words = settings.options(settings=["pairs=retrieval"])  # no file has this name
    assert settings.absolute(reading, words, "maker") == words
