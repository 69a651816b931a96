"""How much an attack does: little in `make test`, much in `make test-attack`."""

import os

LONG = bool(os.environ.get("POSTSERVE_ATTACK"))
