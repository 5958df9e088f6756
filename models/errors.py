"""What this folder refuses, as one sentence that a person can act on."""

from .. import OrthoTraceError


class ModelError(OrthoTraceError):
    """A model file, its training data or a recipe is not what was wanted."""
