"""An experiment's file: what it makes, and what is said of one that is wrong."""

from pathlib import Path

import pytest
from tests.service.playing import FILE, experiment
from typer.testing import CliRunner

from postserve import InvalidInput
from postserve.cli import app
from postserve.service.experiment import parse_experiment, read_experiment, seconds

WRONG = {
    'name = "lessons"\n': ("name = 3\n", "name: expected `str`, got `int`"),
    'arms = ["short", "long"]': ('arms = ["short", "short"]', "arms is short, short, wanted each name once"),
    'name = "lessons"\narms': ('name = "a\\u0007"\narms', "name: expected `str` matching regex"),
    'age = "number"': ('age = "numbr"', "numbr"),
    'device = ["phone", "computer"]': ('device = ["phone", "phone"]', "x.device is phone, phone"),
    "explore = 0.2": ("explore = 2", "explore: expected `float` <= 1.0, got 2"),
    'wait_for_z = "100s"': ('wait_for_z = "soon"', "feedback.wait_for_z is 'soon', wanted a time such as"),
    'wait_for_reward = "1000s"': ("colour = 1", "colour"),
}


@pytest.mark.parametrize("right", WRONG)
def test_a_wrong_file_is_refused_in_words(right: str) -> None:
    wrong, message = WRONG[right]
    assert right in FILE
    with pytest.raises(InvalidInput) as refused:
        parse_experiment(FILE.replace(right, wrong), "a file")
    assert str(refused.value).startswith("a file: ")
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('[policy]\nname = "Best"\n', "policy.name is 'Best', wanted one of"),
        ('[policy]\nridge = "none"\n', "policy (PoLinUCB): ridge is 'none'"),
        ("[policy]\ncolour = 1\n", "colour"),
        ('[policy]\nmissing_z = "raise"\n', "z may never come"),
        ('[policy.map]\nname = "Map"\n', "policy.map.name is 'Map', wanted one of"),
        ('[policy.map]\nname = "StagedMap"\n', "policy.map.stages is None"),
        ('[server]\nhost = "0.0.0.0"\n', "there are no keys"),
        ("x = \n", "is not TOML"),
        (f"[server]\nport = {'9' * 5000}\n", "is not TOML"),
        (f"x = {'[' * 20_000}{']' * 20_000}\n", "is not TOML"),
        (f"[server]\nport = 0x{'f' * 9000}\n", "server.port: expected `int`"),
        ("[server]\nport = 70000\n", "server.port: expected `int` <= 65535, got 70000"),
        ('[store]\npath = "a\\u0000b"\n', "store.path: expected `str` matching regex"),
        ('[server]\nhost = "a\\u0000b"\n', "server.host: expected `str` matching regex"),
    ],
)
def test_a_wrong_table_is_refused_in_words(more: str, message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        experiment(more)
    assert message in str(refused.value)


def test_categories_are_texts_that_a_caller_could_send() -> None:
    for wrong in ("", "a\\nb", "a" * 201):
        with pytest.raises(InvalidInput, match=r"z.finished: the category '.*wanted"):
            parse_experiment(FILE.replace('["no", "yes"]', f'["no", "{wrong}"]'))


def test_what_needs_z_is_refused_without_it() -> None:
    without = FILE.replace('z = { minutes = "number", finished = ["no", "yes"] }\n', "")
    assert type(parse_experiment(without).untaught(2)).__name__ == "LinUCB"
    with pytest.raises(InvalidInput, match=r"needs z, wanted fields in \[z\]"):
        parse_experiment(without + '[policy]\nname = "PoLinUCB"\n')


def test_times_have_units() -> None:
    assert [seconds("t", text) for text in ("90s", "1.5m", "2h", "7d")] == [90.0, 90.0, 7200.0, 604800.0]
    for text in ("", "7", "d", "0s", "-1s", "1e9d", "9999999999d"):
        with pytest.raises(InvalidInput, match="wanted a time such as"):
            seconds("t", text)


def test_the_file_that_init_writes_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "experiment.toml"
    written = CliRunner().invoke(app, ["serve", str(path), "--init"])
    assert written.exit_code == 0
    assert read_experiment(path).arms == ["short", "long", "quiz"]
    again = CliRunner().invoke(app, ["serve", str(path), "--init"])
    assert again.exit_code == 2
    assert "is there already" in again.output
    assert CliRunner().invoke(app, ["serve", str(tmp_path / "nothing.toml")]).exit_code == 2
