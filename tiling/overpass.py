"""Roads and buildings of a small area from an Overpass server, by osmnx.

osmnx asks and waits as the server's rules want; what comes back is checked here (osmnx only logs
that an answer is partial) and read like a file, so multipolygons and bow ties end up the same.
"""

import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from operator import itemgetter
from pathlib import Path
from typing import Any

import osmium
import osmnx
from osmium.osm import mutable
from pyproj import Geod
from shapely import MultiPolygon, Polygon

from .elements import elements
from .errors import TilingError
from .osm import KEYS, Extract, extract_of
from .sieve import Sieve

LARGEST_KM2 = 100.0
"""Area up to which a server is asked; beyond, an extract is faster and a kindness to the server."""

_BUSY = (429, 504)
"""Status codes after which osmnx waits and asks again, for ever."""

_FILE = "wanted its features, or an extract (.osm.pbf) of the area instead"

Answer = dict[str, Any]


def read_overpass(
    polygon_wgs84: Polygon | MultiPolygon,
    endpoint: str | None = None,
    timeout_s: float = 180.0,
    tries: int = 3,
) -> Extract:
    """The roads and buildings in a polygon (degrees), as an Overpass server has them now.

    `endpoint` is the address without "/interpreter", None the public one that osmnx knows, whose
    rate limit is kept; `tries` is how often a busy server is asked. What contains the whole polygon
    is not found: servers search by outlines. Not for two threads at once, as osmnx's settings are
    global. TilingError for an area above LARGEST_KM2, a partial answer, and a server that refuses,
    cannot be reached or stays busy.
    """
    _check_area(polygon_wgs84)
    answers: list[Answer] = []
    name = endpoint or osmnx.settings.overpass_url
    with _settings(endpoint, timeout_s, _collector(name, answers, tries)):
        try:
            # In this mode osmnx stops, with an InterruptedError, when all answers are there.
            with suppress(InterruptedError):
                osmnx.features_from_polygon(polygon_wgs84, {"highway": True, "building": True})
        except OSError as problem:  # the root of what requests raises
            raise TilingError(f"{name} cannot be reached ({problem}); {_FILE}") from problem
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answer.osm.pbf"
        _write(answers, path)
        sieve = Sieve.of(elements(path, KEYS), polygon_wgs84.bounds)
    taken = [answer.get("osm3s", {}).get("timestamp_osm_base") for answer in answers]
    snapshot = min((told for told in taken if told), default=None)
    return extract_of(sieve, snapshot)


def _check_area(polygon: Polygon | MultiPolygon) -> None:
    if polygon.is_empty or not polygon.is_valid:
        raise TilingError(f"the area to ask for is no valid polygon: {polygon.wkt[:80]}")
    km2 = abs(Geod(ellps="WGS84").geometry_area_perimeter(polygon)[0]) / 1e6
    if km2 > LARGEST_KM2:
        raise TilingError(
            f"the area is {km2:.0f} km2, and an Overpass server is asked for {LARGEST_KM2:.0f} at "
            "most; wanted an extract (.osm.pbf, for example from Geofabrik) as the region's OSM"
        )


def _collector(name: str, answers: list[Answer], tries: int) -> Callable[..., None]:
    """A hook for requests, which is called with each response before osmnx sees it."""
    busy = 0

    def collect(response: Any, **_: Any) -> None:
        nonlocal busy
        if not response.request.url.endswith("/interpreter"):
            return  # the page that tells when the server is free
        if response.status_code in _BUSY:
            busy += 1
            if busy < tries:
                return  # osmnx waits a minute and asks again
            response.close()  # its body is not read, so its socket would stay open
            raise TilingError(f"{name} is busy (status {response.status_code}); {_FILE}")
        if response.status_code != 200:
            gist = " ".join(response.text.split())[:200]
            raise TilingError(f"{name} refuses (status {response.status_code}: {gist}); {_FILE}")
        answers.append(_checked(name, response))

    return collect


def _checked(name: str, response: Any) -> Answer:
    try:
        answer: Answer = response.json()
        whole = "elements" in answer
    except (ValueError, TypeError) as problem:
        raise TilingError(f"{name} answers with no JSON ({problem}); {_FILE}") from problem
    if "remark" in answer:
        raise TilingError(f"{name} gives only a part ({answer['remark']}); {_FILE}")
    if not whole:
        raise TilingError(f"{name} answers without elements; {_FILE}")
    return answer


@contextmanager
def _settings(
    endpoint: str | None, timeout_s: float, collect: Callable[..., None]
) -> Iterator[None]:
    """osmnx's global settings for one call, and Python's name lookup, which it replaces."""
    wanted: dict[str, Any] = {
        "use_cache": False,
        "cache_only_mode": True,
        "overpass_rate_limit": endpoint is None,
        "requests_timeout": timeout_s,
        "requests_kwargs": {"hooks": {"response": collect}},
        "doh_url_template": None,  # no names told to a third party
    }
    if endpoint is not None:
        wanted["overpass_url"] = endpoint.rstrip("/")
    before = {key: getattr(osmnx.settings, key) for key in wanted}
    lookup = socket.getaddrinfo
    try:
        for key, value in wanted.items():
            setattr(osmnx.settings, key, value)
        yield
    finally:
        socket.getaddrinfo = lookup
        for key, value in before.items():
            setattr(osmnx.settings, key, value)


def _write(answers: list[Answer], path: Path) -> None:
    """The answers' elements as one OSM file, each once, in the order that readers need."""
    order = ("node", "way", "relation")
    found = {
        (order.index(element["type"]), element["id"]): element
        for answer in answers
        for element in answer["elements"]
        if element["type"] in order
    }
    with osmium.SimpleWriter(str(path)) as writer:
        for _, element in sorted(found.items(), key=itemgetter(0)):
            told = {"id": element["id"], "tags": element.get("tags", {})}
            if element["type"] == "node":
                place = element["lon"], element["lat"]
                writer.add_node(mutable.Node(location=place, **told))
            elif element["type"] == "way":
                writer.add_way(mutable.Way(nodes=element["nodes"], **told))
            else:
                members = [(m["type"][0], m["ref"], m["role"]) for m in element["members"]]
                writer.add_relation(mutable.Relation(members=members, **told))
