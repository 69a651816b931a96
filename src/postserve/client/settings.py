"""What both clients are made of: an address, a key, and how patient they are."""

import os
from typing import Any

import httpx

from postserve.client.trying import Answer, Patience
from postserve.errors import InvalidInput
from postserve.validation import integer, number

URL = "http://127.0.0.1:8711"
"""Where `postserve serve` listens if its file says nothing else."""
KEY = "POSTSERVE_KEY"
"""The environment's variable that has the key."""
JSON = {"content-type": "application/json"}


def options(url: str, key: str | None, timeout: float, transport: Any) -> dict[str, Any]:
    """Those of httpx."""
    try:
        address = httpx.URL(url)
    except (httpx.InvalidURL, TypeError) as error:
        raise InvalidInput(f"url is {url!r:.60} ({error}), wanted one such as {URL}") from error
    if address.scheme not in ("http", "https") or not address.host:
        raise InvalidInput(f"url is {url!r:.60}, wanted one such as {URL}")
    key = os.environ.get(KEY) if key is None else key
    if key is not None and not (key.isascii() and key.isprintable()):
        raise InvalidInput("key has characters that no key has, wanted one of `postserve serve --new-key`")
    return {
        "base_url": address,
        "headers": {**JSON, **({"authorization": f"Bearer {key}"} if key else {})},
        "timeout": number("timeout", timeout, least=0.0),
        "transport": transport,
    }


def patience(tries: int, seconds: float) -> Patience:
    """How often, and how long, a request is tried."""
    return Patience(integer("tries", tries, least=1), number("patience", seconds, least=0.0))


def without_end(timeout: float) -> httpx.Timeout:
    """For files, which the service writes before it sends them."""
    return httpx.Timeout(timeout, read=None)


def unanswered(error: httpx.RequestError) -> Answer:
    """No answer, and why."""
    return Answer(0, f"{type(error).__name__}: {error}".encode())
