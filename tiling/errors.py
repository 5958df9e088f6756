"""What this folder refuses, as one sentence that a person can act on."""

from .. import OrthoTraceError


class TilingError(OrthoTraceError):
    """Imagery, an OSM extract, a grid or a layer is not what was wanted."""


class StorageError(TilingError):
    """The disk is full or a folder cannot be written: it ends a run, not one cell."""
