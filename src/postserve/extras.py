"""The extras that commands need."""

import sys
from typing import NoReturn

EXTRAS = {"data": "data"} | dict.fromkeys(
    ("serve", "rebuild", "export", "simulate-traffic", "backup"), "service"
)
"""The extra of a command, where it is not `experiments`."""


def refuse_without_extra(missing: ModuleNotFoundError) -> NoReturn:
    """Say in one line what is not installed, and which extra the command needs; exit with status 2."""
    library = (missing.name or "").partition(".")[0]
    if library in ("", "postserve"):
        raise missing
    command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    wanted = f"pip install 'postserve[{EXTRAS.get(command, 'experiments')}]'"
    print(f"postserve: {library} is not installed, wanted: {wanted}", file=sys.stderr)
    raise SystemExit(2) from missing
