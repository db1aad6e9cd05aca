"""The registry of published sets, and how they are fetched, kept and verified."""

import hashlib
import itertools
import json
import os
import random
import signal
import struct
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from mirrors import closed_port, serving
from packed import gzipped, tarred, zipped

from harness.data import datasets, download
from harness.data.copies import Copy
from harness.data.datasets import Differences, PublishedSet, SetPart
from harness.data.fetch import WORK, fetch

FILES = {
    "info.txt": b"0 0\n0 0\n1 0\n",
    "patches0000.bmp": random.Random(0).randbytes(200_000),
    "m50/one.txt": b"0 0 0 1 0 0\n",
}
WRAPPED = {f"toy-release/{name}": body for name, body in FILES.items()}
NUMBERS = itertools.count()  # of modules: Python imports one of a name only once


@pytest.fixture
def mirror():
    with serving() as one:
        yield one


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The folder of all sets, empty."""
    monkeypatch.setenv("HARNESS_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(download, "PAUSE", 0.01)
    return tmp_path / "home"


@pytest.fixture
def installed(home, tmp_path, monkeypatch):
    """Installs a package that lists a set, as a third party would; the set's parts are given."""
    folder = tmp_path / "site"
    about = folder / "toysets-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toysets\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", str(folder))

    def install(*parts, name="toy/set", needs=("patches*.bmp", "info.txt"), **more):
        module = f"toysets_{next(NUMBERS)}"
        row = PublishedSet(
            name, "Toy", "https://example.org", parts, "CC0", "Nobody", {"toy": needs}, **more
        )
        (folder / f"{module}.py").write_text(
            "from harness.data.datasets import PublishedSet, SetPart\n"
            f"from harness.data.copies import Copy\nDATASETS = [{row!r}]\n"
        )
        (about / "entry_points.txt").write_text(f"[harness.datasets]\ntoy = {module}:DATASETS\n")
        return row

    return install


@pytest.fixture
def toy(installed, mirror):
    """One set of one zip archive with a known hash, on one mirror."""
    body = zipped(FILES.items())
    copy = Copy(mirror.give("toy.zip", body), known(body), len(body))
    return installed(SetPart((copy,)))


def known(body):
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def contents(folder):
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and file.name != datasets.LIST
    }


def left(home):
    """All that lies in the folder of sets, but locks."""
    return sorted(
        file.relative_to(home).as_posix()
        for file in home.rglob("*")
        if file.is_file() and file.suffix != ".lock"
    )


def refusal(name="toy/set", files=()):
    with pytest.raises((OSError, ValueError)) as refused:
        fetch(name, files)
    assert datasets.path(name) is None
    return str(refused.value)


# ---- fetch


@pytest.mark.parametrize(
    ("file", "pack"), [("toy.zip", zipped), ("toy.tar", tarred), ("toy.tgz", gzipped)]
)
def test_a_set_is_fetched_unpacked_and_found(installed, mirror, home, file, pack):
    installed(SetPart((Copy(mirror.give(file, pack(FILES.items()))),)))
    assert datasets.path("toy/set") is None
    assert fetch("toy/set") == home / "toy" / "set" == datasets.path("toy/set")
    assert contents(home / "toy" / "set") == FILES
    assert not any(name.startswith(WORK) for name in left(home))


def test_a_set_that_is_here_is_not_fetched_again(toy, mirror):
    place = fetch("toy/set")
    assert fetch("toy/set") == place
    assert len(mirror.asked) == 1


def test_a_set_put_there_by_hand_is_taken(toy, home):
    place = home / "toy" / "set"
    place.mkdir(parents=True)
    for name in ("patches0000.bmp", "info.txt"):
        (place / name).write_bytes(FILES[name])
    assert fetch("toy/set") == datasets.path("toy/set") == place


def test_a_folder_that_lacks_what_is_needed_is_no_set(toy, home, monkeypatch, capsys):
    (home / "toy" / "set").mkdir(parents=True)
    (home / "toy" / "set" / "info.txt").write_bytes(FILES["info.txt"])
    said = refusal()
    assert f"{home / 'toy' / 'set'} is there but lacks patches*.bmp: put that there" in said
    assert "move the folder away and run harness data fetch toy/set again" in said
    line = next(line for line in datasets.listing() if line.startswith("toy/set"))
    assert line.split()[1] == "incomplete"
    assert "  lacks     patches*.bmp" in list(datasets.about("toy/set"))


def test_a_home_that_can_not_be_made_is_named(toy, home, monkeypatch):
    home.write_text("no folder")
    with pytest.raises(OSError, match=r"can't be kept in .*home .*: set HARNESS_DATA_HOME"):
        fetch("toy/set")


def test_an_empty_folder_is_no_set_of_which_nothing_is_known_to_be_needed(installed, home):
    installed(SetPart((Copy("http://a.invalid/x.csv"),)), needs=())
    (home / "toy" / "set").mkdir(parents=True)
    assert "lacks x.csv" in refusal()


def test_files_for_a_set_that_is_here_are_refused(toy, tmp_path):
    place = fetch("toy/set")
    with pytest.raises(FileExistsError, match=f"toy/set is here already, in {place}"):
        fetch("toy/set", [tmp_path / "toy.zip"])


@pytest.mark.parametrize("wrapping", ["toy-release/", "home/someone/data/", "./x/__MACOSX/../"])
def test_a_folder_that_wraps_all_is_taken_off(installed, mirror, home, wrapping):
    wrapping = wrapping.replace("__MACOSX/../", "")
    members = [(wrapping + name, body) for name, body in FILES.items()]
    installed(SetPart((Copy(mirror.give("toy.zip", zipped([*members, ("__MACOSX/x", b"")]))),)))
    assert contents(fetch("toy/set")) == FILES
    assert datasets.verify("toy/set") == Differences()


def test_parts_come_together(installed, mirror):
    installed(
        SetPart((Copy(mirror.give("toy.zip", zipped(FILES.items()))),), into="patches"),
        SetPart((Copy(mirror.give("a.csv", b"1,2\n")),), into="tasks"),
        SetPart((Copy(mirror.give("b.csv", b"3,4\n")),), into="tasks"),
        needs=("patches/info.txt", "tasks/a.csv", "tasks/b.csv"),
    )
    wanted = {f"patches/{name}": body for name, body in FILES.items()}
    wanted |= {"tasks/a.csv": b"1,2\n", "tasks/b.csv": b"3,4\n"}
    assert contents(fetch("toy/set")) == wanted
    assert datasets.verify("toy/set") == Differences()


def test_parts_that_came_are_kept_when_another_does_not_come(installed, mirror, home):
    parts = [Copy(mirror.give("a.csv", b"1\n")), Copy(mirror.address + "/b.csv")]
    installed(*(SetPart((copy,)) for copy in parts), needs=("a.csv", "b.csv"))
    assert "b.csv: it answered 404" in refusal()
    assert not any("unpacked" in name for name in left(home))
    mirror.give("b.csv", b"2\n")
    assert contents(fetch("toy/set")) == {"a.csv": b"1\n", "b.csv": b"2\n"}
    assert mirror.ranges == [None, None, "bytes=2-", None]


def test_the_list_says_where_each_part_comes_from(toy, home):
    about = json.loads((fetch("toy/set") / datasets.LIST).read_text())
    (copy,) = toy.parts[0].copies
    assert about["parts"] == [
        {"file": "toy.zip", "url": copy.url, "sha256": copy.hash[7:], "known_by": copy.hash}
    ]


def mat(form=0x0100, order="<"):
    """A .mat file of two variables, as far as lengths go."""
    mark = {"<": b"IM", ">": b"MI"}[order]
    head = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack(f"{order}H", form) + mark
    return head + 2 * (struct.pack(f"{order}II", 14, 40) + bytes(40))


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("cut", [1, 40, 44, 95, 96, 100])
def test_a_cut_off_mat_file_of_unsaid_length_is_passed_over(installed, mirror, order, cut):
    whole = mat(order=order)
    first = Copy(mirror.give("cut/a.mat", whole[:-cut], length=False))
    installed(SetPart((first, Copy(mirror.give("a.mat", whole)))), needs=("a.mat",))
    assert contents(fetch("toy/set")) == {"a.mat": whole}
    assert len(mirror.asked) == 2


def test_what_is_no_mat_file_is_refused(installed, mirror, home):
    installed(SetPart((Copy(mirror.give("a.mat", b"sorry, moved" * 99)),)), needs=("a.mat",))
    assert "a.mat: it is not a .mat file" in refusal()
    assert left(home) == []


@pytest.mark.parametrize("body", [mat(0x0200), struct.pack("<5i2sd", 0, 1, 1, 0, 2, b"x", 1)])
def test_mat_files_of_other_forms_are_taken(installed, mirror, body):
    installed(SetPart((Copy(mirror.give("a.mat", body)),)), needs=("a.mat",))
    assert contents(fetch("toy/set")) == {"a.mat": body}


def test_a_mirror_with_endless_headers_is_passed_over(installed, mirror):
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 512
    endless = (info.tobuf(tarfile.GNU_FORMAT) + b"9 path=x\n".ljust(512, b"\0")) * 5000
    bad = Copy(mirror.give("bad/toy.tar", endless))
    installed(SetPart((bad, Copy(mirror.give("toy.tar", tarred(FILES.items()))))))
    assert contents(fetch("toy/set")) == FILES


def test_a_mirror_with_a_broken_archive_is_passed_over(installed, mirror):
    body = zipped(FILES.items())
    cut = Copy(mirror.give("cut/toy.zip", body[:-100]))
    page = Copy(mirror.give("page/toy.zip", b"<html>parked</html>", content_type="text/html"))
    installed(SetPart((cut, page, Copy(mirror.give("toy.zip", body)))))
    assert contents(fetch("toy/set")) == FILES


def link():
    info = tarfile.TarInfo("info.txt")
    info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
    return tarred([(info, b"")])


BAD = {
    "cut off": ("toy.zip", zipped(FILES.items())[:-100], "damaged or cut off"),
    "absolute": ("toy.tar", tarred([("/etc/cron.d/x", b"x")]), "leads out of its folder"),
    "upwards": ("toy.zip", zipped([("../../x", b"x")]), "leads out of its folder"),
    "link": ("toy.tar", link(), "is a link"),
    "bomb": ("toy.zip", zipped([("info.txt", bytes(99_000_000))]), "looks like a bomb"),
    "no archive": ("toy.zip", b"just text", "neither a zip"),
    "other set": ("toy.zip", zipped([("cats.jpg", b"x")]), "is another set (toy needs patches*"),
    "page": ("toy.zip", b"<!doctype html><p>Moved", "is a web page"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("by_hand", [False, True])
def test_a_bad_archive_is_refused_and_leaves_nothing(
    installed, mirror, home, tmp_path, case, by_hand
):
    file, body, told = BAD[case]
    installed(SetPart((Copy(mirror.give(file, body)),)))
    given = tmp_path / file
    given.write_bytes(body)
    assert told in refusal(files=[given] if by_hand else [])
    assert left(home) == []
    assert given.read_bytes() == body


def test_a_wrong_hash_is_refused_and_leaves_nothing(installed, mirror, home):
    body = zipped(FILES.items())
    installed(SetPart((Copy(mirror.give("toy.zip", body), "md5:" + "0" * 32),)))
    assert "its md5 is" in refusal()
    assert left(home) == []


def test_what_a_killed_process_left_is_cleared(toy, home):
    stale = home / WORK / "toy_set" / "unpacked"
    stale.mkdir(parents=True)
    (stale / "half.txt").write_text("half of it")
    assert contents(fetch("toy/set")) == FILES
    assert not any(name.startswith(WORK) for name in left(home))
    (home / WORK / "toy_set").mkdir(parents=True)  # of one killed after it moved the set
    (home / WORK / "toy_set.lock").touch()
    assert contents(fetch("toy/set")) == FILES
    assert not [*(home / WORK).iterdir()]


# ---- no network, and files brought by hand


def test_no_network_is_one_sentence_and_the_way_by_hand(installed):
    url = f"http://127.0.0.1:{closed_port()}/toy.zip"
    installed(SetPart((Copy(url), Copy("http://nobody.invalid/toy.zip"))))
    said = refusal()
    assert "\n" not in said
    assert said.startswith("toy/set: there seems to be no network")
    assert said.endswith(
        f"download {url} or http://nobody.invalid/toy.zip elsewhere and run:"
        " harness data fetch toy/set --from-file toy.zip"
    )


def test_the_way_by_hand_works(toy, mirror, tmp_path, home):
    file = tmp_path / "toy.zip"
    file.write_bytes(mirror.files.pop("toy.zip").body)
    assert "--from-file toy.zip" in refusal()
    assert contents(fetch("toy/set", [file])) == FILES
    assert file.is_file()
    assert json.loads((home / "toy/set" / datasets.LIST).read_text())["parts"][0]["url"] == ""


def test_a_file_under_another_name_is_known_by_its_hash(toy, mirror, tmp_path):
    file = tmp_path / "toy (1).zip"
    file.write_bytes(mirror.files["toy.zip"].body)
    assert contents(fetch("toy/set", [file])) == FILES
    assert mirror.asked == []


def test_another_file_is_refused(toy, mirror, tmp_path, home):
    file = tmp_path / "toy.zip"
    file.write_bytes(zipped([("info.txt", b"x")]))
    assert "is refused: it was cut off" in refusal(files=[file])
    assert left(home) == []


def test_a_copy_packed_anew_is_taken_where_one_is_listed_and_says_so(installed, tmp_path, caplog):
    published = Copy("http://a.invalid/toy.zip", "md5:" + "0" * 32)
    again = Copy("http://b.invalid/toy.zip")
    installed(SetPart((published, again)))
    file = tmp_path / "toy.zip"
    file.write_bytes(zipped(WRAPPED.items()))
    assert contents(fetch("toy/set", [file])) == FILES
    assert "is accepted as http://b.invalid/toy.zip" in caplog.text


def test_a_folder_of_files_may_be_brought(installed, tmp_path):
    copies = [Copy(f"http://a.invalid/{name}") for name in ("a.csv", "b.csv")]
    installed(*(SetPart((copy,)) for copy in copies), needs=("a.csv", "b.csv"))
    for name in ("a.csv", "b.csv", "unrelated.txt"):
        (tmp_path / name).write_text(name)
    assert sorted(contents(fetch("toy/set", [tmp_path]))) == ["a.csv", "b.csv"]


def test_what_is_not_brought_is_downloaded(installed, mirror, tmp_path):
    copies = [Copy(mirror.give(name, b"far")) for name in ("a.csv", "b.csv")]
    installed(*(SetPart((copy,)) for copy in copies), needs=("a.csv", "b.csv"))
    (tmp_path / "a.csv").write_bytes(b"near")
    found = contents(fetch("toy/set", [tmp_path / "a.csv"]))
    assert found == {"a.csv": b"near", "b.csv": b"far"}


def test_files_that_are_no_part_are_named(toy, tmp_path):
    assert "no file " in refusal(files=[tmp_path / "missing.zip"])
    assert "what is wanted: toy.zip" in refusal(files=[tmp_path])
    (tmp_path / "toy.zip").write_bytes(b"x")
    (tmp_path / "more.zip").write_bytes(b"x")
    assert "what is wanted: toy.zip" in refusal(files=[tmp_path / "toy.zip", tmp_path / "more.zip"])


# ---- two processes at once


def command(*arguments):
    code = "from harness.commands.main import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_two_processes_at_once_fetch_it_once(toy, mirror, home):
    mirror.files["toy.zip"].pause = 0.15
    both = [command("data", "fetch", "toy/set") for _ in range(2)]
    ended = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], ended
    assert [out.strip() for out, _ in ended] == [str(home / "toy" / "set")] * 2
    assert "another process is fetching toy/set: waiting for it" in ended[0][1] + ended[1][1]
    assert len(mirror.asked) == 1
    assert contents(home / "toy" / "set") == FILES


def test_a_killed_process_leaves_a_beginning_that_the_next_goes_on_with(toy, mirror, home):
    mirror.files["toy.zip"].pause = 0.3
    process = command("data", "fetch", "toy/set")
    part = home / WORK / "toy_set"
    deadline = time.monotonic() + 60
    while not any(file.stat().st_size for file in part.glob("*.part")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert datasets.path("toy/set") is None
    mirror.files["toy.zip"].pause = 0
    assert contents(fetch("toy/set")) == FILES
    assert mirror.ranges[-1].startswith("bytes=")


# ---- verify


def test_what_was_fetched_verifies(toy):
    fetch("toy/set")
    found = datasets.verify("toy/set")
    assert not found
    assert found.files == len(FILES)


def test_what_differs_is_named(toy):
    place = fetch("toy/set")
    (place / "info.txt").unlink()
    spoilt = bytearray(FILES["patches0000.bmp"])
    spoilt[1000] ^= 1
    (place / "patches0000.bmp").write_bytes(spoilt)
    (place / "m50" / "two.txt").write_text("mine")
    (place / "dead link").symlink_to("nowhere")
    assert datasets.verify("toy/set") == Differences(
        missing=("info.txt",), changed=("patches0000.bmp",), extra=("dead link", "m50/two.txt")
    )


def test_a_link_in_place_of_a_file_is_a_change(toy):
    place = fetch("toy/set")
    (place / "info.txt").unlink()
    (place / "info.txt").symlink_to("nowhere")
    assert datasets.verify("toy/set").changed == ("info.txt",)


def test_what_can_not_be_verified_says_why(toy, home):
    with pytest.raises(FileNotFoundError, match="is not here: harness data fetch toy/set"):
        datasets.verify("toy/set")
    place = fetch("toy/set")
    (place / datasets.LIST).write_text("{")
    with pytest.raises(ValueError, match="is damaged"):
        datasets.verify("toy/set")
    (place / datasets.LIST).unlink()
    with pytest.raises(FileNotFoundError, match="not put there by `harness data fetch`"):
        datasets.verify("toy/set")


# ---- published sizes

SIZES = {"info.txt": (1, len(FILES["info.txt"])), "patches*.bmp": (1, 200_000), "m50/*": (1, 12)}


def packed(**changed):
    """An archive of the toy set; by the stems of their names, some files are others."""
    stems = {name.partition(".")[0]: name for name in (*FILES, "patches0001.bmp")}
    return zipped((FILES | {stems[stem]: body for stem, body in changed.items()}).items())


def test_a_mirror_of_no_known_hash_is_known_by_the_sizes_of_its_files(installed, mirror, home):
    bad = mirror.give("bad/toy.zip", packed(info=b"0 0"))
    good = mirror.give("good/toy.zip", packed())
    installed(SetPart((Copy(bad), Copy(good))), sizes=SIZES)
    place = fetch("toy/set")
    assert contents(place) == FILES
    assert json.loads((place / datasets.LIST).read_text())["parts"][0]["url"] == good


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"info": b"0 0"}, "info.txt has 3 bytes, 12 are published"),
        ({"patches0000": b"short"}, "patches0000.bmp has 5 bytes, 200000 are published"),
        ({"patches0001": b"more"}, "files patches*.bmp: 2, 1 are published"),
    ],
)
def test_files_of_other_sizes_than_the_published_ones_are_refused(
    installed, mirror, home, tmp_path, changed, told
):
    body = packed(**changed)
    installed(SetPart((Copy(mirror.give("toy.zip", body)),)), sizes=SIZES)
    said = refusal()
    assert f"it is not the published set: {told}" in said
    (tmp_path / "toy.zip").write_bytes(body)
    assert told in refusal(files=[tmp_path / "toy.zip"])
    assert not (home / "toy").exists()


def test_a_file_that_no_protocol_reads_may_be_missing_and_is_named(installed, mirror, home, caplog):
    body = zipped((name, b) for name, b in FILES.items() if name != "m50/one.txt")
    installed(SetPart((Copy(mirror.give("toy.zip", body)),)), sizes=SIZES)
    place = fetch("toy/set")
    assert "toy/set: files m50/*: 0, 1 are published; no protocol reads it" in caplog.text
    assert datasets.verify("toy/set").unlike == ("files m50/*: 0, 1 are published",)
    assert contents(place).keys() == {"info.txt", "patches0000.bmp"}


def test_verify_compares_sizes_with_the_published_ones(installed, mirror, home, run):
    installed(SetPart((Copy(mirror.give("toy.zip", zipped(FILES.items()))),)), sizes=SIZES)
    place = fetch("toy/set")
    assert not datasets.verify("toy/set")
    (place / "patches0001.bmp").write_bytes(b"of another scene")
    code, out, _ = run("data", "verify", "toy/set")
    assert code == 1
    assert "unlike   files patches*.bmp: 2, 1 are published\n" in out


def test_a_set_put_there_by_hand_is_told_how_it_differs(installed, home, caplog):
    installed(SetPart((Copy("https://example.org/toy.zip"),)), sizes=SIZES)
    place = home / "toy" / "set"
    place.mkdir(parents=True)
    for name in ("patches0000.bmp", "info.txt"):
        (place / name).write_bytes(FILES[name] * 2)
    assert fetch("toy/set") == place
    assert "info.txt has 24 bytes, 12 are published" in caplog.text
    with pytest.raises(FileNotFoundError, match=r"by `harness data fetch`.*info.txt has 24 bytes"):
        datasets.verify("toy/set")


def test_a_refusal_says_where_people_found_a_set(installed, mirror, home):
    hint = "people found it at https://example.org/elsewhere: it must hold info.txt"
    installed(SetPart((Copy(f"http://127.0.0.1:{closed_port()}/toy.zip"),)), by_hand=hint)
    assert refusal().endswith(f"--from-file toy.zip; {hint}")
    assert f"  by hand   {hint}" in list(datasets.about("toy/set"))


def test_the_refusal_of_hpatches_names_both_places_and_what_must_be_there():
    (row,) = [row for row in published() if row.name == "hpatches/patches"]
    for part in ("aistudio.baidu.com/datasetdetail/107865", "javidtheimmortal/hpatches", "116"):
        assert part in row.by_hand


@pytest.mark.data
def test_sizes_of_phototour_are_those_that_were_listed(shared):
    listed = json.loads((shared / "reference/phototour_file_sizes.json").read_text())
    rows = {row.name: row for row in published()}
    for scene, known in listed.items():
        sizes = dict(rows[f"phototour/{scene}"].sizes)
        assert sizes.pop("patches*.bmp") == (known.pop("tiles"), known.pop("bytes of a tile"))
        assert sizes == {name: (1, size) for name, size in known.items()}


# ---- names


def test_a_family_stands_for_its_sets(toy, home):
    assert datasets.path("toy") is None
    fetch("toy/set")
    assert datasets.path("toy") == home / "toy"
    assert [row.name for row in datasets.named("oxford")][:2] == ["oxford/bark", "oxford/bikes"]


def test_several_sets_are_not_fetched_as_one(home):
    with pytest.raises(LookupError, match="oxford is several data sets, name one: oxford/bark"):
        fetch("oxford")


def test_an_unknown_name_is_answered_with_the_nearest(home):
    with pytest.raises(LookupError, match="did you mean 'phototour/liberty'"):
        datasets.path("phototour/libery")
    with pytest.raises(LookupError, match=r"no dataset named '\.\./\.\./etc'"):
        fetch("../../etc")


def test_two_packages_may_not_list_one_set_differently(installed):
    installed(SetPart((Copy("http://a.invalid/x.zip"),)), name="phototour/liberty")
    with pytest.raises(LookupError, match="'phototour/liberty' is listed twice"):
        datasets.known()


def test_a_broken_package_does_not_hide_the_sets_of_others(installed, tmp_path, caplog):
    installed(SetPart((Copy("http://a.invalid/x.zip"),)))
    (module,) = (tmp_path / "site").glob("*.py")
    module.write_text("1 / 0")
    assert "phototour/liberty" in datasets.known()
    assert "ZeroDivisionError" in caplog.text


def test_without_a_given_home_sets_are_in_the_cache(monkeypatch):
    monkeypatch.delenv("HARNESS_DATA_HOME", raising=False)
    assert datasets.root() == Path(os.environ["HARNESS_CACHE"]) / "datasets"


# ---- the published sets


def published():
    from protocols.mirrors import DATASETS

    return DATASETS


def test_every_official_set_is_listed():
    names = {row.name for row in published()}
    scenes = ["liberty", "notredame", "yosemite"]
    assert {f"phototour/{scene}{end}" for scene in scenes for end in ("", "_harris")} <= names
    assert {"hpatches/patches", "hpatches/sequences", "hpatches/tasks", "romepatches"} <= names
    oxford = "bark bikes boat graf leuven trees ubc wall"
    assert {f"oxford/{sequence}" for sequence in oxford.split()} <= names
    eth = (
        "fountain herzjesu south-building madrid-metropolis gendarmenmarkt tower-of-london alamo"
        " roman-forum cornell vocabulary-tree"
    )
    assert {f"eth/{scene}" for scene in eth.split()} <= names
    assert set(datasets.known()) == names


@pytest.mark.parametrize("row", published(), ids=lambda row: row.name)
def test_a_row_is_well_formed(row):
    lengths = {"md5": 32, "sha256": 64, "git": 40}
    assert row.title and row.licence and row.citation
    assert row.page.startswith(("http://", "https://"))
    shared = [part.into for part in row.parts if part.packed]
    assert len(row.parts) == 1 or ("" not in shared and len(set(shared)) == len(shared))
    kept = [(part.into, part.copies[0].file) for part in row.parts if not part.packed]
    assert len(set(kept)) == len(kept)
    for part in row.parts:
        assert len({copy.file.endswith((".zip", ".tar", "gz")) for copy in part.copies}) == 1
        assert not row.sizes or (len(row.parts) == 1 and part.packed)
        for copy in part.copies:
            assert copy.url.startswith(("http://", "https://"))
            assert copy.file
            if copy.hash:
                kind, _, value = copy.hash.partition(":")
                assert len(value) == lengths[kind]
                int(value, 16)


def test_a_set_that_one_protocol_needs_is_needed_by_that_protocol():
    families = {who for row in published() for who in row.needs}
    assert families == {
        "phototour", "hpatches", "hpatches-sequences", "data build hpatches", "romepatches",
        "oxford", "eth",
    }  # fmt: skip


# ---- the command line


def test_the_commands_fetch_find_and_verify(toy, home, run):
    place = home / "toy" / "set"
    code, out, _ = run("data", "list")
    assert code == 0
    assert next(line for line in out.splitlines() if line.startswith("toy/set")).split()[1] == "not"
    assert run("data", "path", "toy/set")[0] == 2
    assert run("data", "fetch", "toy")[:2] == (0, f"{place}\n")
    assert run("data", "path", "toy/set")[:2] == (0, f"{place}\n")
    code, out, _ = run("data", "verify", "toy/set")
    assert (code, out) == (0, "3 files of toy/set: all as they were fetched\n")
    (place / "info.txt").unlink()
    code, out, _ = run("data", "verify", "toy/set")
    assert (code, out) == (1, "missing  info.txt\n2 files of toy/set: they differ\n")


def test_all_facts_of_a_set_are_shown(run, home):
    _, out, _ = run("data", "list", "phototour/liberty")
    for fact in ("md5:fdd9152f138ea5ef2091746689176414", "licence", "Brown, Hua", "interest.txt"):
        assert fact in out


def test_an_error_is_told_on_stderr_and_exits_2(installed, monkeypatch, run):
    installed(SetPart((Copy(f"http://127.0.0.1:{closed_port()}/toy.zip"),)))
    code, out, err = run("data", "fetch", "toy/set")
    assert (code, out) == (2, "")
    assert err.startswith("harness: toy/set: there seems to be no network")
    assert err.count("\n") == 1
