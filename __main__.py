"""`python -m orthotrace` is the command `orthotrace`."""

from .mapping.cli import main

if __name__ == "__main__":
    main()
