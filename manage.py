#!/usr/bin/env python
"""Django's command line; `.venv/bin/kaiweb` is the same thing under a shorter name."""

from kaiweb.__main__ import main

if __name__ == "__main__":
    main()
