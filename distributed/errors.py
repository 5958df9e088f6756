"""What this folder refuses, as one sentence that a person can act on."""

from .. import OrthoTraceError


class DistributedError(OrthoTraceError):
    """Learners, their topology or their links are not what was wanted."""


class Refused(DistributedError):
    """A learner does not use what it was handed, and has used nothing of it.

    `reason` is one word to count by: "schema", "length", "dtype", "nonfinite" or "message".
    """

    def __init__(self, reason: str, sentence: str) -> None:
        super().__init__(sentence)
        self.reason = reason
