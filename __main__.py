"""`python -m orthotrace` is the command `orthotrace`."""

import sys

from .mapping.cli import main

if __name__ == "__main__":
    sys.exit(main())
