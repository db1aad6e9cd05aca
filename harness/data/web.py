"""Sends one request to a web server, and sorts its errors."""

import errno
import http.client
import socket
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

from harness.data.copies import Copy, CopyRefused
from harness.errors import SystemRefusedError

PATIENCE = 30.0  # seconds without a byte before a connection counts as broken
WEB = ("http", "https")  # urllib would also open file, ftp and data addresses

Answer = http.client.HTTPResponse | urllib.error.HTTPError


class Interrupted(SystemRefusedError):
    """The connection broke; the bytes before that are kept."""


class Unreachable(SystemRefusedError):
    """No server answers at this address."""


def ask(copy: Copy, headers: dict[str, str]) -> Answer:
    """The server's answer, open for reading: 200 for all, 206 for a range, 416 for no such range.

    Raises:
        CopyRefused: if the address is not http or https, or a redirect is unsafe (see `Redirects`).
        Unreachable: if no server answers.
        Interrupted: if the connection broke.
        HTTPError: if the server reports an error.
    """
    if urllib.parse.urlsplit(copy.url).scheme not in WEB:
        raise CopyRefused("it is not a web address")
    request = urllib.request.Request(
        copy.url,
        headers={"User-Agent": "descriptor-harness", "Accept-Encoding": "identity", **headers},
    )
    try:
        answer: Answer = _opener(copy).open(request, timeout=PATIENCE)
        return answer
    except urllib.error.HTTPError as error:
        if error.code == 416 and headers:
            return error
        raise
    except urllib.error.URLError as error:
        reason = error.reason
        if isinstance(reason, OSError) and _is_absence(reason):
            raise Unreachable(str(reason)) from error
        raise Interrupted(str(reason)) from error
    except (OSError, http.client.HTTPException) as error:
        raise Interrupted(f"it broke off before an answer ({fault(error)})") from error


def fault(error: BaseException) -> str:
    """The message of a network error."""
    if isinstance(error, urllib.error.HTTPError):
        return f"it answered {error.code} {error.reason}"
    if isinstance(error, TimeoutError):
        return f"no byte came for {PATIENCE:g} seconds"
    return str(error) or type(error).__name__


class Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http and https; from https to http only if the file has a hash."""

    def __init__(self, hashed: bool) -> None:
        """Set whether a hash of the file is known."""
        self.hashed = hashed

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: Any,
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """The request for the new address."""
        before, after = (urllib.parse.urlsplit(url).scheme for url in (req.full_url, newurl))
        if after not in WEB:
            fp.close()
            raise CopyRefused(f"it redirects to {newurl}, which is not a web address")
        if before == "https" and after == "http" and not self.hashed:
            fp.close()
            raise CopyRefused(
                f"it redirects from https to {newurl}, where others could change the file on the"
                " way, and no hash is published that would show it"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener(copy: Copy) -> urllib.request.OpenerDirector:
    """An opener without ftp, file and data, which a proxy setting could use."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        Redirects(copy.hash is not None),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


def _is_absence(error: OSError) -> bool:
    """Whether an error means that no server answers, rather than a broken connection."""
    absent = {errno.ECONNREFUSED, errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN}
    return isinstance(error, (socket.gaierror, TimeoutError)) or error.errno in absent
