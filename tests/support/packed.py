"""Makes archives in memory."""

import gzip
import io
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
