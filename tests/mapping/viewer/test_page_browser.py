"""The page in a real browser, opened from disk: it draws, loads nothing, and takes text as text."""

import base64
import json
import os
import select
import shutil
import subprocess
from pathlib import Path
from typing import Any, Self

import geopandas
import numpy as np
import pytest
import shapely
from orthotrace.mapping.viewer.page import write_page
from orthotrace.mapping.viewer.report import Table
from orthotrace.mapping.viewer.views import VectorView, raster_view
from orthotrace.tiling.grid import Cell, Grid
from orthotrace.tiling.layer import Layer, Pixels

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

HOSTILE = "<img src=x onerror=\"document.title='hacked'\"></script><script>alert(1)</script>"
PATIENCE = 120
"""Seconds of silence after which the browser is given up, so that no test hangs for ever."""

WIDE, NARROW = (1280, 800), (390, 780)

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--no-first-run",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-unsafe-swiftshader",
    "--remote-debugging-pipe",
)


class Browser:
    """A headless Chromium that is spoken to over a pair of pipes (its DevTools protocol)."""

    def __init__(self, profile: Path, size: tuple[int, int]) -> None:
        theirs_in, self._to = os.pipe()
        self._from, theirs_out = os.pipe()
        # The browser reads its descriptor 3 and writes its 4; a shell puts our pipes there.
        self._process = subprocess.Popen(
            [
                "bash",
                "-c",
                f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}',
                "browser",
                str(CHROMIUM),
                *FLAGS,
                f"--user-data-dir={profile}",
                f"--window-size={size[0]},{size[1]}",
            ],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._unread = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        target = self.do("Target.createTarget", url="about:blank")["targetId"]
        attached = self.do("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for part in ("Page", "Runtime", "Network", "Log"):
            self.do(f"{part}.enable")
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._to)
        os.close(self._from)
        self._process.terminate()
        self._process.wait()

    def do(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events that come before it are kept."""
        self._number += 1
        told: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            told["sessionId"] = self._session
        os.write(self._to, json.dumps(told).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def tell(self, script: str) -> Any:
        """What a script (a promise is awaited) evaluates to."""
        found = self.do(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in found:
            raise RuntimeError(f"{script}: {found['exceptionDetails']}")
        return found["result"].get("value")

    def open(self, page: Path) -> None:
        """Go to a page and wait until its map is drawn."""
        self.do("Page.navigate", url=page.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())
        self.settle()

    def settle(self) -> None:
        """Wait until the page says that all it was asked for is drawn."""
        self.tell(
            "new Promise((done) => {"
            " const root = document.documentElement;"
            " const look = () => { if (root.dataset.ready) done(true); };"
            " new MutationObserver(look).observe(root, { attributes: true }); look(); })"
        )

    def key(self, key: str, code: str = "") -> None:
        for kind in ("keyDown", "keyUp"):
            self.do("Input.dispatchKeyEvent", type=kind, key=key, code=code or key)

    def click(self, x: float, y: float) -> None:
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.do("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def picture(self) -> bytes:
        return base64.b64decode(self.do("Page.captureScreenshot", format="png")["data"])

    def addresses(self) -> list[str]:
        """Everything the page asked for."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event["method"] == "Network.requestWillBeSent"
        ]

    def complaints(self) -> list[str]:
        """Errors that reached the console."""
        return [
            json.dumps(event["params"])
            for event in self.events
            if event["method"] == "Runtime.exceptionThrown"
            or (
                event["method"] == "Runtime.consoleAPICalled" and event["params"]["type"] == "error"
            )
            or (
                event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error"
            )
        ]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._from], [], [], PATIENCE)
            more = os.read(self._from, 1 << 20) if ready else b""
            if not more:
                raise RuntimeError("the browser ended, or says nothing any more")
            self._unread += more
        message, self._unread = self._unread.split(b"\0", 1)
        told: dict[str, Any] = json.loads(message)
        return told


# -- a small place to look at ------------------------------------------------------------------

GRID = Grid("EPSG:32618", (1.0, 1.0), cell=256, tile=16)
CELL = Cell(-4000000 // 256, 300000 // 256)


def layer(folder: Path, bands: tuple[str, ...], nodata: int | None) -> Layer:
    made = Layer(folder, GRID, bands, nodata=nodata).save()
    data_CHW = np.full((len(bands), 256, 256), 90 if nodata is None else 0, np.uint8)
    data_CHW[0, 100:140] = 1
    made.write(CELL, Pixels(data_CHW, np.ones((256, 256), bool)))
    return made


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with one sure building in the middle, an unsure one beside it, and a road."""
    folder = tmp_path_factory.mktemp("place")
    window = GRID.window(CELL)
    left, bottom, right, top = GRID.bounds(window)
    x, y = (left + right) / 2, (bottom + top) / 2
    buildings = geopandas.GeoDataFrame(
        {
            "id": ["building/1", "building/2"],
            "score": [0.9, 0.3],
            "osm": ["new", "same"],
            "tags": json.dumps({"name": HOSTILE}),
        },
        geometry=[shapely.box(x + d - 20, y - 20, x + d + 20, y + 20) for d in (0, 60)],
        crs=GRID.crs,
    )
    osm = geopandas.GeoDataFrame(
        {"osm_id": ["way/7;way/8;javascript:alert(1)"], "name": [HOSTILE]},
        geometry=[shapely.LineString([(left, y), (right, y)])],
        crs=GRID.crs,
    )
    return write_page(
        folder / "index.html",
        title=f"Place {HOSTILE}",
        rasters=[
            raster_view(
                layer(folder / "i", ("red", "green", "blue"), None),
                window,
                "Imagery",
                "imagery",
                shown=True,
            ),
            raster_view(layer(folder / "l", ("road", "building"), 255), window, "g0", "labels"),
        ],
        vectors=[
            VectorView("Buildings", "map", buildings, "building", shown=True),
            VectorView("New buildings", "comparison", buildings[:1], "new"),
            VectorView("Roads", "osm", osm, "osm"),
        ],
        tables=[Table(HOSTILE, ("", "F1"), ((HOSTILE, 0.5),))],
        attribution=HOSTILE,
    )


def seen(browser: Browser, layer: str) -> bool:
    """Whether the switch of a view of that name and group is on."""
    group, name = layer.split("/")
    return bool(
        browser.tell(
            f"[...document.querySelectorAll('#group-{group} label')]"
            f".find((l) => l.children[2].textContent === {json.dumps(name)}).control.checked"
        )
    )


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_it_opens_answers_and_asks_nothing(
    place: Path, size: tuple[int, int], tmp_path: Path
) -> None:
    with Browser(tmp_path, size) as browser:
        browser.open(place)
        box = browser.tell(
            "(({x, y, width, height}) => [x + width / 2, y + height / 2])"
            "(document.getElementById('map').getBoundingClientRect())"
        )
        browser.click(*box)
        card = browser.tell("document.querySelector('.facts article').textContent")
        assert "building/1" in card and HOSTILE in card
        assert "score0.9" in card

        browser.tell("document.getElementById('swipe').click()")
        browser.key("2")
        assert seen(browser, "comparison/New buildings") and not seen(browser, "map/Buildings")
        assert browser.tell("document.querySelector('.facts')") is None

        browser.tell("document.getElementById('swipe').click()")
        browser.key("3")
        browser.settle()
        browser.click(*box)
        links = "[...document.querySelectorAll('.facts a')].map((a) => a.href)"
        assert [address.split("#")[0] for address in browser.tell(links)] == [
            "https://www.openstreetmap.org/way/7",
            "https://www.openstreetmap.org/way/8",
            "https://www.openstreetmap.org/edit",
        ]
        assert browser.tell("document.querySelectorAll('img').length") == 0
        assert browser.tell("document.title") == f"Place {HOSTILE}"
        assert browser.tell("document.documentElement.scrollWidth <= window.innerWidth")
        assert browser.complaints() == []
        assert {address.split(":")[0] for address in browser.addresses()} <= {
            "file",
            "data",
            "blob",
        }
        files = [address for address in browser.addresses() if address.startswith("file")]
        assert files == [place.as_uri()]


def test_keyboard_slider_and_divider(place: Path, tmp_path: Path) -> None:
    with Browser(tmp_path, WIDE) as browser:
        browser.open(place)
        browser.tell(
            "(() => { const s = document.getElementById('score'); s.value = '0.5';"
            " s.dispatchEvent(new Event('input')); })()"
        )
        left = browser.tell("document.getElementById('score-left').textContent")
        assert left == "1 of 2 features of the map"

        browser.tell("document.querySelector('#map canvas').focus()")
        browser.key("Enter")
        assert "building/1" in browser.tell("document.querySelector('.facts').textContent")
        browser.key("Escape")
        assert browser.tell("document.querySelector('.facts')") is None

        browser.key("s")
        browser.tell("document.getElementById('divider').focus()")
        browser.key("ArrowLeft")
        divider = "document.getElementById('divider').getAttribute('aria-valuenow')"
        assert browser.tell(divider) == "48"
        assert browser.complaints() == []
