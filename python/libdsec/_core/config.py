"""Which server to talk to, and with which key."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
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
    # Certificates, in PEM, by which it is known beside those of httpx.
    ca_file: str | None = None
    # The client file that the key is from: it is read again when the key is refused.
    key_file: Path | None = None

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
    ca_file: str | None = None,
) -> Server:
    """The server by the arguments, else by DSEC_URL and DSEC_API_KEY, else by the first file that is there.

    The key in a file goes only to the server that the file names. Raises `UnavailableError` where no server
    is known, `UnauthenticatedError` where there is no key for it.
    """
    values = os.environ if environment is None else environment
    url = url or values.get("DSEC_URL") or None
    api_key = api_key or values.get("DSEC_API_KEY") or None
    ca_file = ca_file or values.get("DSEC_CA_FILE") or None
    if url is not None and api_key is not None:
        return replace(parse_server(url, api_key), ca_file=ca_file)
    for path in _candidates(values):
        found = _read(path)
        if found is not None and (url is None or url == found[0]):
            server = parse_server(found[0], api_key or found[1])
            key_file = path if api_key is None else None
            return replace(server, ca_file=ca_file or found[2], key_file=key_file)
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


def key_from_file(server: Server) -> str | None:
    """The key that the server's client file holds now, where it is another one."""
    if server.key_file is None:
        return None
    try:
        found = _read(server.key_file)
    except InvalidArgumentError:
        # It is just being written by somebody who does not replace it as a whole.
        return None
    if found is None or parse_server(found[0], found[1]).shown != server.shown:
        return None
    return None if found[1] == server.api_key else found[1]


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


def _read(path: Path) -> tuple[str, str, str | None] | None:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return None
    try:
        value = json.loads(text)
        ca_file = value.get("caFile")
        return str(value["url"]), str(value["apiKey"]), None if ca_file is None else str(ca_file)
    except (ValueError, KeyError, TypeError, AttributeError) as cause:
        raise InvalidArgumentError(f'{path} should hold {{"url": …, "apiKey": …}}') from cause
