"""Makes archives in memory."""

import gzip
import io
import lzma
import tarfile
import zipfile


def zipped(members, compression=zipfile.ZIP_DEFLATED):
    """The bytes of a zip archive of (name or ZipInfo, contents) pairs."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as packed:
        for name, body in members:
            packed.writestr(name, body)
    return out.getvalue()


def tarred(members, form=tarfile.GNU_FORMAT, encoding="utf-8"):
    """The bytes of a tar archive of (name or TarInfo, contents) pairs."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form, encoding=encoding) as packed:
        for name, body in members:
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.size = info.size or len(body)
            packed.addfile(info, io.BytesIO(body))
    return out.getvalue()


def gzipped(members):
    return gzip.compress(tarred(members))


def ar(members):
    """The bytes of an ar archive of (name, contents) pairs, as Debian's packages have them."""
    out = b"!<arch>\n"
    for name, body in members:
        out += f"{name:16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(body):<10}`\n".encode()
        out += body + b"\n" * (len(body) % 2)
    return out


def debian(members):
    """The bytes of a Debian package with these files."""
    data = ("data.tar.xz", lzma.compress(tarred(members), preset=0))
    return ar([("debian-binary", b"2.0\n"), ("control.tar.xz", b"odd"), data])
