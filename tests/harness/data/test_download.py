"""Downloads against a real server: mirrors, resume, and all that is refused."""

import hashlib
import io
import logging
import shutil
import urllib.request
from collections import namedtuple
from http.client import HTTPMessage

import pytest
from mirrors import closed_port, serving

from harness.data import download, web
from harness.data.copies import Copy, CopyRefused, digest

BODY = bytes(range(256)) * 400  # 102,400 bytes, no two pieces of it alike in place
SHA256 = f"sha256:{hashlib.sha256(BODY).hexdigest()}"
OTHER = BODY[::-1]
PAGE = b"<!DOCTYPE html>\n<html><body>Sign in</body></html>"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 2400533\n"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr(download, "PAUSE", 0.01)
    monkeypatch.setattr(web, "PATIENCE", 5.0)


@pytest.fixture
def mirror():
    with serving() as one:
        yield one


@pytest.fixture
def work(tmp_path):
    return tmp_path / "work"


def fetch(work, *copies, accept=lambda file: file.read_bytes(), **more):
    return download.fetch(copies, work, accept, title="a/set", by_hand="bring it", **more)[0]


def refusal(work, *copies, **more):
    with pytest.raises(OSError) as refused:
        fetch(work, *copies, **more)
    return str(refused.value)


def left(work):
    return sorted(file.name for file in work.iterdir())


def test_a_file_arrives_whole(mirror, work):
    assert fetch(work, Copy(mirror.give("a.zip", BODY), SHA256, len(BODY))) == BODY
    assert mirror.ranges == [None]


def test_a_file_of_which_nothing_is_known_arrives(mirror, work):
    assert fetch(work, Copy(mirror.give("a.zip", BODY))) == BODY


def test_a_file_of_unsaid_length_arrives(mirror, work):
    assert fetch(work, Copy(mirror.give("a.zip", BODY, length=False), SHA256)) == BODY


def test_progress_is_told_to_the_last_byte(mirror, work):
    told = []
    copy = Copy(mirror.give("a.zip", BODY, cuts=[30_000]))
    fetch(work, copy, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (len(BODY), len(BODY))
    assert told == sorted(told)


# ---- resume


@pytest.mark.parametrize("known", [{}, {"hash": SHA256}, {"hash": SHA256, "size": len(BODY)}])
@pytest.mark.parametrize("etag", ['"1"', None])
def test_a_connection_that_breaks_is_resumed(mirror, work, known, etag):
    copy = Copy(mirror.give("a.zip", BODY, etag=etag, cuts=[30_000, 20_000]), **known)
    assert fetch(work, copy) == BODY
    resumed = [None, "bytes=30000-", "bytes=50000-"]
    assert mirror.ranges == (resumed if etag or known else [None, None, None])


def test_a_later_run_goes_on_where_the_last_one_broke_off(mirror, work):
    url = mirror.give("a.zip", BODY, cuts=[40_000, 0, 0, 0])
    said = refusal(work, Copy(url))
    assert "it broke off after 40000 of 102400 bytes (the connection was closed)" in said
    assert fetch(work, Copy(url)) == BODY
    assert mirror.asked[-1] == ("a.zip", "bytes=40000-", '"1"')


def test_what_one_mirror_began_another_of_the_same_hash_goes_on_with(mirror, work):
    broken = mirror.give("1/a.zip", BODY, cuts=[40_000, 0, 0, 0], etag='"one"')
    whole = mirror.give("2/a.zip", BODY, etag='"two"')
    assert fetch(work, Copy(broken, SHA256), Copy(whole, SHA256)) == BODY
    assert mirror.asked[-1] == ("2/a.zip", "bytes=40000-", None)


def test_mirrors_of_other_or_unknown_hashes_begin_anew(mirror, work):
    broken = mirror.give("1/a.zip", OTHER, cuts=[40_000, 0, 0, 0])
    whole = mirror.give("2/a.zip", BODY)
    assert fetch(work, Copy(broken), Copy(whole, SHA256)) == BODY
    assert mirror.asked[-1] == ("2/a.zip", None, None)


def test_a_server_that_can_not_resume_begins_anew(mirror, work):
    assert fetch(work, Copy(mirror.give("a.zip", BODY, ranges=False, cuts=[30_000]))) == BODY


def test_a_server_that_breaks_at_the_same_byte_is_given_up(mirror, work):
    copy = Copy(mirror.give("a.zip", BODY, ranges=False, cuts=[30_000] * 99))
    assert "it broke off after 30000 of 102400 bytes" in refusal(work, copy)
    assert len(mirror.asked) == 1 + download.TRIES


def test_a_file_that_changed_meanwhile_is_fetched_anew(mirror, work):
    refusal(work, Copy(mirror.give("a.zip", OTHER, cuts=[40_000, 0, 0, 0])))
    assert fetch(work, Copy(mirror.give("a.zip", BODY, etag='"2"'))) == BODY


def test_a_beginning_that_spoils_the_hash_is_dropped(mirror, work):
    known = {"hash": SHA256, "size": len(BODY)}
    refusal(work, Copy(mirror.give("a.zip", OTHER, cuts=[40_000, 0, 0, 0]), **known))
    copy = Copy(mirror.give("a.zip", BODY, etag='"2"', believes=True), **known)
    assert fetch(work, copy) == BODY
    assert mirror.ranges[-2:] == ["bytes=40000-", None]


def test_a_longer_beginning_than_the_file_is_dropped(mirror, work):
    refusal(work, Copy(mirror.give("a.zip", 2 * BODY, cuts=[150_000, 0, 0, 0])))
    assert fetch(work, Copy(mirror.give("a.zip", BODY, believes=True))) == BODY


def test_another_range_than_was_asked_for_is_not_taken(mirror, work):
    copy = Copy(mirror.give("a.zip", BODY, cuts=[30_000], shift=-7))
    assert fetch(work, copy) == BODY
    assert mirror.ranges == [None, "bytes=30000-", None]


def test_a_file_that_was_whole_already_is_not_asked_for(mirror, work):
    copy = Copy(mirror.give("a.zip", BODY), SHA256)
    fetch(work, copy)
    assert fetch(work, copy) == BODY
    assert len(mirror.asked) == 1


def test_a_whole_file_of_unknown_hash_is_confirmed_by_its_server(mirror, work):
    copy = Copy(mirror.give("a.zip", BODY))
    fetch(work, copy)
    assert fetch(work, copy) == BODY
    assert mirror.ranges == [None, "bytes=102400-"]


def test_a_page_in_place_of_the_rest_does_not_cost_what_is_here(mirror, work):
    refusal(work, Copy(mirror.give("a.zip", BODY, cuts=[40_000, 0, 0, 0])))
    mirror.give("a.zip", PAGE, content_type="text/html")
    assert "it is a web page" in refusal(work, Copy(f"{mirror.address}/a.zip"))
    assert fetch(work, Copy(mirror.give("a.zip", BODY))) == BODY
    assert mirror.ranges[-1] == "bytes=40000-"


def test_a_broken_chunked_answer_is_no_file(mirror, work):
    copy = Copy(mirror.give("a.zip", BODY, chunked=True, cuts=[40_000] * 9, ranges=False))
    assert "it broke off after" in refusal(work, copy)


def test_a_chunked_answer_arrives(mirror, work):
    assert fetch(work, Copy(mirror.give("a.zip", BODY, chunked=True), SHA256)) == BODY


# ---- mirrors


def dead(kind, mirror):
    if kind == "unknown host":
        return "http://no-such-host.invalid/a.zip"
    if kind == "closed port":
        return f"http://127.0.0.1:{closed_port()}/a.zip"
    if kind == "silent":
        return mirror.give("dead/a.zip", BODY, silent=1)
    if kind == "hangs up":
        return mirror.give("dead/a.zip", BODY, cuts=[0] * 9)
    return mirror.give("dead/a.zip", b"", status=int(kind))


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("unknown host", "[Errno "),
        ("closed port", "refused"),
        ("silent", "no byte came for 0.2 seconds"),
        ("hangs up", "it broke off after 0 of 102400 bytes"),
        ("404", "it answered 404"),
        ("403", "it answered 403"),
        ("500", "it answered 500"),
        ("503", "it answered 503"),
    ],
)
def test_a_dead_mirror_is_passed_over(mirror, work, monkeypatch, caplog, kind, told):
    monkeypatch.setattr(web, "PATIENCE", 0.2)
    gone = Copy(dead(kind, mirror))
    with caplog.at_level(logging.INFO):
        assert fetch(work, gone, Copy(mirror.give("a.zip", BODY), SHA256)) == BODY
    assert f"passed over: {gone.url}: " in caplog.text and told in caplog.text
    assert told in refusal(work, gone, Copy(mirror.address + "/missing"))


def test_what_each_mirror_gave_is_told(mirror, work):
    gone, other = Copy(mirror.address + "/gone"), Copy(mirror.give("b.zip", OTHER), SHA256)
    said = refusal(work, gone, other)  # in one line, as the terminal shows it
    first = f"a/set: no mirror gave it: {gone.url}: it answered 404 Not Found; {other.url}: its "
    assert said.startswith(f"{first}sha256 is ")
    assert said.endswith("; bring it") and "\n" not in said


def test_no_network_is_one_sentence_with_the_way_by_hand(work):
    copies = [Copy("http://a.invalid/x.zip"), Copy(f"http://127.0.0.1:{closed_port()}/x.zip")]
    said = refusal(work, *copies)
    assert said.startswith("a/set: there seems to be no network, since a.invalid and 127.0.0.1:")
    assert said.endswith("; bring it")
    assert "\n" not in said


def test_a_redirection_is_followed(mirror, work):
    target = mirror.give("real/a.zip", BODY)
    assert fetch(work, Copy(mirror.give("a.zip", b"", redirect=target), SHA256)) == BODY


@pytest.mark.parametrize("target", ["ftp://127.0.0.1/a.zip", "file:///etc/passwd"])
def test_a_redirection_out_of_the_web_is_not_followed(mirror, work, target):
    away = Copy(mirror.give("away/a.zip", b"", redirect=target), SHA256)
    assert target in refusal(work, away)
    assert fetch(work, away, Copy(mirror.give("a.zip", BODY), SHA256)) == BODY


@pytest.mark.parametrize("hashed", [False, True])
def test_a_redirection_out_of_https_is_followed_only_where_a_hash_vouches(hashed):
    request = urllib.request.Request("https://a.invalid/a.zip")

    def follow(url):
        handler = web.Redirects(hashed)
        return handler.redirect_request(request, io.BytesIO(), 302, "Found", HTTPMessage(), url)

    assert follow("https://b.invalid/a.zip").full_url == "https://b.invalid/a.zip"
    if hashed:
        assert follow("http://b.invalid/a.zip").full_url == "http://b.invalid/a.zip"
    else:
        with pytest.raises(CopyRefused, match="from https to http://b"):
            follow("http://b.invalid/a.zip")


def test_a_proxy_that_is_none_of_the_web_is_not_asked(work, monkeypatch):
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("http_proxy", "data://proxy")  # urllib takes the address for the data
    assert "unknown url type: data" in refusal(work, Copy("http://a.invalid/x,a.zip"))


def test_a_file_that_nothing_vouches_for_is_warned_of(mirror, work, caplog):
    fetch(work, Copy(mirror.give("a.csv", BODY, chunked=True)))
    fetch(work, Copy(mirror.give("b.csv", BODY, length=False), SHA256))
    fetch(work, Copy(mirror.give("c.csv", BODY)))
    assert not caplog.text
    fetch(work, Copy(mirror.give("d.csv", BODY, length=False)))
    assert "d.csv: the server does not say the size" in caplog.text


@pytest.mark.parametrize("scheme", ["file", "ftp", "data"])
def test_only_web_addresses_are_opened(work, tmp_path, scheme):
    (tmp_path / "a.zip").write_bytes(BODY)
    assert "not a web address" in refusal(work, Copy(f"{scheme}://{tmp_path}/a.zip"))


def test_a_set_without_mirrors_says_so(work):
    assert refusal(work) == "a/set: no mirror gave it: none is known; bring it"


# ---- what is refused, and leaves nothing behind

REFUSED = {
    "wrong hash": ({"body": OTHER}, {"hash": SHA256}, "its sha256 is "),
    "wrong md5": ({"body": OTHER}, {"hash": "md5:" + "0" * 32}, "its md5 is "),
    "too short": ({"body": BODY[:-1]}, {"size": len(BODY)}, "it has 102399 bytes, 102400 are"),
    "too long": ({"body": BODY + b"x"}, {"size": len(BODY)}, "it has 102401 bytes, 102400 are"),
    "too long, unsaid": (
        {"body": 4 * BODY, "length": False}, {"size": 10}, "it gave more than 10 bytes"
    ),
    "empty": ({"body": b""}, {}, "it is empty"),
    "page": ({"body": PAGE, "content_type": "text/html; charset=utf-8"}, {}, "it is a web page"),
    "page, disguised": ({"body": b"\n" + PAGE}, {}, "it is a web page"),
    "page after a comment": ({"body": b"<!-- v -->" + PAGE}, {}, "it is a web page"),
    "error of a cloud": ({"body": b'<?xml version="1.0"?><Error/>'}, {}, "it is a web page"),
    "pointer": ({"body": POINTER}, {}, "it is a Git LFS pointer"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_the_file_is_refused_and_leaves_nothing(mirror, work, case):
    how, known, told = REFUSED[case]
    assert told in refusal(work, Copy(mirror.give("a.zip", **how), **known))
    assert left(work) == []


@pytest.mark.parametrize("case", REFUSED)
def test_after_what_is_refused_the_next_mirror_is_tried(mirror, work, case):
    how, known, _ = REFUSED[case]
    bad = Copy(mirror.give("bad/a.zip", **how), **known)
    assert fetch(work, bad, Copy(mirror.give("a.zip", BODY), SHA256)) == BODY


def test_a_cut_off_file_of_unsaid_length_is_refused_by_its_hash(mirror, work):
    copy = Copy(mirror.give("a.zip", BODY, length=False, cuts=[40_000] * 9), SHA256)
    assert "it is another file" in refusal(work, copy)
    assert left(work) == []


def test_an_endless_answer_is_refused(mirror, work, monkeypatch):
    monkeypatch.setattr(download, "MOST", 50_000)
    copy = Copy(mirror.give("a.zip", BODY, length=False))
    assert "it gave more than 50000 bytes" in refusal(work, copy)
    assert left(work) == []


def test_what_the_caller_does_not_accept_is_refused_and_leaves_nothing(mirror, work):
    def accept(file):
        raise ValueError("it holds no patches")

    said = refusal(work, Copy(mirror.give("a.zip", BODY)), accept=accept)
    assert "a.zip: it holds no patches" in said
    assert left(work) == []


@pytest.mark.parametrize("error", [TypeError, RecursionError])
def test_what_makes_the_caller_fail_is_not_kept(mirror, work, error):
    def accept(file):
        raise error("it fails")

    with pytest.raises((error, OSError), match="it fails"):
        fetch(work, Copy(mirror.give("a.zip", BODY)), accept=accept)
    assert left(work) == []


def test_what_the_disk_refuses_is_kept(mirror, work):
    def accept(file):
        raise PermissionError("no room")

    with pytest.raises(PermissionError):
        fetch(work, Copy(mirror.give("a.zip", BODY)), accept=accept)
    assert left(work)


def test_a_full_disk_is_said_before_anything_is_written(mirror, work, monkeypatch):
    usage = namedtuple("usage", "free")(1 << 10)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    said = refusal(work, Copy(mirror.give("a.zip", BODY)))
    assert said.startswith("a.zip needs 0.1 MiB more and ")
    assert "HARNESS_DATA_HOME" in said
    assert left(work) == []


@pytest.mark.parametrize(
    ("body", "blob"),  # as `git hash-object` says
    [
        (b"", "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"),
        (b"hello\n", "ce013625030ba8dba906f756967f9e9ca394464a"),
    ],
)
def test_a_git_blob_is_known_by_its_name(tmp_path, body, blob):
    (tmp_path / "file").write_bytes(body)
    assert digest(tmp_path / "file", "git") == blob
