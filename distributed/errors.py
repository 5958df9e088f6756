"""What this folder refuses, as one sentence that a person can act on."""

from .. import OrthoTraceError


class DistributedError(OrthoTraceError):
    """Learners, their topology or their links are not what was wanted."""
