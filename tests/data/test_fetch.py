"""Fetching from a real, local server: what is kept, what is refused, and that no file is incomplete."""

import base64
import gzip
import hashlib
import io
import os
import re
import signal
import subprocess
import sys
import threading
import traceback
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.pretending import pretend
from tests.untyped import untyped
from tests.waiting import PATIENCE
from typer.testing import CliRunner

from postserve import InvalidInput
from postserve.cli import app
from postserve.data import SETS, DataSet, fetch, fetching, find, read_checked
from postserve.data.showing import whereabouts

CONTENT = bytes(range(256)) * 1000
RDA = Path(__file__).parents[1] / "rda"
nan = np.nan
RATINGS = np.array(  # as R printed them; both zeros are ratings
    [
        [2.13, 9.56, nan, nan, nan],
        [nan, 8.75, 9.16, nan, nan],
        [nan, nan, 0.0, 0.0, nan],
        [nan, nan, nan, -2.4, 0.19],
        [-8.71, nan, nan, nan, 6.15],
        [nan, 2.87, nan, nan, nan],
    ],
    dtype=np.float32,
)


class Server(ThreadingHTTPServer):
    """Answers each path with its bytes; `short` and `stalling` paths end, or wait, half-way through them."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: dict[str, bytes] = {}
        self.headers: dict[str, dict[str, str]] = {}
        self.asked: list[str] = []
        self.users: list[str | None] = []
        self.half_sent, self.go_on = threading.Event(), threading.Event()

    def at(self, path: str, content: bytes, **headers: str) -> str:
        self.answers[path] = content
        self.headers[path] = {name.replace("_", "-"): value for name, value in headers.items()}
        return f"http://127.0.0.1:{self.server_port}{path}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.server.users.append(self.headers.get("Authorization"))
        content = self.server.answers.get(self.path)
        if content is None:
            self.send_error(404 if "busy" not in self.path else 503)
            return
        headers = {"Content-Length": str(len(content)), **self.server.headers[self.path]}
        self.send_response(302 if "Location" in headers else 200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        whole = "short" not in self.path and "stalling" not in self.path
        with suppress(ConnectionError):  # who asked may have heard enough
            self.wfile.write(content if whole else content[: len(content) // 2])
        self.wfile.flush()
        if "stalling" in self.path:
            self.server.half_sent.set()
            self.server.go_on.wait(PATIENCE)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Server() as served:
        thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield served
        served.go_on.set()
        served.shutdown()
        thread.join()


@pytest.fixture
def known(server: Server, monkeypatch: pytest.MonkeyPatch) -> DataSet:
    """ACTG 175, as if it were CONTENT and on our server."""
    return served(server, monkeypatch, "actg175", CONTENT, CONTENT)


def served(
    server: Server, monkeypatch: pytest.MonkeyPatch, name: str, download: bytes, kept: bytes, **changes: Any
) -> DataSet:
    """A data set with its download on our server, of which these bytes are kept."""
    digits = hashlib.sha256(download).hexdigest()
    address = server.at(f"/{name}", download)
    return pretend(monkeypatch, name, kept, address=address, download=f"sha256:{digits}", **changes)


def zipped(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def damaged(content: bytes, at: int, *others: int) -> bytes:
    """The same, with some bytes replaced."""
    return content[:at] + bytes(others) + content[at + len(others) :]


WHOLE = zipped(**{"ml-100k/u.data": CONTENT})
PACKED, CENTRAL = 30 + len("ml-100k/u.data"), WHOLE.index(b"PK\x01\x02")


def in_folder(folder: Path) -> set[str]:
    """All files except locks."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)) for path in found}


def refusal(name: str, folder: Path, **options: Any) -> str:
    """What is said; nothing of a download may stay, neither in the folder nor beside it."""
    before = in_folder(folder)
    with pytest.raises(InvalidInput) as refused:
        fetch(name, folder=folder, **options)
    assert in_folder(folder) == before
    return str(refused.value)


def test_a_file_is_fetched_once(known: DataSet, server: Server, tmp_path: Path) -> None:
    file = fetch("actg175", folder=tmp_path)
    assert file == tmp_path / "actg175" / "ACTG175.txt"
    assert file.read_bytes() == CONTENT
    assert in_folder(tmp_path) == {"actg175/ACTG175.txt"}
    assert fetch("actg175", folder=str(tmp_path)) == fetch("actg175", folder=file.parent) == file
    assert server.asked == ["/actg175"]


def test_without_a_folder_it_goes_where_it_is_looked_for(
    known: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("POSTSERVE_DATA", raising=False)
    for variable in ("POSTSERVE_CACHE", "POSTSERVE_DATA"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
        assert fetch("actg175") == find("actg175") == tmp_path / variable / known.place


@pytest.mark.parametrize("wrong", [CONTENT[:-1], CONTENT + b"x", CONTENT[1:] + b"x", b""])
def test_what_is_wrong_is_replaced(wrong: bytes, known: DataSet, tmp_path: Path) -> None:
    file = tmp_path / known.place
    file.parent.mkdir()
    file.write_bytes(wrong)
    assert fetch("actg175", folder=tmp_path) == file
    assert read_checked("actg175", tmp_path) == CONTENT
    assert in_folder(tmp_path) == {known.place}


def test_a_users_own_file_of_the_same_name_is_left_alone(
    known: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(known.file).write_text("mine")
    assert fetch("actg175", folder=".") == find("actg175", ".") == Path(known.place)
    assert read_checked("actg175", tmp_path) == CONTENT
    assert Path(known.file).read_text() == "mine"
    assert in_folder(tmp_path) == {known.file, known.place}


def test_a_right_file_in_the_folder_itself_is_used(known: DataSet, server: Server, tmp_path: Path) -> None:
    (tmp_path / known.file).write_bytes(CONTENT)
    assert fetch("actg175", folder=tmp_path) == tmp_path / known.file
    assert server.asked == []


def test_of_a_zip_only_what_is_needed_is_kept(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = zipped(**{"ml-100k/u.data": CONTENT, "ml-100k/u.item": b"other", "../evil": b"other"})
    served(server, monkeypatch, "movielens-100k", archive, CONTENT)
    assert fetch("movielens-100k", folder=tmp_path / "data").read_bytes() == CONTENT
    assert in_folder(tmp_path) == {"data/ml-100k/u.data"}


@pytest.mark.parametrize(
    ("archive", "message"),
    [
        (zipped(**{"ml-100k/other": b""}), "has ml-100k/other, wanted ml-100k/u.data in it"),
        (zipped(), "has nothing, wanted ml-100k/u.data in it"),
        (
            b"PK but no zip",
            "is not a complete zip (BadZipFile: File is not a zip file), wanted one with ml-100k/u",
        ),
        (zipped(**{"ml-100k/u.data": b"short"}), "is cut short: it has 5 bytes, wanted 256,000"),
        (zipped(**{"ml-100k/u.data": CONTENT * 2}), "is too long: it has 512,000 bytes, wanted 256,000"),
        (damaged(WHOLE, PACKED, 0xFF, 0xFF), "is not a complete zip (error: Error -3 while decompressing"),
        (
            damaged(WHOLE, CENTRAL + 8, 1),
            "is not a complete zip (RuntimeError: File 'ml-100k/u.data' is encrypted",
        ),
        (damaged(WHOLE, CENTRAL + 10, 77), "is not a complete zip (NotImplementedError: "),
        (damaged(WHOLE, CENTRAL, 0), "is not a complete zip (BadZipFile: "),
        (damaged(WHOLE, CENTRAL + 42, 0xFF, 0xFF, 0xFF, 0x7F), "is not a complete zip ("),
        (damaged(WHOLE, len(WHOLE) - 10, 0xFF, 0xFF, 0xFF, 0x7F), "is not a complete zip ("),
    ],
)
def test_a_zip_without_what_is_needed(
    archive: bytes, message: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served(server, monkeypatch, "movielens-100k", archive, CONTENT)
    assert message in refusal("movielens-100k", tmp_path)


@pytest.mark.parametrize("made", ["ratings-v2.rda", "ratings-v3.rda"])
def test_jester_out_of_an_r_workspace(
    made: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served(server, monkeypatch, "jester", (RDA / made).read_bytes(), RATINGS.tobytes(), shape=RATINGS.shape)
    file = fetch("jester", folder=tmp_path)
    with np.load(file) as arrays:
        np.testing.assert_array_equal(arrays["ratings"], RATINGS)
    assert read_checked("jester", tmp_path) == RATINGS.tobytes()
    assert fetch("jester", folder=tmp_path) == file
    assert server.asked == ["/jester"]


def test_a_damaged_matrix_is_told_and_replaced(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served(
        server,
        monkeypatch,
        "jester",
        (RDA / "ratings-v2.rda").read_bytes(),
        RATINGS.tobytes(),
        shape=RATINGS.shape,
    )
    monkeypatch.setenv("POSTSERVE_DATA", str(tmp_path))
    file = fetch("jester")
    whole = file.read_bytes()
    central = whole.index(b"PK\x01\x02")
    for damage in (
        damaged(whole, central - 60, *range(40)),
        damaged(whole, central + 8, 1),
        damaged(whole, central + 10, 77),
    ):
        file.write_bytes(damage)
        result = command("list")
        assert result.exit_code == 0
        assert f"wrong: {file} is not a complete .npz (" in result.output
        assert command("fetch", "jester").exit_code == 0
        assert file.read_bytes() == whole


def test_a_conversion_that_gives_other_numbers_is_refused(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = np.where(RATINGS == 0.0, np.float32(nan), RATINGS)  # as if a rating of 0 were none
    served(
        server,
        monkeypatch,
        "jester",
        (RDA / "ratings-v2.rda").read_bytes(),
        others.tobytes(),
        shape=others.shape,
    )
    told = refusal("jester", tmp_path)
    assert re.search(r"the matrix in jester5k.npz, made of http.*, was changed: its sha256 is", told)


def test_an_r_workspace_with_something_else(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = (RDA / "others.rda").read_bytes()
    served(server, monkeypatch, "jester", content, RATINGS.tobytes(), shape=RATINGS.shape)
    assert "has JesterJokes, other, wanted Jester5k" in refusal("jester", tmp_path)
    served(server, monkeypatch, "jester", content, RATINGS.tobytes(), inside="other", shape=RATINGS.shape)
    assert "other is another object, wanted a realRatingMatrix" in refusal("jester", tmp_path)
    served(server, monkeypatch, "jester", content[:-20], RATINGS.tobytes(), shape=RATINGS.shape)
    assert "cannot be read by rdata (EOFError" in refusal("jester", tmp_path)


def test_a_server_that_has_it_not(known: DataSet, server: Server, tmp_path: Path) -> None:
    there_not = server.at("/", b"").rstrip("/")
    assert f"{there_not}/gone answered 404, wanted actg175; nothing" in refusal(
        "actg175", tmp_path, address=f"{there_not}/gone"
    )
    assert "answered 503" in refusal("actg175", tmp_path, address=f"{there_not}/busy")


def test_no_server_at_all(known: DataSet, tmp_path: Path) -> None:
    told = refusal("actg175", tmp_path, address="http://127.0.0.1:1/x")
    assert "http://127.0.0.1:1/x could not be read (" in told
    assert "refused" in told
    assert "could not be read" in refusal("actg175", tmp_path, address="http://127.0.0.1:99999/x")


def test_other_bytes_than_the_publishers(known: DataSet, server: Server, tmp_path: Path) -> None:
    page = b"<html>Please sign in to this network</html>"
    told = refusal("actg175", tmp_path, address=server.at("/login", page))
    got = hashlib.sha256(page).hexdigest()
    assert f"/login gave other bytes than its publisher did ({got}), wanted {known.download}" in told


def test_a_body_that_ends_early(known: DataSet, server: Server, tmp_path: Path) -> None:
    told = refusal("actg175", tmp_path, address=server.at("/short", CONTENT))
    assert "/short could not be read (" in told
    assert "128000" in told


@pytest.mark.parametrize("packed", [False, True])
def test_a_body_without_end_is_left(
    packed: bool, known: DataSet, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "MOST_BYTES", 1_000_000)
    content, told = bytes(50_000_000), []
    headers = {"Content_Encoding": "gzip"} if packed else {}
    address = server.at("/endless", gzip.compress(content) if packed else content, **headers)
    assert "/endless goes on after 1,000,000 bytes, wanted actg175, which is shorter" in refusal(
        "actg175", tmp_path, address=address, progress=lambda done, total: told.append(done)
    )
    assert max(told, default=0) <= 1_000_000


def test_a_text_that_is_packed_for_the_way(known: DataSet, server: Server, tmp_path: Path) -> None:
    address = server.at("/packed", gzip.compress(CONTENT), Content_Encoding="gzip")
    assert fetch("actg175", folder=tmp_path, address=address).read_bytes() == CONTENT


def test_a_length_that_is_none(known: DataSet, server: Server, tmp_path: Path) -> None:
    told = []
    address = server.at("/lengthless", CONTENT, Content_Length="many")
    fetch("actg175", folder=tmp_path, address=address, progress=lambda done, total: told.append(total))
    assert set(told) == {0}


@pytest.mark.parametrize("elsewhere", ["http://[::1", "http://a..b/", f"http://{'a' * 70}.org/", "ftp://x/"])
def test_a_redirect_to_nowhere(elsewhere: str, known: DataSet, server: Server, tmp_path: Path) -> None:
    address = server.at("/moved", b"", Location=elsewhere)
    assert "/moved could not be read (" in refusal("actg175", tmp_path, address=address)


@pytest.mark.parametrize("own", [ValueError, OSError, RuntimeError])
def test_what_ones_own_progress_raises_is_ones_own(
    own: type[Exception], known: DataSet, tmp_path: Path
) -> None:
    def fails(done: int, total: int) -> None:
        raise own("mine")

    with pytest.raises(own, match=r"^mine$") as raised:
        fetch("actg175", folder=tmp_path, progress=fails)
    assert type(raised.value) is own
    assert in_folder(tmp_path) == set()


def test_a_password_is_used_and_not_told(known: DataSet, server: Server, tmp_path: Path) -> None:
    address = server.at("/other", b"other").replace("//", "//me:s%20ecret@")
    for bad in (
        address,
        address.replace("other", "gone"),
        "http://me:s%20ecret@127.0.0.1:1/x",
        "ftp://me:s%20ecret@x",
    ):
        with pytest.raises(InvalidInput) as refused:
            fetch("actg175", folder=tmp_path, address=bad)
        assert "ecret" not in "".join(traceback.format_exception(refused.value))
    expected = "Basic " + base64.b64encode(b"me:s ecret").decode()
    assert server.users == [expected, expected]


def test_a_failure_leaves_what_was_there(known: DataSet, server: Server, tmp_path: Path) -> None:
    file = tmp_path / known.file
    file.write_bytes(b"mine")
    for path in ("/short", "/changed"):
        refusal("actg175", tmp_path, address=server.at(path, CONTENT[::-1]))
        assert file.read_bytes() == b"mine"


def interrupt(done: int, total: int) -> None:
    raise KeyboardInterrupt


def test_it_is_told_how_far_it_is(known: DataSet, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    fetch("actg175", folder=tmp_path, progress=lambda done, total: told.append((done, total)))
    assert len(told) > 1
    assert told == sorted(told)
    assert told[-1] == (len(CONTENT), len(CONTENT))


def test_an_interrupt_leaves_nothing(
    known: DataSet, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path_factory.mktemp("scratch")
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    with pytest.raises(KeyboardInterrupt):
        fetch("actg175", folder=tmp_path, progress=interrupt)
    assert not list(tmp_path.iterdir())
    assert not list(scratch.iterdir())
    assert fetch("actg175", folder=tmp_path).read_bytes() == CONTENT
    assert not list(scratch.iterdir())


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_is_stopped_half_way(end: int, known: DataSet, server: Server, tmp_path: Path) -> None:
    address = server.at("/stalling", CONTENT)
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # if it was ignored
        "from postserve.data import SETS\n"
        f"SETS['actg175'] = SETS['actg175']._replace(address={address!r})\n"
        "from postserve.cli import main; main()\n"
    )
    command = [sys.executable, "-c", code, "data", "fetch", "actg175", "--folder", str(tmp_path / "data")]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as run:
        assert server.half_sent.wait(PATIENCE)
        run.send_signal(end)
        shown, errors = run.communicate(timeout=PATIENCE)
    assert "terms: Part of the R package speff2trial" in shown
    assert not (tmp_path / "data").exists()
    if end == signal.SIGKILL:
        assert run.returncode == -end
    else:
        assert run.returncode == 130
        assert "interrupted" in errors
        assert "Traceback" not in errors
        assert not list(tmp_path.iterdir())


def test_two_at_once_both_have_it(known: DataSet, tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: fetch("actg175", folder=tmp_path), range(4)))
    assert set(found) == {tmp_path / known.place}
    assert read_checked("actg175", tmp_path) == CONTENT
    assert in_folder(tmp_path) == {known.place}


def test_a_disk_that_is_full(known: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    told = refusal("actg175", tmp_path)
    assert f"{tmp_path / known.place} cannot be written (No space left on device), wanted more room" in told


def test_a_folder_that_is_none(known: DataSet, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    for folder, message in (
        (file, "is a file, wanted a folder"),
        (file / "below", "cannot be written (Not a directory), wanted a folder that can"),
        (Path("/proc/postserve"), "cannot be written"),
    ):
        with pytest.raises(InvalidInput, match=re.escape(message)):
            fetch("actg175", folder=folder)
    with pytest.raises(InvalidInput, match=r"folder is 3 .*, wanted a path"):
        fetch("actg175", folder=untyped(3))
    assert file.read_text() == "mine"


def test_a_place_for_data_that_is_a_file(
    known: DataSet, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.txt"
    file.write_bytes(CONTENT)
    monkeypatch.setenv("POSTSERVE_DATA", str(file))
    message = f"$POSTSERVE_DATA is {file}, a file, wanted the folder that sets are kept in"
    for ask in (fetch, find):
        with pytest.raises(InvalidInput, match=re.escape(message)):
            ask("actg175")
    assert message in command("list").output
    assert server.asked == []


@pytest.mark.parametrize("address", ["", "ml-100k.zip", "ftp://x/y", "file:///etc/passwd", 3])
def test_an_address_that_is_none(address: Any, tmp_path: Path) -> None:
    assert "wanted one that begins with http:// or https://" in refusal("jester", tmp_path, address=address)


@pytest.mark.parametrize("library", ["requests", "rdata"])
def test_without_the_extra_it_is_said_what_to_install(
    library: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served(
        server,
        monkeypatch,
        "jester",
        (RDA / "ratings-v2.rda").read_bytes(),
        RATINGS.tobytes(),
        shape=RATINGS.shape,
    )
    monkeypatch.setitem(sys.modules, library, None)
    told = refusal("jester", tmp_path)
    assert f"{library} is not installed" in told
    assert "wanted: pip install 'postserve[data]'" in told


def command(*words: str) -> Any:
    return CliRunner().invoke(app, ["data", *words])


def said(result: Any) -> str:
    return " ".join(result.output.split())


def test_the_command_states_the_terms_before_it_asks(known: DataSet, server: Server, tmp_path: Path) -> None:
    result = command("fetch", "actg175", "--folder", str(tmp_path))
    assert result.exit_code == 0
    for words in (known.title, known.terms, known.cite):
        assert words in said(result)
    assert f"here: {tmp_path / known.place}" in result.output
    assert "\n\n" not in result.output  # nor any other trace of a bar, where there is no terminal
    del server.answers["/actg175"]
    result = command("fetch", "actg175", "--folder", str(tmp_path / "new"))
    assert result.exit_code == 2
    assert said(result).index(known.terms) < said(result).index("answered 404")


def test_no_name_is_fetched_unless_all_are_known(known: DataSet, server: Server, tmp_path: Path) -> None:
    result = command("fetch", "actg175", "nonesuch", "--folder", str(tmp_path))
    assert result.exit_code == 2
    assert "name is 'nonesuch', wanted one of 'movielens-100k'" in said(result)
    assert server.asked == []
    assert command("fetch").exit_code == 2


def test_list_says_where_each_set_is(known: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POSTSERVE_DATA", str(tmp_path))
    fetch("actg175")
    (tmp_path / "hillstrom").mkdir()
    (tmp_path / "hillstrom" / "hillstrom.csv").write_text("recency\n")
    result = command("list")
    assert result.exit_code == 0
    for entry in SETS.values():
        assert entry.name in result.output
        assert entry.terms in said(result)
    assert result.output.count("not here") == 3
    assert f"here: {tmp_path / known.place}\n" in result.output
    assert f"wrong: {tmp_path}/hillstrom/hillstrom.csv is cut short" in result.output
    assert whereabouts("jester").startswith(f"not here: jester is not at {tmp_path}, wanted")
