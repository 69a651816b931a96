"""What a command needs of its terminal: errors as one line, and interrupts that are never lost."""

import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from io import TextIOWrapper
from typing import Any

from rich.console import Console

from postserve.errors import PostserveError

INTERRUPTED, REFUSED = 130, 2


def say(text: str, console: Console | None = None) -> None:
    """Print a line as it is: neither wrapped nor marked up."""
    (console or Console()).print(text, soft_wrap=True, markup=False, highlight=False)


@contextmanager
def errors_in_one_line(*, resumes: bool = False) -> Iterator[None]:
    """Report an error that the user can fix in one line, and exit with status 2; with 130 if interrupted.

    `resumes` is whether the same command goes on from where it was interrupted.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a run that is ended can be resumed, too
    ended = threading.Event()
    sys.unraisablehook = partial(_interrupt_again, ended)
    try:
        yield
    except (PostserveError, OSError) as error:
        say(f"postserve: {_message(error)}", Console(stderr=True))
        raise SystemExit(REFUSED) from error
    except KeyboardInterrupt as interrupt:
        going_on = "; the same command resumes from here" if resumes else ""
        say(f"postserve: interrupted{going_on}", Console(stderr=True))
        raise SystemExit(INTERRUPTED) from interrupt
    finally:
        ended.set()
        sys.unraisablehook = sys.__unraisablehook__


def _message(error: Exception) -> str:
    if not isinstance(error, OSError):
        return str(error)
    text = f"{error.strerror}: {error.filename}" if error.filename is not None else str(error)
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return f"{text}, wanted more room; what is finished is kept" if full else text


def _interrupt_again(ended: threading.Event, lost: Any) -> None:
    """An interrupt that came where Python cannot raise it is sent again a second later."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return

    def interrupt() -> None:
        if not ended.is_set():
            os.kill(os.getpid(), signal.SIGINT)

    later = threading.Timer(1.0, interrupt)
    later.daemon = True
    later.start()


def replace_unprintable() -> None:
    """A terminal that cannot show a sign gets another in its place."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
