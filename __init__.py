"""OrthoTrace: from aerial imagery and an incomplete OpenStreetMap to a better map.

This file imports nothing: every folder may take the one root error from here.
"""

__version__ = "0.1.0"


class OrthoTraceError(Exception):
    """What a person can mend: one sentence with the file, what was found, what was wanted."""
