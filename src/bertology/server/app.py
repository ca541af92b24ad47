"""The application behind every page: which requests are allowed, and what the browser may load.

It listens on 127.0.0.1, but this is not enough: any web page in the browser may send requests
there. With a host name that first leads to another server and then to 127.0.0.1 (DNS rebinding),
that page could also read the answers. So requests must name this machine as their host, and
requests from a page must come from ours. Files are served from a fixed list, never from a path
that a request names.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bertology.errors import BertologyError
from bertology.server.static_files import static_file
from bertology.server.working import BusyError

MAX_BODY = 4096
"""The largest size of a request in bytes, unless an application sets another."""

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_READING = {"GET", "HEAD"}
_USUAL_PORT = 80  # browsers leave it out of a host's name
_TOLD = 5  # errors in one request that are reported


def make_app(
    routers: Iterable[APIRouter],
    pages: Mapping[str, str],
    *,
    port: int,
    max_body: int = MAX_BODY,
    on_close: Callable[[], None] = lambda: None,
) -> FastAPI:
    """An application of these routes and pages: address -> file in `static/`.

    `port` is the one that the browser's requests will name; `max_body` is the largest size of a
    request in bytes; `on_close` is called at the end.
    """

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        yield
        on_close()

    # Without FastAPI's own pages: they load scripts from other servers.
    app = FastAPI(
        docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False, lifespan=life
    )
    for router in routers:
        app.include_router(router)
    for address, name in pages.items():
        _add_page(app, address, name)
    app.add_exception_handler(BertologyError, _say_error)
    app.add_exception_handler(RequestValidationError, _say_invalid)
    app.add_exception_handler(HTTPException, _say_http)
    app.add_middleware(Guard, port=port, max_body=max_body)
    return app


def _add_page(app: FastAPI, address: str, name: str) -> None:
    path = static_file(name)
    content, kind = path.read_bytes(), _TYPES[path.suffix]

    async def page() -> Response:  # nothing to wait for, so it needs no thread
        return Response(content, media_type=kind)

    app.add_api_route(address, page, methods=["GET", "HEAD"], include_in_schema=False)


def _say_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, BertologyError)
    status = 503 if isinstance(error, BusyError) else 400
    return JSONResponse({"error": error.problem, "hint": error.hint}, status_code=status)


def _say_invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    # The values that were sent are not sent back: they may be anything, of any length. The same is
    # true of their keys, which are cut.
    wrong = [f"{_place(e['loc'])}: {e['msg']}" for e in error.errors()[:_TOLD]]
    return JSONResponse({"error": "; ".join(wrong), "hint": None}, status_code=422)


def _place(keys: Iterable[str | int]) -> str:
    shown = ".".join(str(key)[:40] for key in keys)
    return shown.encode("utf-8", "replace").decode("utf-8")


def _say_http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail, "hint": None}, status_code=error.status_code)


class Guard:
    """Refuses requests by host, origin, kind and size, and adds headers to every answer."""

    def __init__(self, app: ASGIApp, *, port: int, max_body: int = MAX_BODY) -> None:
        self.app, self.max_body = app, max_body
        names = ("127.0.0.1", "localhost")
        self.hosts = {f"{name}:{port}" for name in names}
        if port == _USUAL_PORT:
            self.hosts.update(names)
        self.origins = {f"http://{host}" for host in self.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI; websockets are refused, since no page uses them."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
            await send(message)

        refusal = self._refusal(str(scope["method"]), Headers(scope=scope))
        body = b"" if refusal else await _read(receive, self.max_body)
        if body is None:
            refusal = (413, f"A request may have {self.max_body:,} bytes at most.")
        if refusal is not None:
            status, text = refusal
            answer = JSONResponse({"error": text, "hint": None}, status_code=status)
            await answer(scope, receive, send_guarded)
            return
        await self.app(scope, _again(body or b"", receive), send_guarded)

    def _refusal(self, method: str, headers: Headers) -> tuple[int, str] | None:
        if headers.getlist("host") not in [[host] for host in self.hosts]:
            return 421, "This page answers to 127.0.0.1 and localhost only."
        origin = headers.get("origin")
        if origin is not None and origin not in self.origins:
            return 403, "Another site may not use this page."
        # A link on another site may open a page, but no other request of another site is allowed.
        site = headers.get("sec-fetch-site", "none")
        if site not in ("none", "same-origin") and headers.get("sec-fetch-mode") != "navigate":
            return 403, "Another site may not use this page."
        if method in _READING:
            return None
        if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return 415, "Send application/json."
        return None


async def _read(receive: Receive, most: int) -> bytes | None:
    """The whole body; None if it is too long, whatever its headers say."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return bytes(body)
        body += message.get("body", b"")
        if len(body) > most:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _again(body: bytes, receive: Receive) -> Receive:
    """Gives the body, which was read already, and then all further messages."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
