"""The store of weights: what it takes, what it refuses and why, and downloads by real sockets."""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import mirrors
import pytest
import torch
from mirrors import Mirror
from safetensors.torch import save_file

from harness.data import download, published_weights, weights
from harness.data.weights import Weights

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 2400533\n"
PAGE = b"<!DOCTYPE html>\n<html><body>Sign in</body></html>"


class Malicious:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("this-code-has-run",)


@pytest.fixture(autouse=True)
def empty_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HARNESS_WEIGHTS", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    file = tmp_path / "net.pth"
    torch.save({"layer.weight": torch.arange(6.0).reshape(2, 3)}, file)
    return file


@pytest.fixture
def row(checkpoint: Path) -> Weights:
    return row_of(checkpoint)


def row_of(file: Path, *urls: str) -> Weights:
    return Weights(
        name="net.a",
        file=file.name,
        sha256=hashlib.sha256(file.read_bytes()).hexdigest(),
        size=file.stat().st_size,
        urls=urls or ("https://example.org/net.pth",),
        licence="MIT",
        trained_on=frozenset({"phototour/liberty"}),
        published_in="someone/net@0123456",
    )


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch) -> Iterator[Mirror]:
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(download, "PAUSE", 0)
    with mirrors.serving() as server:
        yield server


def row_by_git(file: Path, **changed: object) -> Weights:
    blob = b"blob %d\0" % file.stat().st_size + file.read_bytes()
    known = {"sha256": "", "size": None, "git_blob": hashlib.sha1(blob).hexdigest()}
    return Weights(**{**vars(row_of(file)), **known, **changed})


def doubled(file: Path) -> dict[str, torch.Tensor]:
    """A reader of a foreign format: numbers as text, each doubled."""
    return {"w": 2 * torch.tensor([float(word) for word in file.read_text().split()])}


def refusal(file: Path, *rows: Weights) -> str:
    with pytest.raises(ValueError) as refused:
        weights.add(file, rows)
    return str(refused.value)


def test_an_added_file_is_loaded_as_its_tensors(checkpoint: Path, row: Weights) -> None:
    assert weights.add(checkpoint, [row]) == row
    assert torch.equal(weights.load(row)["layer.weight"], torch.arange(6.0).reshape(2, 3))


def test_an_added_file_keeps_its_source_hash_and_licence(checkpoint: Path, row: Weights) -> None:
    from safetensors import safe_open

    weights.add(checkpoint, [row])
    with safe_open(weights.path(row), "pt") as stored:
        assert stored.metadata() == {
            "source": "net.a",
            "file": "net.pth",
            "sha256": row.sha256,
            "licence": "MIT",
        }


def test_an_added_file_is_known_by_its_contents_not_its_name(
    checkpoint: Path, row: Weights
) -> None:
    renamed = checkpoint.rename(checkpoint.with_name("net(1).pth"))
    assert weights.add(renamed, [row]) == row


def test_a_state_dict_may_be_nested(tmp_path: Path) -> None:
    file = tmp_path / "nested.pth"
    torch.save({"epoch": 3, "state_dict": {"w": torch.ones(2)}}, file)
    assert list(weights.tensors(file)) == ["w"]


def test_a_row_without_a_hash_is_refused(checkpoint: Path) -> None:
    with pytest.raises(ValueError, match=r"weights 'net\.a' has no hash"):
        row_by_git(checkpoint, git_blob="")


def test_the_hash_of_a_blob_is_that_of_git(tmp_path: Path) -> None:
    file = tmp_path / "hello.txt"
    file.write_bytes(b"hello\n")
    assert row_by_git(file).git_blob == "ce013625030ba8dba906f756967f9e9ca394464a"  # git's own


def test_a_file_may_be_known_by_the_hash_that_git_gives_it(checkpoint: Path) -> None:
    row = row_by_git(checkpoint)
    assert not weights.is_here(row)
    assert weights.add(checkpoint, [row]) == row
    assert torch.equal(weights.load(row)["layer.weight"], torch.arange(6.0).reshape(2, 3))


def test_the_store_knows_the_sha256_that_a_row_does_not_say(checkpoint: Path, row: Weights) -> None:
    by_git = row_by_git(checkpoint)
    with pytest.raises(weights.NotHere):
        weights.sha256(by_git)
    weights.add(checkpoint, [by_git])
    checkpoint.unlink()
    assert weights.sha256(by_git) == weights.sha256(row) == row.sha256


def test_all_hashes_of_a_row_must_be_those_of_the_file(checkpoint: Path) -> None:
    row = row_by_git(checkpoint, sha256="0" * 64)
    assert f"{'0' * 64} is wanted" in refusal(checkpoint, row)
    row = row_by_git(checkpoint, git_blob="0" * 40, sha256=row_of(checkpoint).sha256)
    assert f"its git blob hash is {row_by_git(checkpoint).git_blob}" in refusal(checkpoint, row)


def test_files_of_one_name_may_lie_in_their_own_folders(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_WEIGHTS", str(tmp_path))
    rows = {}
    for folder in ("a", "b"):
        file = tmp_path / folder / checkpoint.name
        file.parent.mkdir()
        torch.save({folder: torch.ones(2)}, file)
        row = row_by_git(file, name=folder)
        rows[folder] = replace(row, file=f"{folder}/{file.name}")
    assert [list(weights.load(row)) for row in rows.values()] == [["a"], ["b"]]
    (tmp_path / "b/net.pth").write_bytes(PAGE)
    assert "harness weights add b/net.pth" in refusal(tmp_path / "b/net.pth", *rows.values())


def test_a_foreign_format_is_read_by_the_function_that_the_row_names(tmp_path: Path) -> None:
    file = tmp_path / "net.txt"
    file.write_text("1 2 3")
    row = row_by_git(file, read=f"{__name__}:doubled")
    weights.add(file, [row])
    assert torch.equal(weights.load(row)["w"], torch.tensor([2.0, 4.0, 6.0]))


def test_tensors_of_another_version_of_a_reader_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "net.txt"
    file.write_text("1 2 3")
    reader = tmp_path / "foreign_reader.py"
    monkeypatch.syspath_prepend(tmp_path)
    text = "import torch\ndef read(file):\n    return {'w': torch.ones(%d)}\n"
    reader.write_text(text % 1)
    row = row_by_git(file, read="foreign_reader:read")
    weights.add(file, [row])
    assert weights.is_here(row)
    reader.write_text(text % 22)
    assert not weights.is_here(row)


def test_a_safetensors_file_may_be_added(tmp_path: Path) -> None:
    file = tmp_path / "own.safetensors"
    save_file({"w": torch.ones(2)}, file)
    row = row_of(file)
    weights.add(file, [row])
    assert torch.equal(weights.load(row)["w"], torch.ones(2))


def test_tensors_that_share_memory_may_be_added(tmp_path: Path) -> None:
    file = tmp_path / "tied.pth"
    w = torch.ones(2, 3)
    torch.save({"a": w, "b": w.T}, file)
    row = row_of(file)
    weights.add(file, [row])
    assert weights.load(row)["b"].shape == (3, 2)


def test_a_git_lfs_pointer_is_refused(tmp_path: Path, row: Weights) -> None:
    file = tmp_path / "pointer" / "net.pth"
    file.parent.mkdir()
    file.write_bytes(POINTER)
    said = refusal(file, row)
    assert str(file) in said and "Git LFS pointer" in said and row.urls[0] in said


def test_a_web_page_is_refused(tmp_path: Path, row: Weights) -> None:
    file = tmp_path / "page.pth"
    file.write_bytes(b"\xef\xbb\xbf \n" + PAGE.lower())
    assert "it is a web page" in refusal(file, row)


def test_an_empty_file_is_refused(tmp_path: Path, row: Weights) -> None:
    file = tmp_path / "empty.pth"
    file.touch()
    assert "is empty" in refusal(file, row)


def test_a_file_cut_off_is_refused(checkpoint: Path, row: Weights) -> None:
    checkpoint.write_bytes(checkpoint.read_bytes()[:100])
    said = refusal(checkpoint, row)
    assert f"was cut off, or is another file: 100 bytes, {row.size} are wanted" in said


def test_an_unknown_file_is_refused_with_its_hash_and_the_known_files(
    tmp_path: Path, row: Weights
) -> None:
    file = tmp_path / "other.pth"
    file.write_bytes(b"other")
    said = refusal(file, row)
    assert hashlib.sha256(b"other").hexdigest() in said and "known files: net.pth" in said


def test_another_file_of_a_known_name_is_refused_with_both_hashes(
    checkpoint: Path, row: Weights
) -> None:
    checkpoint.write_bytes(b"x" + checkpoint.read_bytes()[1:])
    found = hashlib.sha256(checkpoint.read_bytes()).hexdigest()
    said = refusal(checkpoint, row)
    assert found in said and row.sha256 in said


def test_a_missing_file_is_named(tmp_path: Path, row: Weights) -> None:
    with pytest.raises(FileNotFoundError, match=r"no file .*nowhere\.pth"):
        weights.add(tmp_path / "nowhere.pth", [row])


def test_code_in_a_checkpoint_is_not_run(tmp_path: Path) -> None:
    file = tmp_path / "malicious.pth"
    torch.save({"w": torch.ones(2), "x": Malicious()}, file)
    with pytest.raises(ValueError, match=r"malicious\.pth can't be read .*mkdir"):
        weights.tensors(file)
    assert not Path("this-code-has-run").exists()


def test_a_malicious_file_of_known_hash_leaves_the_store_empty(tmp_path: Path) -> None:
    file = tmp_path / "malicious.pth"
    torch.save(Malicious(), file)
    row = row_of(file)
    assert "never run" in refusal(file, row)
    assert not weights.is_here(row)


def test_a_refused_checkpoint_is_not_met_with_advice_to_run_its_code(tmp_path: Path) -> None:
    file = tmp_path / "malicious.pth"
    torch.save(Malicious(), file)
    with pytest.raises(ValueError) as refused:
        weights.tensors(file)
    assert "weights_only" not in str(refused.value)


def test_a_broken_checkpoint_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "broken.pth"
    file.write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(ValueError, match=r"broken\.pth can't be read"):
        weights.tensors(file)


@pytest.mark.parametrize(
    ("contents", "told"),
    [
        ([torch.ones(2)], "type list"),
        ({}, "holds nothing"),
        ({"w": torch.ones(2), "epoch": 3}, "'epoch': int"),
        ({"state_dict": {"w": 1.0}}, "'w': float"),
    ],
)
def test_a_checkpoint_of_something_else_is_refused(
    tmp_path: Path, contents: object, told: str
) -> None:
    file = tmp_path / "other.pth"
    torch.save(contents, file)
    with pytest.raises(ValueError, match="wanted a dict of tensors") as refused:
        weights.tensors(file)
    assert told in str(refused.value)


def test_missing_weights_are_told_with_file_mirror_and_command(row: Weights) -> None:
    with pytest.raises(weights.NotHere) as missing:
        weights.path(row)
    said = str(missing.value)
    assert "net.a needs net.pth" in said
    assert row.urls[0] in said
    assert "harness weights add net.pth" in said


def test_weights_without_a_mirror_are_told_with_their_source(checkpoint: Path) -> None:
    row = Weights(**{**vars(row_of(checkpoint)), "urls": ()})
    with pytest.raises(FileNotFoundError, match="get it from someone/net@0123456"):
        weights.path(row)


def test_a_file_in_the_weights_folder_is_added_by_itself(
    checkpoint: Path, row: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not weights.is_here(row)
    monkeypatch.setenv("HARNESS_WEIGHTS", str(checkpoint.parent))
    assert weights.is_here(row)
    stored = weights.path(row)
    checkpoint.unlink()
    assert weights.path(row) == stored


def test_another_file_in_the_weights_folder_is_refused(
    checkpoint: Path, row: Weights, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_WEIGHTS", str(checkpoint.parent))
    checkpoint.write_bytes(POINTER)
    with pytest.raises(ValueError, match="Git LFS pointer"):
        weights.path(row)


@pytest.mark.parametrize("how", ["cut off", "other numbers"])
def test_damaged_weights_are_dropped_and_it_is_told_where_to_get_them(
    checkpoint: Path,
    row: Weights,
    how: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    weights.add(checkpoint, [row])
    if how == "cut off":
        weights.path(row).write_bytes(b"damaged")
    else:
        save_file({"layer.weight": torch.ones(2, 3)}, weights.path(row))
    with pytest.raises(weights.NotHere, match=r"harness weights add net\.pth"):
        weights.load(row)
    with pytest.raises(weights.NotHere):
        weights.load(row)
    assert caplog.text.count("the stored net.a, is damaged") == 1
    monkeypatch.setenv("HARNESS_WEIGHTS", str(checkpoint.parent))  # from here it comes by itself
    assert torch.equal(weights.load(row)["layer.weight"], torch.arange(6.0).reshape(2, 3))


def test_a_download_is_stored(checkpoint: Path, mirror: Mirror) -> None:
    row = row_of(checkpoint, mirror.give("net.pth", checkpoint.read_bytes()))
    assert published_weights.fetch(row) == weights.path(row)
    assert torch.equal(weights.load(row)["layer.weight"], torch.arange(6.0).reshape(2, 3))


def test_a_download_may_be_known_by_the_hash_that_git_gives_it(
    checkpoint: Path, mirror: Mirror
) -> None:
    urls = mirror.give("bad.pth", b"other"), mirror.give("net.pth", checkpoint.read_bytes())
    row = row_by_git(checkpoint, urls=urls)
    assert published_weights.fetch(row) == weights.path(row)
    assert weights.sha256(row) == row_of(checkpoint).sha256


def test_a_download_that_broke_off_is_gone_on_with(checkpoint: Path, mirror: Mirror) -> None:
    whole = checkpoint.read_bytes()
    row = row_of(checkpoint, mirror.give("net.pth", whole, cuts=[300]))
    published_weights.fetch(row)
    assert mirror.ranges == [None, "bytes=300-"]


def test_weights_that_are_here_are_not_downloaded(checkpoint: Path, mirror: Mirror) -> None:
    row = row_of(checkpoint, mirror.give("net.pth", checkpoint.read_bytes()))
    weights.add(checkpoint, [row])
    assert published_weights.fetch(row) == weights.path(row)
    assert not mirror.asked


def test_the_next_mirror_is_asked_when_one_fails(checkpoint: Path, mirror: Mirror) -> None:
    page = mirror.give("page", PAGE)
    good = mirror.give("net.pth", checkpoint.read_bytes())
    row = row_of(checkpoint, f"{mirror.address}/gone", page, good)
    assert published_weights.fetch(row).exists()


def test_every_mirror_is_told_with_its_own_fault(checkpoint: Path, mirror: Mirror) -> None:
    whole = checkpoint.read_bytes()
    faults = {
        mirror.give("page", PAGE, length=False): "is a web page",
        mirror.give("lfs", POINTER, length=False): "is a Git LFS pointer",
        mirror.give("long", whole + b"x"): "it is another file",
        mirror.give("changed", b"x" + whole[1:]): "it is another file",
        f"{mirror.address}/gone": "404",
        checkpoint.as_uri(): "not a web address",
    }
    with pytest.raises(OSError) as failed:
        published_weights.fetch(row_of(checkpoint, *faults))
    told = str(failed.value)
    begins = [told.index(f"{url}: ") for url in faults]
    assert begins == sorted(begins)  # in the order of the mirrors
    for (url, fault), begin, end in zip(faults.items(), begins, [*begins[1:], None], strict=True):
        assert fault in told[begin:end], url


def test_a_failed_download_leaves_no_file(checkpoint: Path, mirror: Mirror, tmp_path: Path) -> None:
    with pytest.raises(OSError):
        published_weights.fetch(row_of(checkpoint, mirror.give("net.pth", PAGE)))
    assert not [file for file in (tmp_path / "cache").rglob("*") if file.is_file()]


def test_a_failed_download_ends_with_the_way_by_hand(checkpoint: Path) -> None:
    row = Weights(**{**vars(row_of(checkpoint)), "urls": ()})
    with pytest.raises(OSError, match=r"harness weights add net\.pth"):
        published_weights.fetch(row)


def test_the_known_rows_are_those_of_the_installed_packages() -> None:
    rows = published_weights.known()
    assert rows["tfeat.liberty"].file == "tfeat-liberty.params"
    assert all(name == row.name for name, row in rows.items())


@pytest.mark.parametrize(
    ("text", "fault"),
    [("raise RuntimeError('broken')", "RuntimeError: broken"), ("exit(3)", "SystemExit: 3")],
)
def test_a_package_with_broken_weights_does_not_hide_the_others(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    text: str,
    fault: str,
) -> None:
    plugin(tmp_path, monkeypatch, text)
    assert "tfeat.liberty" in published_weights.known()
    assert "of thirdparty 1.0" in caplog.text
    assert f"can't be imported: {fault}" in caplog.text


def test_one_name_for_two_files_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "import dataclasses, zoo.published.rows\n"
        "ROW = dataclasses.replace(zoo.published.rows.TFEAT['liberty'], size=1)\n"
        "WEIGHTS = {'liberty': ROW}\n"
    )
    plugin(tmp_path, monkeypatch, text)
    with pytest.raises(LookupError, match=r"'tfeat\.liberty' are listed twice.*thirdparty"):
        published_weights.known()


def plugin(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Install a package that lists weights; its name sorts behind tfeat's."""
    about = folder / "thirdparty-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: thirdparty\nVersion: 1.0\n")
    module = f"thirdparty_weights_{folder.name.replace('-', '_')}"
    (about / "entry_points.txt").write_text(f"[harness.weights]\nzzz = {module}:WEIGHTS\n")
    (folder / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(folder)
