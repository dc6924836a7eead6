"""Which server to talk to, and with which key."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from libdsec.errors import InvalidArgumentError, UnauthenticatedError, UnavailableError

STATE_DEFAULT = "/var/lib/dsec"


@dataclass(frozen=True)
class Server:
    """`base_url` is http:// or https:// without a path; `unix_path` where it is reached by a socket."""

    base_url: str
    api_key: str = field(repr=False)
    unix_path: str | None = None

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine, so that no proxy lies between."""
        host = urlsplit(self.base_url).hostname or ""
        return self.unix_path is not None or host in ("localhost", "::1") or host.startswith("127.")

    @property
    def shown(self) -> str:
        return self.base_url if self.unix_path is None else f"unix:{self.unix_path}"


def find_server(
    url: str | None = None,
    api_key: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> Server:
    """The server by the arguments, else by DSEC_URL and DSEC_API_KEY, else by the first file that is there.

    The key in a file goes only to the server that the file names. Raises `UnavailableError` where no server
    is known, `UnauthenticatedError` where there is no key for it.
    """
    values = os.environ if environment is None else environment
    url = url or values.get("DSEC_URL") or None
    api_key = api_key or values.get("DSEC_API_KEY") or None
    if url is not None and api_key is not None:
        return parse_server(url, api_key)
    for path in _candidates(values):
        found = _read(path)
        if found is not None and (url is None or url == found[0]):
            return parse_server(found[0], api_key or found[1])
    advice = (
        "start one with `dsec up`, or set DSEC_URL and DSEC_API_KEY (`dsec key create` makes a key)"
    )
    if url is None:
        where = _unreadable(values)
        raise UnavailableError(f"no DSec server is known here{where}: {advice}")
    raise UnauthenticatedError(f"there is no API key for {url}: {advice}")


def parse_server(url: str, api_key: str) -> Server:
    """`http://HOST:PORT`, `https://HOST` or `unix:/PATH`."""
    if url.startswith("unix:/"):
        return Server("http://localhost", api_key, url[len("unix:") :])
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.path not in ("", "/"):
        raise InvalidArgumentError(
            f"the URL of a server is http://HOST:PORT, https://HOST or unix:/PATH, not {url!r}"
        )
    return Server(f"{parts.scheme}://{parts.netloc}", api_key)


def _candidates(values: Mapping[str, str]) -> Iterator[Path]:
    if values.get("DSEC_CLIENT"):
        yield Path(values["DSEC_CLIENT"])
        return
    home = values.get("HOME")
    if home:
        yield Path(home) / ".config/dsec/client.json"
    if values.get("DSEC_STATE"):
        yield Path(values["DSEC_STATE"]) / "client.json"
    yield Path(STATE_DEFAULT) / "client.json"


def _unreadable(values: Mapping[str, str]) -> str:
    """Says that there may be a server, whose client file is another user's."""
    named = values.get("DSEC_CLIENT")
    if named:
        return f" ({named}, which DSEC_CLIENT names, cannot be read)"
    for path in _candidates(values):
        try:
            path.open("rb").close()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return f" ({path} cannot be read by this user)"
    return ""


def _read(path: Path) -> tuple[str, str] | None:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return None
    try:
        value = json.loads(text)
        return str(value["url"]), str(value["apiKey"])
    except (ValueError, KeyError, TypeError) as cause:
        raise InvalidArgumentError(f'{path} should hold {{"url": …, "apiKey": …}}') from cause
