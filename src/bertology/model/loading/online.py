"""Whether the Hugging Face hub can be reached, told within seconds.

Its own client tries again and again for about a minute before it gives up, and says nothing.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from threading import Event, Thread
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

_PATIENCE = 4.0  # seconds
_PORTS = {"http": 80, "https": 443}


def hub_is_offline() -> bool:
    """Whether the user has said that the hub must not be asked."""
    return os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on")


def hub_is_reachable() -> bool:
    """Whether the hub, or the proxy on the way to it, takes a connection."""
    from huggingface_hub import constants

    if hub_is_offline():
        return False
    address = urlsplit(constants.ENDPOINT)
    proxies = getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    if proxy and not proxy_bypass(address.hostname or ""):
        address = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    host, port = address.hostname or "", address.port or _PORTS.get(address.scheme, 443)
    answered = Event()
    # Looking up a name can take longer than any limit on the connection; a thread can be left.
    Thread(target=_ask, args=(host, port, answered), daemon=True).start()
    return answered.wait(_PATIENCE)


def _ask(host: str, port: int, answered: Event) -> None:
    with suppress(OSError), socket.create_connection((host, port), timeout=_PATIENCE):
        answered.set()
