"""Real Firefox for the page's tests, driven over WebDriver BiDi: the websocket that Firefox itself serves.

Playwright brings its own build of Firefox; this drives the one that people have, with no driver program between.
Firefox makes no sound without a sound device, so it is given one of `tests/fakes/sound_system.py`; and without a screen
it shares no window and keeps no picture on its clipboard, so it may be given one of `Screen`.
Source: W3C WebDriver BiDi, the commands `session.new`, `browsingContext.*`, `script.*`, `input.*`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from aiohttp import ClientSession, ClientWebSocketResponse

from tests.fakes import sound_system

EXECUTABLE = shutil.which("firefox") or shutil.which("firefox-esr")
MISSING = ([] if EXECUTABLE else ["firefox-esr"]) + sound_system.MISSING
NO_SCREEN = [] if shutil.which("Xvfb") else ["xvfb"]
CONTROL = "\ue009"
PREFERENCES = {
    "media.navigator.streams.fake": True,  # a microphone that hums
    "media.navigator.permission.disabled": True,  # and is given without asking
    "app.update.disabledForTesting": True,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.enabled": False,
    "remote.active-protocols": 1,  # BiDi alone
}


class PageFailed(Exception):
    """A script in the page raised; its text says what."""


class Screen:
    """An X server of a test's own, whose screen nobody sees."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            ["Xvfb", "-displayfd", "1", "-screen", "0", "1280x900x24", "-nolisten", "tcp"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        number = self._process.stdout.readline().strip()
        assert number, "Xvfb ended before it had a screen"
        self.environment = {"DISPLAY": f":{number}"}

    def stop(self) -> None:
        self._process.terminate()
        self._process.communicate(timeout=60)


STUCK_S = 60


class Stuck(Exception):
    """Firefox gave no answer at all for `STUCK_S`, though its process lives."""


class Firefox:
    """One browser with one tab, headless unless its environment names a display. `complaints` collects errors and
    warnings of the page's console.

    async with Firefox(profile, speaker.environment) as page: await page.open(url)
    """

    def __init__(self, profile: Path, environment: dict[str, str]) -> None:
        self._profile, self._given = profile, environment
        self._environment = {**os.environ, "HOME": str(profile), **environment}
        self.complaints: list[str] = []
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._next = 0

    async def __aenter__(self) -> Firefox:
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in PREFERENCES.items()]
        self._profile.mkdir(parents=True)
        (self._profile / "user.js").write_text("\n".join(lines), encoding="utf-8")
        headless = [] if "DISPLAY" in self._given else ["--headless"]
        with (self._profile / "said").open("w") as said:
            self._process = subprocess.Popen(
                [str(EXECUTABLE), *headless, "--no-remote", "--profile", str(self._profile),
                 "--remote-debugging-port", "0"],
                env=self._environment, stdout=subprocess.DEVNULL, stderr=said,
            )  # fmt: skip
        address = await self._address(self._profile / "said")
        self._http = ClientSession()
        self._socket = await self._http.ws_connect(address + "/session", max_msg_size=0)
        self._reading = asyncio.create_task(self._read(self._socket))
        await self._call("session.new", capabilities={})
        await self._call("session.subscribe", events=["log.entryAdded"])
        tree = await self._call("browsingContext.getTree")
        self._tab = tree["contexts"][0]["context"]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        await asyncio.to_thread(self._process.wait, 60)
        self._reading.cancel()
        await self._http.close()

    async def _address(self, said: Path) -> str:
        while self._process.poll() is None:
            if found := re.search(r"WebDriver BiDi listening on (ws://\S+)\n", said.read_text("utf-8")):
                return found[1]
            await asyncio.sleep(0.05)
        raise AssertionError("Firefox ended before it opened its remote port:\n" + said.read_text("utf-8"))

    async def _read(self, socket: ClientWebSocketResponse) -> None:
        async for message in socket:
            event = json.loads(message.data)
            if event.get("method") == "log.entryAdded" and event["params"]["level"] in ("error", "warn"):
                self.complaints.append(event["params"]["text"])
            if answer := self._answers.pop(event.get("id"), None):
                answer.set_result(event)
        for waiting in self._answers.values():
            waiting.set_exception(ConnectionError("Firefox closed its remote port"))

    async def _call(self, method: str, **params: Any) -> dict[str, Any]:
        self._next += 1
        answer = self._answers[self._next] = asyncio.get_running_loop().create_future()
        await self._socket.send_str(json.dumps({"id": self._next, "method": method, "params": params}))
        try:
            event = await asyncio.wait_for(answer, STUCK_S)
        except TimeoutError:
            raise Stuck(f"no answer to {method}") from None
        assert event["type"] == "success", (method, event)
        result: dict[str, Any] = event["result"]
        return result

    async def open(self, url: str) -> None:
        await self._call("browsingContext.navigate", context=self._tab, url=url, wait="complete")

    async def resize(self, width: int, height: int) -> None:
        await self._call("browsingContext.setViewport", context=self._tab, viewport={"width": width, "height": height})

    async def value(self, expression: str, *, by_hand: bool = False) -> Any:
        """What an expression, or the promise that it is, comes to in the page; anything that JSON can carry.
        `by_hand`: it may do what only a person's hand may."""
        code = f"Promise.resolve({expression}).then(value => JSON.stringify(value ?? null))"
        answer = await self._call(
            "script.evaluate", expression=code, target={"context": self._tab}, awaitPromise=True, userActivation=by_hand
        )
        if answer["type"] == "exception":
            raise PageFailed(answer["exceptionDetails"]["text"])
        return json.loads(answer["result"]["value"])

    async def until(self, condition: str, seconds: float = 60) -> None:
        """Wait until an expression holds in the page."""
        end = time.monotonic() + seconds
        while not await self.value(condition):
            if time.monotonic() > end:
                shown = await self.value("document.body.dataset.phase + ': ' + document.body.innerText")
                raise AssertionError(f"never came: {condition}; the page shows {shown!r}; console: {self.complaints}")
            await asyncio.sleep(0.1)

    async def click(self, selector: str) -> None:
        """A real click at the middle of an element: browsers give sound only to a person's hand."""
        origin = {"type": "element", "element": await self._element(selector)}
        await self._act({"type": "pointer", "id": "mouse", "actions": [
            {"type": "pointerMove", "x": 0, "y": 0, "origin": origin},
            {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0},
        ]})  # fmt: skip

    async def choose(self, selector: str, *files: Path) -> None:
        """Files, as the browser's own window for them gives them to the page."""
        names = [str(file) for file in files]
        await self._call("input.setFiles", context=self._tab, element=await self._element(selector), files=names)

    async def _element(self, selector: str) -> dict[str, str]:
        locator = {"type": "css", "value": selector}
        found = await self._call("browsingContext.locateNodes", context=self._tab, locator=locator)
        return {"sharedId": found["nodes"][0]["sharedId"]}

    async def type(self, text: str) -> None:
        """Keys, into what has the focus; a new line is Enter."""
        keys = ["\ue007" if key == "\n" else key for key in text]
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        await self._act({"type": "key", "id": "keyboard", "actions": actions})

    async def paste(self) -> None:
        """What is on the clipboard, with the keys for it."""
        keys = (("keyDown", CONTROL), ("keyDown", "v"), ("keyUp", "v"), ("keyUp", CONTROL))
        await self._act({"type": "key", "id": "keyboard", "actions": [{"type": a, "value": b} for a, b in keys]})

    async def hold(self, key: str, ms: int) -> None:
        down, up = ({"type": kind, "value": key} for kind in ("keyDown", "keyUp"))
        wait = {"type": "pause", "duration": ms}
        await self._act({"type": "key", "id": "keyboard", "actions": [down, wait, up]})

    async def _act(self, source: dict[str, Any]) -> None:
        await self._call("input.performActions", context=self._tab, actions=[source])
