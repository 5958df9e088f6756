"""What goes wrong, and when: the script of a run in virtual time."""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What happens to a learner."""

    DIES = "dies before match"
    """At the time, or as soon as no exchange is under way."""

    CLAIMED = "dies holding a claim"
    """At the first match from that time on, before anything is sent."""

    SENDING = "dies mid-send"
    """Half-way through the first transfer from that time on: neither side has the other's model."""

    SENT = "dies between send and receive"
    """At the end of the first transfer from that time on: the other side has its model."""

    HALVED = "loses a reply"
    """The first model sent to it from that time on is lost; the other side has its model."""

    PAUSES = "pauses"
    """Stands still from that time on for `lasts` seconds, as after SIGSTOP."""

    RETURNS = "comes back"
    """Dies as in DIES, and joins anew `lasts` seconds after the time."""

    JOINS = "joins late"
    """Is not there before that time."""

    NAN = "sends NaN"
    """The first model that it sends from that time on is not finite."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong with one learner."""

    kind: Kind
    rank: int
    at: float
    """Seconds from the start."""

    lasts: float = 0.0
    """Seconds; of PAUSES and RETURNS only."""

    def __post_init__(self) -> None:
        if self.at < 0 or self.lasts < 0:
            raise ValueError(f"a fault has its time and length at 0 or later, not {self}")
        if (self.lasts > 0) != (self.kind in (Kind.PAUSES, Kind.RETURNS)):
            raise ValueError(f"to pause and to come back lasts a while, and nothing else: {self}")
