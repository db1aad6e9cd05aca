"""What a descriptor declares is checked where it is made."""

import subprocess
import sys
from dataclasses import replace

import pytest
from toy import toy_descriptor

from harness.distances import L2


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("name", "", "name is ''; not a name"),
        ("name", 3, "name is 3; not a name"),
        ("name", "\ud800", r"name is '\\ud800'; not a name"),
        ("licence", None, "licence is None; not a text"),
        ("distance", replace(L2, name="l1"), r"distance is .*, none of l2, hamming, angle"),
        ("dim", 0, "dim is 0; an integer above 0"),
        ("dim", -5, "dim is -5"),
        ("dim", 8.0, r"dim is 8\.0"),
        ("dim", True, "dim is True"),
        ("weights", "v1.0", r"weights is 'v1\.0'; a sha256 is wanted"),
        ("weights", "A" * 64, "weights is 'A+'; a sha256 is wanted"),
        ("code", None, "code is None"),
        ("libraries", "numpy", "libraries is 'numpy'; a tuple"),
        ("libraries", ("",), "libraries is"),
        ("photographs", ("bee.jpg",), r"photographs is \('bee\.jpg',\); a tuple of"),
        ("photographs", "bee.jpg", r"photographs is 'bee\.jpg'; a tuple of"),
        ("trained_on", "liberty", "trained_on is 'liberty'; a frozenset of data names is wanted"),
        ("trained_on", "", "trained_on is ''; a frozenset"),
        ("trained_on", {"liberty"}, "trained_on is {'liberty'}; a frozenset"),
        ("trained_on", ["liberty"], r"trained_on is \['liberty'\]; a frozenset"),
        ("trained_on", frozenset({1}), r"trained_on is frozenset\(\{1\}\); a frozenset"),
        ("trained_on", frozenset({" "}), "trained_on is"),
        ("recipe", " ", "recipe is ' '; a text is wanted"),
        ("recipe", 1, "recipe is 1"),
        ("seed", -1, "seed is -1; an integer from 0 on"),
        ("seed", True, "seed is True"),
    ],
)
def test_a_descriptor_that_declares_nonsense_is_refused(field, value, message):
    made = toy_descriptor()
    object.__setattr__(made, field, value)  # tests check types of arguments before the class does
    with pytest.raises((TypeError, ValueError), match=f"^descriptor .*: {message}"):
        made.__post_init__()


def test_nonsense_in_a_plug_in_is_refused_by_eval(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from harness import Descriptor\nfrom harness.distances import L2\n"
        "def f():\n    return Descriptor('f', len, L2, 8, trained_on='liberty')\n"
    )
    command = [
        "-m",
        "harness",
        "eval",
        "--model",
        f"{file}:f",
        "--protocol",
        "hpatches",
    ]
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "mine.py:f can't be made: descriptor 'f': trained_on is 'libe" in done.stderr
