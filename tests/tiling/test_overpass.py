"""Overpass, against a stand-in server in this process."""

import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import osmnx
import pytest
from orthotrace.tiling.errors import TilingError
from orthotrace.tiling.overpass import read_overpass
from shapely import Polygon, box

AREA = box(25.0, 60.0, 25.01, 60.01)

PLACES = [(25.001, 60.001), (25.002, 60.001), (25.002, 60.002), (25.001, 60.002)]
PLACES += [(25.0013, 60.0013), (25.0016, 60.0013), (25.0016, 60.0016), (25.0013, 60.0016)]

ELEMENTS: list[dict[str, Any]] = [
    {"type": "relation", "id": 7, "tags": {"type": "multipolygon", "building": "yes"}}
    | {"members": [{"type": "way", "ref": r, "role": n} for r, n in ((1, "outer"), (2, "inner"))]},
    {"type": "way", "id": 1, "nodes": [1, 2, 3, 4, 1]},
    {"type": "way", "id": 2, "nodes": [5, 6, 7, 8, 5]},
    {"type": "way", "id": 3, "nodes": [1, 3], "tags": {"highway": "primary", "width": "9"}},
    {"type": "way", "id": 4, "nodes": [2, 4], "tags": {"highway": "footway"}},
    *({"type": "node", "id": n, "lon": x, "lat": y} for n, (x, y) in enumerate(PLACES, 1)),
]
WHOLE = {"osm3s": {"timestamp_osm_base": "2024-05-01T10:00:00Z"}, "elements": ELEMENTS}


@dataclass
class Server:
    """What the stand-in answers, and what it was asked."""

    address: str = ""
    status: int = 200
    body: bytes = b""
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    told = Server(body=json.dumps(WHOLE).encode())

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            told.asked.append(parse_qs(self.rfile.read(length).decode())["data"][0])
            self.send_response(told.status)
            self.end_headers()
            self.wfile.write(told.body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: the tests look at what was asked."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        told.address = f"http://127.0.0.1:{http.server_port}/api"
        yield told
        http.shutdown()
        thread.join()


def test_a_whole_answer_is_read_like_a_file(server: Server) -> None:
    told = read_overpass(AREA, server.address)
    assert told.roads["osm_id"].tolist() == ["way/3"]
    assert told.roads["tags"].tolist() == ['{"highway": "primary", "width": "9"}']
    assert told.buildings["osm_id"].tolist() == ["relation/7"]
    [courtyard] = told.buildings.geometry.item().interiors
    assert Polygon(courtyard).equals(Polygon(PLACES[4:]))
    assert told.snapshot == "2024-05-01T10:00:00Z"
    assert told.dropped == {"road: path": 1}
    [query] = server.asked
    assert "highway" in query and "building" in query and "25.01" in query


def test_an_area_with_nothing_gives_empty_frames(server: Server) -> None:
    server.body = json.dumps({"elements": []}).encode()
    told = read_overpass(AREA, server.address)
    assert told.roads.empty and told.buildings.empty and told.snapshot is None


def partial(server: Server) -> None:
    remark = 'runtime error: Query timed out in "query" at line 3 after 25 seconds.'
    server.body = json.dumps({**WHOLE, "elements": ELEMENTS[5:], "remark": remark}).encode()


def failing(server: Server) -> None:
    server.status, server.body = 400, b"<html>\n<p>parse error: ';' expected</p>\n</html>"


def busy(server: Server) -> None:
    server.status = 504


def page(server: Server) -> None:
    server.body = b"<html>back soon</html>"


def other_json(server: Server) -> None:
    server.body = b"{}"


def list_json(server: Server) -> None:
    server.body = b"[]"


@pytest.mark.parametrize(
    ("state", "found"),
    [
        (partial, "gives only a part (runtime error: Query timed out"),
        (failing, "refuses (status 400: <html> <p>parse error"),
        (busy, "is busy (status 504)"),
        (page, "answers with no JSON"),
        (other_json, "answers without elements"),
        (list_json, "answers without elements"),
    ],
)
def test_any_other_answer_is_an_error(
    server: Server, state: Callable[[Server], None], found: str
) -> None:
    state(server)
    with pytest.raises(TilingError) as caught:
        read_overpass(AREA, server.address, tries=1)
    said = str(caught.value)
    assert said.startswith(server.address) and found in said
    assert "; wanted" in said and "\n" not in said


def test_a_server_that_is_not_there_is_an_error() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/api"
    with pytest.raises(TilingError, match="cannot be reached"):
        read_overpass(AREA, address)


def test_osmnx_is_left_as_it_was(server: Server) -> None:
    names = [name for name in dir(osmnx.settings) if name.islower() and not name.startswith("_")]
    before = {name: getattr(osmnx.settings, name) for name in names}
    lookup = socket.getaddrinfo
    read_overpass(AREA, server.address)
    server.status = 400
    with pytest.raises(TilingError):
        read_overpass(AREA, server.address)
    assert {name: getattr(osmnx.settings, name) for name in names} == before
    assert socket.getaddrinfo is lookup


def test_a_large_area_is_for_an_extract(server: Server) -> None:
    with pytest.raises(
        TilingError, match=r"the area is \d{3} km2, .* wanted an extract \(\.osm\.pbf"
    ):
        read_overpass(box(25.0, 60.0, 25.2, 60.1), server.address)
    assert server.asked == []


def test_an_invalid_area_is_refused(server: Server) -> None:
    bow = Polygon([(25.0, 60.0), (25.01, 60.01), (25.01, 60.0), (25.0, 60.01)])
    with pytest.raises(TilingError, match="no valid polygon"):
        read_overpass(bow, server.address)
