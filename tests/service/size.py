"""How much the tests of faults do: little in `make test`, much in `make test-crash`."""

import os

LONG = bool(os.environ.get("POSTSERVE_CRASH"))
