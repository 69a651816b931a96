"""What every store must do, and what is true of one kind only."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
from tests.service.playing import X, Z, experiment, playing
from tests.waiting import wait_until

from postserve import InvalidInput
from postserve.service.engine import Engine
from postserve.service.log.events import ArmAdded, Decided, Event, Followed, Rewarded
from postserve.service.log.requests import Conflict
from postserve.service.log.stores import BASE, Saved, Store, StoreError
from postserve.service.log.stores.memory import MemoryStore
from postserve.service.log.stores.postgres import PostgresStore
from postserve.service.log.stores.sqlite import STEPS, SqliteStore
from postserve.service.rebuild import rebuild
from postserve.service.serving import describe, open_store, schema_of

Make = Callable[[], Store]


def decided(name: str) -> Event:
    options: Any = {"x": X, "eligible": ("a",), "arm": "a", "propensities": (1.0,)}
    return Decided(1.5, name, **options, version=0, z_due=2.0, due=3.0)


def append(store: Store, *events: Event) -> int:
    with store.transaction() as transaction:
        return transaction.append(events)


# Every store


def test_events_have_places_in_their_order(make: Make) -> None:
    store = make()
    assert (store.last(), store.read(0, 10)) == (0, [])
    assert append(store, decided("a"), decided("b"), ArmAdded(1.0, arm="new")) == 3
    assert append(store, Rewarded(2.0, "a", reward=0.1 + 0.2)) == 4
    assert [seq for seq, _ in store.read(0, 10)] == [1, 2, 3, 4]
    assert [seq for seq, _ in store.read(1, 2)] == [2, 3]
    assert store.read(0, 10)[3].event == Rewarded(2.0, "a", reward=0.1 + 0.2)
    assert store.last() == 4


def test_events_of_a_decision_up_to_a_place(make: Make) -> None:
    store = make()
    append(store, decided("a"), decided("b"), Followed(2.0, "a", z=Z), ArmAdded(2.0, arm="new"))
    found = store.events_of(["a", "nobody", ""])
    assert [type(each) for each in found["a"]] == [Decided, Followed]
    assert (found["nobody"], found[""]) == ([], [])
    assert store.events_of(["a"], before=3) == {"a": [decided("a")]}
    assert store.events_of(["a"], before=1) == {"a": []}
    assert store.events_of([]) == {}
    with store.transaction() as transaction:
        transaction.append([Rewarded(3.0, "a", reward=1.0)])
        assert len(transaction.events_of(["a"])["a"]) == 3  # it sees what it has added


def test_an_exception_undoes_a_transaction(make: Make) -> None:
    store = make()
    append(store, decided("a"))

    def fail() -> None:
        with store.transaction() as transaction:
            transaction.append([decided("b"), decided("c")])
            transaction.wait({"b": 1.0})
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert (store.last(), store.due(9.0, 9), store.events_of(["b"])) == (1, [], {"b": []})
    assert append(store, decided("d")) == 2  # no place is left out


def test_waits_are_due_in_their_order(make: Make) -> None:
    store = make()
    with store.transaction() as transaction:
        transaction.wait({"c": 3.0, "a": 1.0, "b": 2.0, "never": None})
    assert store.due(2.0, 9) == ["a", "b"]
    assert store.due(9.0, 2) == ["a", "b"]
    with store.transaction() as transaction:
        transaction.wait({"a": None, "b": 4.0 + 1e-9})
    assert store.due(4.0, 9) == ["c"]
    assert store.due(4.0 + 1e-9, 9) == ["c", "b"]


def test_snapshots_and_settings_are_kept_and_replaced(make: Make) -> None:
    store = make()
    large = bytes(range(256)) * 40_000
    for saved in (Saved(7, "seven", large), Saved(3, "three", b"\0\n"), Saved(7, "again", large[1:])):
        store.save(saved)
    assert store.snapshots() == [(3, "three"), (7, "again")]
    assert store.snapshot(7) == Saved(7, "again", large[1:])
    assert store.snapshot(3) == Saved(3, "three", b"\0\n")
    assert store.snapshot(4) is None
    store.set_setting("pinned", "yes")
    store.drop_snapshot(3, unless="pinned")
    assert len(store.snapshots()) == 2
    store.drop_snapshot(3, unless="not pinned")
    assert store.snapshots() == [(7, "again")]
    assert store.setting("name") is None
    assert store.setting("name", "first") == "first"
    assert store.setting("name", "second") == "first"
    store.set_setting("name", "third")
    assert store.setting("name", "fourth") == "third"


def test_writers_at_the_same_time_leave_no_gap_and_readers_see_none(make: Make) -> None:
    store, done = make(), threading.Event()
    seen: list[int] = []

    def write(writer: int) -> None:
        for i in range(15):
            append(store, *(decided(f"{writer}/{i}/{part}") for part in range(1 + i % 3)))

    def read() -> None:
        while not done.is_set() or (seen[-1] if seen else 0) < store.last():
            seen.extend(seq for seq, _ in store.read(seen[-1] if seen else 0, 7))

    with ThreadPoolExecutor(5) as threads:
        reader = threads.submit(read)
        writers = [threads.submit(write, writer) for writer in range(4)]
        wait(writers)
        done.set()
        for each in (*writers, reader):
            each.result()
    assert seen == list(range(1, 4 * 30 + 1))
    for writer in range(4):
        mine = [event.id for _, event in store.read(0, 999) if event.id.startswith(f"{writer}/")]
        assert mine == [f"{writer}/{i}/{part}" for i in range(15) for part in range(1 + i % 3)]


def test_a_transaction_has_no_other_writer_beside_it(make: Make) -> None:
    store = make()

    def count_up(_: int) -> None:
        with store.transaction() as transaction:
            n = len(transaction.events_of(["a"])["a"])
            transaction.append([Rewarded(1.0, "a", reward=float(n))])

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(count_up, range(40)))
    assert [event.reward for event in store.events_of(["a"])["a"]] == list(range(40))  # type: ignore[union-attr]


def test_what_is_finished_can_be_dropped_and_is_known_to_be_gone(make: Make) -> None:
    store = make()
    append(store, decided("a"), decided("open"), ArmAdded(1.0, arm="new"), decided("late"), decided("b"))
    append(store, Followed(1.0, "late", z=Z))
    with store.transaction() as transaction:
        transaction.wait({"open": 1.0})
    assert sorted(store.finished(5, 9)) == ["a", "b"]
    assert len(store.finished(5, 1)) == 1
    assert store.setting(BASE) is None
    store.drop(["a", "late", "nobody"], 5)  # the second has gone on since
    assert store.setting(BASE) == "5"
    store.drop([], 3)
    assert store.setting(BASE) == "5"
    assert [seq for seq, _ in store.read(0, 9)] == [2, 3, 4, 5, 6]
    assert [seq for seq, _ in store.read(0, 2)] == [2, 3]
    assert store.events_of(["a"]) == {"a": []}
    assert store.finished(5, 9) == ["b"]
    with store.transaction() as transaction:
        assert transaction.gone(["a", "b", "late", "nobody"]) == {"a"}
        assert transaction.gone([]) == set()
    assert append(store, decided("c")) == 7


def test_a_closed_store_has_let_go_and_another_goes_on(make: Make) -> None:
    store = make()
    append(store, decided("a"))
    assert store.lead()
    store.close()
    again = make()
    assert again.lead()
    assert again.last() == (0 if isinstance(store, MemoryStore) else 1)


ODD = {"NUL": "a\0b", "line": "a\n", "surrogate": "a\ud800", "201": "é" * 201, "none": ""}
FINE = ["é" * 200, "\U0001f600" * 200, "' OR 1=1 --", "a/b?c#%00", "\u202e", "%s", "\\x00"]


def test_odd_texts_are_refused_by_all_or_kept_by_all(make: Make) -> None:
    with playing(experiment(), make()) as play:
        engine = play.engine
        for text in ODD.values():
            asks: list[Callable[[str], Any]] = [
                lambda text: engine.decide(X, name=text),
                lambda text: engine.decide({**X, "device": text}, name="d"),
                lambda text: engine.follow(text, Z),
                lambda text: engine.follow("d", {"finished": text}),
                lambda text: engine.reward(text, 1.0),
                engine.activate,
                engine.add_arm,
            ]
            for ask in asks:
                with pytest.raises(InvalidInput, match=r"(id|arm|finished|device) (is|has) .*, wanted"):
                    ask(text)
        with pytest.raises(InvalidInput, match=r"key is .*, wanted no control"):
            engine.reward("d", 1.0, key=ODD["NUL"])
        assert engine.store.last() == 0
        for text in FINE:
            play.decide(text)
            play.done(engine.follow(text, Z))
            play.done(engine.reward(text, 1.0, key=text))
            assert [each.id for each in engine.store.events_of([text])[text]] == [text] * 3
        play.done(engine.add_arm(FINE[1]))
        play.learn()
        assert play.decide("new", eligible=[FINE[1]]).arm == FINE[1]


def test_an_id_that_is_gone_is_not_used_again(make: Make) -> None:
    with playing(experiment(), make()) as play:
        play.decide("d")
        play.learn()
        play.engine.store.drop(["d"], 1)
        for future in (play.engine.decide(X, name="d"), play.engine.reward("d", 1.0)):
            with pytest.raises(
                Conflict, match="'d' was erased, or was dropped with old ones, wanted another id"
            ):
                play.done(future)


# SQLite


def test_a_log_of_version_1_is_migrated(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    db = apsw.Connection(str(path))
    db.execute(Path(__file__).with_name("log_of_version_1.sql").read_text(encoding="utf-8"))
    assert db.pragma("user_version") == 1
    db.close()
    one = experiment()
    with playing(one, SqliteStore(path)) as play:
        assert list(play.engine.model.arms) == ["short", "long", "middle"]
        play.done(play.engine.follow("b", {"finished": "no"}))
        play.decide("early")
        play.learn()
        assert rebuild(one, play.engine.store).model.digest == play.engine.model.digest
    assert apsw.Connection(str(path)).pragma("user_version") == len(STEPS)


def test_a_step_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, right = tmp_path / "log.sqlite", list(STEPS)
    append(SqliteStore(path), decided("a"))
    monkeypatch.setattr(
        "postserve.service.log.stores.sqlite.STEPS", [*right, "CREATE TABLE x (y);\nNO SQL;\n"]
    )
    with pytest.raises(StoreError, match=r"cannot be used .*syntax error"):
        SqliteStore(path)
    monkeypatch.setattr("postserve.service.log.stores.sqlite.STEPS", [*right, "CREATE TABLE x (y);\n"])
    assert SqliteStore(path).last() == 1  # made now, and not before
    monkeypatch.setattr("postserve.service.log.stores.sqlite.STEPS", right)
    with pytest.raises(StoreError, match=f"has version {len(right) + 1}, wanted at most {len(right)}"):
        SqliteStore(path)


def test_a_file_is_served_once(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    with playing(experiment(), SqliteStore(path)) as play:
        play.decide("d")
        beside = SqliteStore(path)
        with pytest.raises(StoreError, match="is served by another process, wanted one process per file"):
            Engine(experiment(), beside)
        (tmp_path / "other.sqlite").symlink_to(path)
        by_another_name = SqliteStore(tmp_path / "other.sqlite")
        with pytest.raises(StoreError, match="is served by another process"):
            by_another_name.lead()
        by_another_name.close()
        assert rebuild(experiment(), beside).model.seq == 1  # reading is allowed
        beside.close()
    with playing(experiment(), SqliteStore(path)) as play:
        assert play.engine.model.seq == 2


# Postgres


@pytest.fixture
def schema(request: pytest.FixtureRequest) -> str:
    return schema_of(request.node.name)


def cut(address: str, schema: str) -> int:
    """Cut all connections of a schema's processes, as a failing network would; how many there were."""
    query = """
    SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE application_name = %s AND pid <> pg_backend_pid()
    """
    with psycopg.connect(address, autocommit=True) as db:
        row = db.execute(query, (schema,)).fetchone()
    return int(row[0]) if row else 0


def named(address: str, name: str) -> str:
    return f"{address}&application_name={name}"


def test_a_connection_that_was_cut_is_made_anew(postgres: str, schema: str) -> None:
    store = PostgresStore(named(postgres, schema), schema)
    append(store, decided("a"))

    def be_cut() -> None:
        with store.transaction() as transaction:
            transaction.append([decided("b")])
            assert cut(postgres, schema) == 1
            transaction.append([decided("c")])

    with pytest.raises(StoreError, match="Postgres failed"):
        be_cut()
    assert append(store, decided("d")) == 2
    assert cut(postgres, schema) == 1
    assert store.last() == 2  # what can be repeated is
    assert cut(postgres, schema) == 1
    assert append(store, decided("e")) == 3
    store.close()


def test_one_of_several_leads_as_long_as_it_is_connected(postgres: str, schema: str) -> None:
    one, other = (PostgresStore(named(postgres, f"{schema}{i}"), schema) for i in range(2))
    assert [one.lead(), other.lead(), one.lead()] == [True, False, True]
    one.publish(Saved(5, "five", b"5"))
    one.publish(Saved(4, "four", b"4"))  # never back
    assert other.published(4) == Saved(5, "five", b"5")
    assert other.published(5) is None
    with pytest.raises(StoreError, match="another process learns"):
        other.publish(Saved(6, "six", b"6"))
    cut(postgres, f"{schema}0")
    wait_until(other.lead)
    with pytest.raises(StoreError, match="Postgres failed"):
        one.publish(Saved(7, "seven", b"7"))
    assert not one.lead()
    assert other.published(0) == Saved(5, "five", b"5")
    other.close()
    wait_until(one.lead)
    one.close()


def test_who_was_cut_off_is_told_that_others_may_have_led(postgres: str, schema: str) -> None:
    store = PostgresStore(named(postgres, schema), schema)
    assert store.lead()
    cut(postgres, schema)
    with pytest.raises(StoreError, match="Postgres failed"):
        store.save(Saved(5, "five", b"5"))
    assert store.snapshots() == []
    assert not store.lead()
    wait_until(store.lead)  # the server may take a moment to see that the old connection is gone
    store.save(Saved(5, "five", b"5"))
    assert store.snapshots() == [(5, "five")]
    store.close()


def test_experiments_share_a_database(postgres: str, schema: str) -> None:
    stores = [PostgresStore(postgres, f"{schema}_{i}") for i in range(2)]
    append(stores[0], decided("a"))
    assert [store.last() for store in stores] == [1, 0]
    assert all(store.lead() for store in stores)
    for store in stores:
        store.close()


def test_postgres_is_migrated_step_by_step(
    postgres: str, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = "postserve.service.log.stores.postgres.STEPS"
    right = list(PostgresStore.__init__.__globals__["STEPS"])
    monkeypatch.setattr(steps, right[:1])
    first = PostgresStore(postgres, schema)
    append(first, decided("a"))
    first.close()
    monkeypatch.setattr(steps, [*right, "CREATE TABLE x (y integer);\nNO SQL;\n"])
    with pytest.raises(StoreError, match="syntax error"):
        PostgresStore(postgres, schema)
    monkeypatch.setattr(steps, [*right, "CREATE TABLE x (y integer);\n"])
    with ThreadPoolExecutor(4) as threads:  # processes that start at the same time
        stores = list(threads.map(lambda _: PostgresStore(postgres, schema), range(4)))
    assert [store.last() for store in stores] == [1] * 4
    for store in stores:
        store.close()
    monkeypatch.setattr(steps, right)
    with pytest.raises(StoreError, match=f"schema {schema} has version 3, wanted at most 2"):
        PostgresStore(postgres, schema)


def test_no_message_has_a_password_in_it(tmp_path: Path) -> None:
    secret = "hunter2"
    bad = [f"postgresql://me:{secret}%zz@127.0.0.1/x", f"postgresql://me:{secret}@127.0.0.1:1/x"]
    for address in bad:
        one = experiment(f'[store]\npath = "{address}"\n')
        with pytest.raises(StoreError) as refused:
            open_store(one, tmp_path)
        cause: BaseException | None = refused.value
        while cause is not None:
            assert secret not in str(cause)
            cause = cause.__cause__
        assert secret not in describe(one)


def test_names_of_schemas() -> None:
    assert schema_of("Lessons, 2nd try") == "postserve_lessons_2nd_try"
    assert experiment('[store]\nschema = "mine"\n').store.schema == "mine"
    for bad in ("pg_mine", "Mine", "a-b", "", "x" * 64, "1a"):
        with pytest.raises(InvalidInput, match=r"store\.schema"):
            experiment(f'[store]\nschema = "{bad}"\n')
