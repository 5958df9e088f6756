"""Names of streets, some of them awkward on purpose."""

import numpy as np

_FIRST = (
    "Maple Cedar Willow Hickory Dogwood Laurel Sycamore Magnolia Juniper Hawthorn Chestnut Poplar "
    "Meadow Orchard Mill Quarry Ferry Chapel Depot Mercer Hollins Randolph Tazewell Lunenburg "
    "Fairfax Carver Whitfield Boydton Kerr Gaston Roanoke Staunton Dan Brandywine Larkspur Heron"
).split()

_LAST = ("Street", "Avenue", "Drive", "Lane", "Court", "Road", "Way", "Place", "Circle")

_AWKWARD = (
    "<b>Main</b> Street",
    "O'Brien & Sons Road",
    "Café Lane",
    '"Old" Mill Road',
    "Piñon Court",
    "<img src=x onerror=alert(1)> Way",
    "Straße der Töpfer",
    "桜 Drive",
)
"""Legal values of OSM's `name`: whoever shows them must show them as text."""


class Names:
    """Gives one name after another, never the same twice."""

    def __init__(self, rng: np.random.Generator) -> None:
        plain = [f"{first} {last}" for first in _FIRST for last in _LAST]
        order = rng.permutation(len(plain))
        self._names: list[str] = [plain[place] for place in order.tolist()]
        for place, name in enumerate(_AWKWARD):
            self._names.insert(1 + 3 * place, name)
        self._given = 0

    def next(self) -> str:
        self._given += 1
        if self._given <= len(self._names):
            return self._names[self._given - 1]
        return f"Road {self._given}"
