"""The citation of the program says what the package says of itself."""

import tomllib

import yaml
from checkout import ROOT


def test_the_citation_names_the_version_and_the_licence_of_the_package():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert cited["version"] == project["version"]
    assert cited["license"] == project["license"]
    assert cited["title"].startswith(f"{project['name']}: ")
