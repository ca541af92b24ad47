"""A real browser for tests of pages: Chromium, spoken to through a pipe, no driver needed."""

from __future__ import annotations

import atexit
import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_CODES = {"Tab": 9, "Escape": 27, "ArrowRight": 39}
_PATIENCE = 60.0  # seconds; a loaded machine starts a browser slowly


def find_browser() -> str:
    """Where Chromium is; the test is skipped where there is none."""
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None or os.name != "posix":
        pytest.skip(f"needs a browser, one of {', '.join(_NAMES)}, on a POSIX system")
    return found


class _Chromium:
    """The program, started once for all tests of a process: every page has a context of its own."""

    def __init__(self) -> None:
        program = find_browser()  # first: where there is none, nothing is left open behind it
        to_browser, from_browser = os.pipe(), os.pipe()

        def become_three_and_four() -> None:
            # Far away first: one of the pipe's own ends may be number 3 or 4.
            ends = [os.dup2(to_browser[0], 100), os.dup2(from_browser[1], 101)]
            for fixed, end in zip((3, 4), ends, strict=True):
                os.dup2(end, fixed)

        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        options = [
            "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self._profile.name}",
            "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage",
            "--disable-background-networking", "--disable-component-update", "--hide-scrollbars",
            "--window-size=1280,900",
        ]  # fmt: skip
        if os.geteuid() == 0:
            options.append("--no-sandbox")  # Chromium refuses to start as root otherwise
        self._process = subprocess.Popen(
            [program, *options, "about:blank"],
            preexec_fn=become_three_and_four,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser[0])
        os.close(from_browser[1])
        self._out, self._in = os.fdopen(to_browser[1], "wb"), os.fdopen(from_browser[0], "rb")
        self._count, self._waiting = 0, b""
        self.pages: dict[str, Browser] = {}
        """By session: who hears what happens there."""
        atexit.register(self._close)

    def call(self, method: str, session: str | None = None, **parameters: Any) -> Any:
        """Do one thing and give what the browser answers."""
        self._count += 1
        asked: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if session is not None:
            asked["sessionId"] = session
        self._out.write(json.dumps(asked).encode() + b"\0")
        self._out.flush()
        while True:
            message = self._next()
            if message.get("id") == self._count:
                assert "error" not in message, message["error"]
                return message["result"]
            if message.get("sessionId") in self.pages:
                self.pages[message["sessionId"]].hear(message)

    def _next(self) -> Any:
        while b"\0" not in self._waiting:
            more = os.read(self._in.fileno(), 1 << 16)
            if not more:
                raise EOFError("The browser has gone.")
            self._waiting += more
        line, _, self._waiting = self._waiting.partition(b"\0")
        return json.loads(line)

    def _close(self) -> None:
        try:
            self.call("Browser.close")
        except (OSError, EOFError):
            self._process.kill()
        self._out.close()
        self._process.wait(_PATIENCE)
        self._in.close()
        self._profile.cleanup()


_started = cache(_Chromium)


class Browser:
    """One tab that shares nothing with others: neither what is stored nor what is preferred.

    Commands are those of the Chrome DevTools Protocol.
    """

    def __init__(self, *, width: int = 1000, height: int = 900) -> None:
        self._chromium = _started()
        call = self._chromium.call
        self._context = call("Target.createBrowserContext")["browserContextId"]
        page = call("Target.createTarget", url="about:blank", browserContextId=self._context)
        attached = call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session: str = attached["sessionId"]
        self.complaints: list[str] = []
        self._chromium.pages[self._session] = self
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)
        self.resize(width, height)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        del self._chromium.pages[self._session]
        self._chromium.call("Target.disposeBrowserContext", browserContextId=self._context)

    def call(self, method: str, **parameters: Any) -> Any:
        """Do one thing on the page and give what the browser answers."""
        return self._chromium.call(method, self._session, **parameters)

    def hear(self, message: Any) -> None:
        """Errors on the page, also what its security policy blocked, and what it logs as errors."""
        if message.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(str(message["params"]["exceptionDetails"]))
        elif message.get("method") == "Log.entryAdded":
            entry = message["params"]["entry"]
            if entry["level"] == "error":
                self.complaints.append(entry["text"])
        elif message.get("method") == "Runtime.consoleAPICalled":
            said = message["params"]
            if said["type"] in ("error", "assert"):
                self.complaints.append(str(said["args"]))

    def open(self, address: str) -> None:
        """Go to a page."""
        self.call("Page.navigate", url=address)

    def evaluate(self, script: str) -> Any:
        """The value of an expression on the page."""
        done = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait_for(self, condition: str) -> None:
        """Until an expression is true on the page, which may still have to load."""
        until = time.monotonic() + _PATIENCE
        tried = f"(() => {{ try {{ return Boolean({condition}); }} catch {{ return false; }} }})()"
        while not self._holds(tried):
            assert time.monotonic() < until, f"never: {condition}\n{self.complaints}"
            time.sleep(0.02)

    def _holds(self, script: str) -> bool:
        """Whether an expression is true; a page that is just being left says nothing."""
        try:
            return bool(self.evaluate(script))
        except AssertionError as error:
            if "navigated" not in str(error):
                raise
            return False

    def press(self, key: str) -> None:
        """A key, as a keyboard gives it; Tab goes on to the next thing that takes keys."""
        text = {"text": "\r" if key == "Enter" else key} if len(key) == 1 or key == "Enter" else {}
        code = {"windowsVirtualKeyCode": _CODES[key]} if key in _CODES else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **code)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, **code)

    def type(self, text: str) -> None:
        """Text into whatever has the focus."""
        self.call("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """Press and let go of the mouse in the middle of an element, once it can be seen."""
        x, y = self.middle(selector)
        self.point(x, y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def middle(self, selector: str) -> tuple[float, float]:
        """Where an element is in the window, which scrolls to it."""
        self.wait_for(f"document.querySelector({selector!r}).getClientRects().length")
        x, y = self.evaluate(
            f"(e => {{ e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect();"
            "return [b.left + b.width / 2, b.top + b.height / 2]; })"
            f"(document.querySelector({selector!r}))"
        )
        return x, y

    def download_to(self, folder: Path) -> None:
        """Keep what the page saves there."""
        self._chromium.call(
            "Browser.setDownloadBehavior",
            behavior="allow",
            downloadPath=str(folder),
            browserContextId=self._context,
        )

    def point(self, x: float, y: float) -> None:
        """Move the mouse there."""
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def resize(self, width: int, height: int) -> None:
        """Another window, such as a telephone's."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def prefer(self, scheme: str) -> None:
        """Light or dark."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def screenshot(self, path: Path) -> None:
        """A picture of the whole page."""
        done = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(done["data"]))
