"""Threads that compute give way, and leave the process as it was."""

import gc
import sys
import threading

import pytest

from postserve.service.model.giving_way import SWITCH, giving_way


def test_the_process_is_as_before_however_blocks_overlap() -> None:
    before, inside, go_on = sys.getswitchinterval(), threading.Event(), threading.Event()

    def work() -> None:
        with giving_way():
            inside.set()
            assert go_on.wait(60.0)

    other = threading.Thread(target=work)
    with giving_way(), giving_way():
        other.start()
        assert inside.wait(60.0)
    assert sys.getswitchinterval() == pytest.approx(SWITCH, rel=0.01)  # the other one still works
    assert not gc.isenabled()
    go_on.set()
    other.join()
    assert (sys.getswitchinterval(), gc.isenabled()) == (before, True)


def test_an_error_changes_nothing_of_that() -> None:
    before = sys.getswitchinterval()
    gc.disable()
    try:
        with pytest.raises(ZeroDivisionError), giving_way():
            raise ZeroDivisionError
        assert (sys.getswitchinterval(), gc.isenabled()) == (before, False)
    finally:
        gc.enable()
