"""Keys come from the environment, and go nowhere but to the provider."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from inktraj.errors import DataError
from inktraj.vlm.protocol import ProviderError

NO_KEY = "none-needed"
"""Sent to a server on this machine where no key is set: the SDKs insist on one."""


def find_key(names: Iterable[str], base_url: str | None, model: str) -> str:
    """Return the first key that is set.

    Raises
    ------
    ProviderError
        None is, and the server is not on this machine.
    """
    names = list(names)
    for name in names:
        if key := os.environ.get(name, "").strip():
            if not key.isascii() or not key.isprintable() or " " in key:
                raise ProviderError(f"the key in {name} holds a space, a line end or a letter no key has; copy it anew")
            return key
    if base_url is not None and is_loopback(base_url):
        return NO_KEY
    where = f" for {base_url}" if base_url else ""
    raise ProviderError(
        f"{model} needs a key{where}, and the environment has none: set {' or '.join(names) or 'key_env'}"
        + ("; any text will do where the server asks for none" if base_url else "")
    )


def check_url(url: str) -> str:
    """Return an address without its last slash.

    Raises
    ------
    DataError
        Not an address of a server, or one with a password, a query or a fragment in it.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise DataError("a base URL starts with http:// or https:// and names a host, such as http://127.0.0.1:8000/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise DataError(
            f"the base URL for {parts.hostname} holds a user, password, query or fragment, which would be recorded; "
            "give a key in the environment instead"
        )
    return url.rstrip("/")


def is_loopback(url: str) -> bool:
    """Whether an address is on this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def redact(text: str, keys: Iterable[str]) -> str:
    """Return a text without any of the keys, and the passwords in addresses, that it may quote."""
    text = re.sub(r"(\w://)[^/\s@]+@", r"\1", text)
    for key in keys:
        if len(key) >= 4 and key != NO_KEY:
            text = text.replace(key, "[key]")
    return text
