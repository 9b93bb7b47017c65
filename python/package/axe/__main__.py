"""`python -m axe`: the command `axe`."""

from axe._drivers import axe

raise SystemExit(axe())
