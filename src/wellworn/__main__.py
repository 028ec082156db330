"""`python -m wellworn`: the command line."""

from __future__ import annotations

from wellworn.cli import main

if __name__ == "__main__":
    main()
