"""Serves an application on this machine, and opens its page in the browser."""

from __future__ import annotations

import socket
import threading
import webbrowser
from collections.abc import Callable
from typing import TYPE_CHECKING

from bertology.errors import BertologyError, MissingExtraError

if TYPE_CHECKING:
    from fastapi import FastAPI

_HOST = "127.0.0.1"  # other machines cannot reach it


def check_extra(needed_for: str) -> None:
    """Raise an error if the libraries that serve pages are not installed."""
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise MissingExtraError("explorer", needed_for=needed_for) from None


def claim_port(port: int) -> socket.socket:
    """A socket that listens on this machine only; with port 0, on any free port."""
    # asyncio sends at once only if the socket says that it is TCP; else small answers wait 40 ms.
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((_HOST, port))
        made.listen(128)
    except OSError as error:
        made.close()
        raise BertologyError(
            f"Port {port} cannot be used: {error.strerror or error}.",
            hint="Give another with --port, or --port 0 for any that is free.",
        ) from None
    return made


def address_of(claimed: socket.socket) -> str:
    """What to type into the browser."""
    return f"http://{_HOST}:{claimed.getsockname()[1]}/"


def serve(app: FastAPI, claimed: socket.socket, *, open_browser: bool = True) -> None:
    """Serve until Ctrl-C; with `open_browser`, show the page once it can be loaded."""
    import uvicorn

    settings = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=2,
    )
    if open_browser:
        _soon(lambda: webbrowser.open(address_of(claimed)))
    try:
        uvicorn.Server(settings).run(sockets=[claimed])
    except KeyboardInterrupt:
        pass  # uvicorn has shut down and raises the signal again
    finally:
        claimed.close()


def _soon(show: Callable[[], object]) -> None:
    # The socket listens already: a request that comes too early waits, and is not refused.
    threading.Thread(target=show, daemon=True).start()
