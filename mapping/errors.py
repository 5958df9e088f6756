"""What this folder refuses, as one sentence that a person can act on."""

from .. import OrthoTraceError


class MappingError(OrthoTraceError):
    """A region, a map file or a truth is not what was wanted."""


class CellsFailed(OrthoTraceError):
    """Some cells failed and the others are done: the command ends with exit code 3."""
