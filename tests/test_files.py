"""Files written whole: what they replace, what they leave as it was, and what a killed writer left."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from postserve.files import locked, whole_file, write_together

PART = ".one.0123456789abcdef.part"


def write(path: Path, content: bytes) -> None:
    with whole_file(path) as file:
        file.write(content)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o444, 0o664])
def test_a_file_keeps_its_permissions(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "one"
    path.touch()
    path.chmod(mode)
    write(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == mode


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_permissions_of_any_other(tmp_path: Path, mask: int, mode: int) -> None:
    before = os.umask(mask)
    try:
        write(tmp_path / "one", b"new")
    finally:
        os.umask(before)
    assert (tmp_path / "one").stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_followed_and_stays(tmp_path: Path, there: bool) -> None:
    (tmp_path / "elsewhere").mkdir()
    target = tmp_path / "elsewhere" / "target"
    if there:
        target.write_bytes(b"old")
    for name, to in (("one", Path("elsewhere/target")), ("two", Path("one"))):
        (tmp_path / name).symlink_to(to)
    write(tmp_path / "two", b"new")
    assert target.read_bytes() == b"new"
    assert (tmp_path / "two").readlink() == Path("one")
    assert names(tmp_path) == ["elsewhere", "one", "two"]
    assert names(tmp_path / "elsewhere") == ["target"]


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(IsADirectoryError, match="wanted a file"):
        write(tmp_path / "folder", b"new")
    with pytest.raises(FileExistsError, match="wanted a file"):
        write(tmp_path / "pipe", b"new")
    assert names(tmp_path) == ["folder", "pipe"]


def test_what_a_killed_writer_left_is_deleted_and_nothing_else(tmp_path: Path) -> None:
    others = [".other.0123456789abcdef.part", ".one.part", ".one.two.0123456789abcdef.part", ".one.0123.part"]
    for name in (PART, *others):
        (tmp_path / name).touch()
    write(tmp_path / "one", b"new")
    assert names(tmp_path) == sorted(["one", *others])
    os.mkfifo(tmp_path / PART)  # nor does a pipe make it wait
    write(tmp_path / "one", b"newer")
    assert names(tmp_path) == sorted(["one", *others])


def test_two_writers_of_one_path_do_not_delete_each_others_file(tmp_path: Path) -> None:
    path = tmp_path / "one"
    with whole_file(path) as slow:
        slow.write(b"sl")
        write(path, b"quick")
        assert path.read_bytes() == b"quick"
        slow.write(b"ow")
    assert path.read_bytes() == b"slow"
    assert names(tmp_path) == ["one"]


WRITES_FOR_EVER = """
import sys
from pathlib import Path
from postserve.files import whole_file
with whole_file(Path(sys.argv[1])) as file:
    print("writing", flush=True)
    while True:
        file.write(b"x")
        file.flush()
        file.seek(0)
"""


def test_a_writer_that_is_killed_leaves_the_old_file_and_the_next_one_cleans_up(tmp_path: Path) -> None:
    path = tmp_path / "one"
    path.write_bytes(b"old")
    writer = subprocess.Popen([sys.executable, "-c", WRITES_FOR_EVER, path], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    writer.stdout.readline()
    write(path, b"new")
    assert len(names(tmp_path)) == 2, "the file of a writer that is alive"
    writer.send_signal(signal.SIGKILL)
    writer.communicate()
    assert path.read_bytes() == b"new"
    assert len(names(tmp_path)) == 2
    write(path, b"newer")
    assert names(tmp_path) == ["one"]


def test_a_writer_deletes_nothing_of_another_target_in_its_folder(tmp_path: Path) -> None:
    for name in ("one", "two"):
        command = [sys.executable, "-c", WRITES_FOR_EVER, str(tmp_path / name)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            writer.kill()
    assert [name[:5] for name in names(tmp_path)] == [".one.", ".two."]
    with whole_file(tmp_path / "three") as slow:
        slow.write(b"slow")
        with locked(tmp_path, wait=True):
            write_together(tmp_path, {"one": b"new"})
    two, *others = [name for name in names(tmp_path) if name != ".lock"]
    assert two.startswith(".two.")
    assert others == ["one", "three"]
    assert (tmp_path / "three").read_bytes() == b"slow"


def test_files_that_are_written_together_are_nobodys_leftovers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def meanwhile(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, "replace", replace)
        write(tmp_path / "two", b"quick")
        replace(source, target)

    monkeypatch.setattr(os, "replace", meanwhile)
    write_together(tmp_path, {"one": b"new", "two": b"newer"})
    assert names(tmp_path) == ["one", "two"]
    assert (tmp_path / "two").read_bytes() == b"newer"
