"""Archives: unpacked whole, or refused with nothing left behind."""

import gzip
import hashlib
import io
import lzma
import random
import stat
import struct
import tarfile
import zipfile
from contextlib import nullcontext

import pytest
from packed import ar, debian, gzipped, tarred, zipped

from harness.data import archive
from harness.data.archive import BadArchive, Limits, kind, unpack

FILES = {"set/info.txt": b"0 0\n1 0\n", "set/deep/er/ref.png": bytes(range(256)) * 40, "a": b""}


PACKERS = {"zip": zipped, "tar": tarred, "tar.gz": gzipped, "deb": debian}
each_kind = pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)


def names(folder):
    return [file.name for file in folder.iterdir()]


@pytest.fixture
def unpacked(tmp_path):
    """Unpacks bytes into a folder; the folder, and the hashes that were returned."""

    def unpack_bytes(packed, keep=(), **limits):
        file = tmp_path / "packed"
        file.write_bytes(packed)
        out = tmp_path / "out"
        return out, unpack(file, out, keep=keep, limits=Limits(**limits))

    return unpack_bytes


@pytest.fixture
def refusal(tmp_path, unpacked):
    """What is said of bytes that are refused; nothing is left of them anywhere near."""

    def refused(packed, keep=(), **limits):
        with pytest.raises(BadArchive) as error:
            unpacked(packed, keep, **limits)
        assert names(tmp_path) == ["packed"]
        return str(error.value)

    return refused


def test_the_kind_is_told_by_contents(tmp_path):
    for name, pack in PACKERS.items():
        (tmp_path / "x").write_bytes(pack(FILES.items()))
        assert kind(tmp_path / "x") == name
    for body in (b"", b"MATLAB 5.0 MAT-file", b"BM" + bytes(600)):
        (tmp_path / "x").write_bytes(body)
        assert kind(tmp_path / "x") is None


@each_kind
def test_every_file_is_unpacked_and_hashed(unpacked, pack):
    folder, contents = unpacked(pack(FILES.items()))
    assert {name: (folder / name).read_bytes() for name in contents} == FILES
    assert contents == {name: hashlib.sha256(body).hexdigest() for name, body in FILES.items()}
    assert sum(file.is_file() for file in folder.rglob("*")) == len(FILES)


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_tar_files_of_every_form_are_unpacked(unpacked, form):
    name = "folder/" * 12 + "name" * 12
    assert list(unpacked(tarred([(name, b"x")], form))[1]) == [name]


@each_kind
def test_folders_may_be_members(unpacked, pack):
    if pack is zipped:
        members = [("set/", b""), ("set/a", b"x")]
    else:
        folder = tarfile.TarInfo("./set")
        folder.type = tarfile.DIRTYPE
        members = [(folder, b""), ("./set/a", b"x")]
    assert list(unpacked(pack(members))[1]) == ["set/a"]


def test_modes_and_owners_are_not_taken_over(unpacked):
    info = tarfile.TarInfo("a")
    info.mode, info.uid = 0o6777, 12345
    folder, _ = unpacked(tarred([(info, b"x")]))
    assert not (folder / "a").stat().st_mode & (stat.S_ISUID | stat.S_ISGID | 0o111)


def test_a_folder_that_is_there_is_left_alone(unpacked, tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(FileExistsError, match="is there already"):
        unpacked(zipped(FILES.items()))
    assert names(tmp_path / "out") == []


# ---- some of the files


@each_kind
def test_only_wanted_files_are_unpacked(unpacked, pack):
    wanted = "set/deep/er/ref.png"
    folder, contents = unpacked(pack([(f"./{n}", b) for n, b in FILES.items()]), [wanted])
    assert list(contents) == [wanted]
    assert [file for file in folder.rglob("*") if file.is_file()] == [folder / wanted]


@each_kind
def test_an_archive_without_a_wanted_file_is_refused(refusal, pack):
    assert refusal(pack(FILES.items()), ["a", "b", "c"]) == "it lacks b, c"


@pytest.mark.parametrize("pack", [tarred, debian])
def test_links_are_passed_over_if_they_are_not_wanted(unpacked, refusal, pack):
    """Wallpapers have links to other sizes of one image."""
    link = tarfile.TarInfo("b")
    link.type, link.linkname = tarfile.SYMTYPE, "a"
    assert list(unpacked(pack([("a", b"x"), (link, b"")]), ["a"])[1]) == ["a"]


@pytest.mark.parametrize("pack", [tarred, debian])
def test_a_wanted_link_is_refused(refusal, pack):
    link = tarfile.TarInfo("b")
    link.type, link.linkname = tarfile.SYMTYPE, "a"
    assert "is a link" in refusal(pack([("a", b"x"), (link, b"")]), ["b"])


@pytest.mark.parametrize("pack", [gzipped, debian])
def test_a_bomb_among_unwanted_files_is_refused(refusal, pack):
    members = [("zeros", bytes(10_000_000)), ("a", b"x")]
    assert "it looks like a bomb" in refusal(pack(members), ["a"], free=1000)


# ---- Debian's packages


def test_a_package_that_is_packed_otherwise_is_refused(refusal):
    said = refusal(ar([("debian-binary", b"2.0\n"), ("data.tar.zst", b"(\xb5/\xfd")]))
    assert said == "its files are in data.tar.zst; only data.tar.xz can be read"


def test_a_package_without_files_is_refused(refusal):
    assert "a package without files" in refusal(ar([("debian-binary", b"2.0\n")]))


def test_what_follows_the_files_inside_their_member_is_refused(refusal):
    data = lzma.compress(tarred(FILES.items())) + b"more"
    assert "more follows" in refusal(ar([("debian-binary", b"2.0\n"), ("data.tar.xz", data)]))


def test_a_member_that_says_more_than_the_package_holds_is_refused(refusal):
    packed = debian(FILES.items())
    data = packed.rindex(b"data.tar.xz")
    size = packed[data + 48 : data + 58]
    assert "more follows" in refusal(packed.replace(size, b"%-10d" % (int(size) + 10**6)))


# ---- names that lead elsewhere


@each_kind
@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "../out-of-it",
        "a/../../b",
        "..",
        "a\\..\\b",
        "C:/a",
        "c:a",
        "a/C:b",
        "a:stream",
        "a\nb",
        "a\x1b[31mb",
        "a\x7fb",
        "a\x9bb",
        "x" * 300,
        "\u0101/" * 400,
    ],
)
def test_names_that_lead_elsewhere_are_refused(refusal, pack, name):
    said = refusal(pack([("good", b"x"), (name, b"x")]))
    assert "leads out of its folder or is no plain name" in said


def test_a_name_in_another_encoding_than_utf_8_is_refused(refusal):
    """It could be written, but neither printed nor recorded."""
    packed = tarred([("latin-\xe9", b"x")], tarfile.GNU_FORMAT, encoding="latin-1")
    assert "is no plain name" in refusal(packed)


def test_a_zero_byte_in_a_name_is_refused(refusal):
    packed = zipped([("good.txtX../b", b"x")])
    assert "is no plain name" in refusal(packed.replace(b"good.txtX", b"good.txt\0"))


@each_kind
def test_one_name_twice_is_refused(refusal, pack):
    with pytest.warns(UserWarning) if pack is zipped else nullcontext():
        packed = pack([("a", b"x"), ("b", b"x"), ("a", b"y")])
    assert "twice" in refusal(packed)


@each_kind
def test_a_file_that_is_a_folder_too_is_refused(refusal, pack):
    assert "'a/b' below a file" in refusal(pack([("a", b"x"), ("a/b", b"x")]))
    assert "twice" in refusal(pack([("a/b", b"x"), ("a", b"x")]))


# ---- links and devices


@pytest.mark.parametrize(
    ("form", "target"),
    [
        (tarfile.SYMTYPE, "/etc/passwd"),
        (tarfile.SYMTYPE, "good"),
        (tarfile.LNKTYPE, "good"),
        (tarfile.LNKTYPE, "../../secret"),
        (tarfile.CHRTYPE, ""),
        (tarfile.BLKTYPE, ""),
        (tarfile.FIFOTYPE, ""),
    ],
)
def test_links_and_devices_in_a_tar_are_refused(refusal, form, target):
    info = tarfile.TarInfo("bad")
    info.type, info.linkname = form, target
    assert "'bad', which is a link, a device" in refusal(tarred([("good", b"x"), (info, b"")]))


@pytest.mark.parametrize("form", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO, stat.S_IFSOCK])
def test_links_and_devices_in_a_zip_are_refused(refusal, form):
    info = zipfile.ZipInfo("bad")
    info.create_system, info.external_attr = 3, (form | 0o777) << 16
    assert "'bad', which is a link or a device" in refusal(zipped([("a", b"x"), (info, b"/etc")]))


def test_a_write_through_a_link_comes_to_nothing(refusal, tmp_path):
    link = tarfile.TarInfo("folder")
    link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path)
    assert "a link" in refusal(tarred([(link, b""), ("folder/stolen", b"x")]))


# ---- bombs


@pytest.mark.parametrize("pack", [zipped, gzipped, debian])
def test_what_grows_a_thousandfold_is_refused(refusal, pack):
    assert "it looks like a bomb" in refusal(pack([("zeros", bytes(10_000_000))]), free=1000)


@each_kind
def test_what_is_larger_than_allowed_is_refused(refusal, pack):
    members = [(f"{i}", random.Random(i).randbytes(1000)) for i in range(3)]
    assert "it looks like a bomb" in refusal(pack(members), size=2500)


@each_kind
def test_too_many_files_are_refused(refusal, pack):
    members = [(f"{i}", b"") for i in range(11)]
    assert "more than 10 files" in refusal(pack(members), files=10)


def test_a_zip_that_says_less_than_it_holds_is_refused(refusal):
    packed = zipped([("zeros", bytes(100_000))]).replace(
        struct.pack("<L", 100_000), struct.pack("<L", 10)
    )
    refusal(packed)


def test_a_zip_that_says_more_than_it_holds_is_refused(refusal):
    packed = zipped([("zeros", bytes(1000))], zipfile.ZIP_STORED).replace(
        struct.pack("<L", 1000), struct.pack("<L", 2000)
    )
    refusal(packed)


def test_a_zip_whose_members_share_their_bytes_is_refused(refusal):
    kernel = zipped([("a", bytes(1_000_000))])
    end = kernel.index(b"PK\5\6")
    start = kernel.index(b"PK\1\2")
    entry = kernel[start:end]
    entries = b"".join(entry[:46] + b"%c" % (97 + i) for i in range(20))
    tail = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 20, 20, len(entries), start, 0)
    refusal(kernel[:start] + entries + tail, free=5_000_000)


def test_a_huge_header_of_a_tar_is_not_read(refusal):
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, 1 << 33
    assert "a header in it says that it has 8589934592 bytes" in refusal(
        info.tobuf(tarfile.GNU_FORMAT)
    )


def test_a_sparse_file_is_refused(refusal):
    info = tarfile.TarInfo("holes")
    info.type = tarfile.GNUTYPE_SPARSE
    refusal(info.tobuf(tarfile.GNU_FORMAT) + bytes(1024))


# ---- damage


@pytest.mark.parametrize("form", [tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_long_row_of_extended_headers_is_refused(refusal, form):
    info = tarfile.TarInfo("x")
    info.type, info.size = form, 512
    body = b"9 path=x\n".ljust(512, b"\0")
    assert "damaged" in refusal((info.tobuf(tarfile.GNU_FORMAT) + body) * 20_000)


@each_kind
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_a_cut_off_archive_is_refused(refusal, pack, share):
    packed = pack([*FILES.items(), ("noise", random.Random(0).randbytes(20_000))])
    if pack is tarred:
        packed = packed[: packed.rindex(b"\0" * 1024)].rstrip(b"\0")  # without the padding
    refusal(packed[: int(len(packed) * share)])


def test_a_tar_that_ends_between_two_members_is_refused(refusal):
    packed = tarred([("a", bytes(512)), ("b", bytes(512))])
    assert "its end mark is missing" in refusal(packed[:1024])


def test_a_tar_with_a_broken_header_does_not_end_there(refusal):
    packed = bytearray(tarred([("a", bytes(512)), ("b", bytes(512))]))
    packed[1024] ^= 1
    assert "damaged" in refusal(bytes(packed))


def test_a_tar_that_goes_on_after_its_end_is_refused(refusal):
    assert "more follows" in refusal(tarred([("a", b"x")]) + tarred([("b", b"y")]))


@each_kind
def test_a_flipped_bit_is_refused_or_harmless(tmp_path, pack):
    """Anywhere in the archive; a flip in a plain tar's contents can't be seen without a hash."""
    packed = pack([*FILES.items(), ("noise", random.Random(0).randbytes(2000))])
    whole = {}
    for trial in range(100):
        spoilt = bytearray(packed)
        spoilt[random.Random(trial).randrange(len(packed))] ^= 1 << trial % 8
        (tmp_path / "packed").write_bytes(spoilt)
        try:
            unpack(tmp_path / "packed", tmp_path / f"out{trial}")
            whole[trial] = 1
        except BadArchive:
            assert not (tmp_path / f"out{trial}").exists()
    assert {file.name for file in tmp_path.iterdir()} == {"packed", *(f"out{i}" for i in whole)}


def test_an_encrypted_zip_is_refused(refusal):
    packed = bytearray(zipped([("a", b"secret")]))
    packed[6] |= 1
    packed[packed.index(b"PK\1\2") + 8] |= 1
    assert "is encrypted" in refusal(bytes(packed))


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_zip_packed_in_a_rare_way_is_refused(refusal, method):
    assert "by method" in refusal(zipped([("a", b"x")], method))


@pytest.mark.parametrize("body", [b"", b"just text", b"BM" + bytes(2000)])
def test_what_is_no_archive_is_refused(refusal, body):
    assert "neither a zip, a tar, a tar.gz nor a deb" in refusal(body)


def test_a_gzip_of_no_tar_is_refused(refusal):
    refusal(gzip.compress(b"just text"))
    refusal(gzip.compress(b""))


@each_kind
def test_an_archive_without_files_is_refused(refusal, pack):
    refusal(pack([]))


def test_nothing_is_left_when_writing_fails(tmp_path, monkeypatch):
    (tmp_path / "packed").write_bytes(zipped(FILES.items()))

    class Full(io.BytesIO):
        def read(self, size=-1):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: Full())
    with pytest.raises(OSError, match="No space left"):
        unpack(tmp_path / "packed", tmp_path / "out")
    assert names(tmp_path) == ["packed"]


def test_the_limits_leave_room_for_every_published_set():
    assert archive.Limits().files > 10_000
    assert archive.Limits().size > 1 << 36
