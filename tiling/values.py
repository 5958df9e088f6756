"""The values of labels: the one place that says how they are stored, for all who read them."""

NO, YES = 0, 1

UNKNOWN = 255
"""Nobody knows: never trained on, never scored."""
