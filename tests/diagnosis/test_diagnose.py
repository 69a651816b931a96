"""What a diagnosis says of logs with known answers; `python -m benchmarks.diagnosis` has more of them."""

import json
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from benchmarks import diagnosis as known
from typer.testing import CliRunner

from postserve import DecisionLog, LinUCB, LoggedRounds, diagnose, fit_log
from postserve.cli import app
from postserve.diagnosis import advice, gains, pictures, questions
from postserve.diagnosis.features import rows_of
from postserve.diagnosis.findings import Finding
from postserve.diagnosis.gains import Plan, fit_lines, make_world
from postserve.diagnosis.sample import take_sample
from postserve.errors import InvalidInput


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few and short games: for questions that they do not decide."""
    monkeypatch.setattr(gains, "WORLDS", 2)
    monkeypatch.setattr(gains, "MOST_RUNS", gains.RUNS)
    monkeypatch.setattr(gains, "HORIZON", 100)


@pytest.mark.parametrize("kind", [known.helps_much, known.cannot_help], ids=lambda kind: kind.__name__)
def test_whether_follow_ups_help(kind: Any) -> None:
    assert known.KINDS[kind](diagnose(kind(100)))


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "kind",
    [known.follows_the_arm, known.leaked, known.drifting, known.selected_by_outcome],
    ids=lambda kind: kind.__name__,
)
def test_what_is_said_of_the_log(kind: Any) -> None:
    assert known.KINDS[kind](diagnose(kind(100)))


@pytest.mark.usefixtures("quick")
def test_late_rewards_are_no_missing_ones() -> None:
    found = diagnose(known.late_rewards(100))
    numbers = known.numbers_of(found, "lateness")
    assert numbers["late"]
    assert 15.0 < numbers["reward_delay"] < 19.0
    assert numbers["z_delay"] < 1.0
    assert not found.objections
    late = found.gains["late"]
    assert late.reward_delay == pytest.approx(100 * numbers["reward_delay"] / numbers["days"])


def test_the_picture_of_differences_names_arms_and_has_intervals() -> None:
    log = known.follows_the_arm(100).changed(arm_names=["mail", "call", "none", "post"])
    found = questions.follows(take_sample(log, 2000, np.random.default_rng(0)))
    assert "after arm '" in found.answer
    assert "standard deviations of z" in found.answer
    errors = found.numbers["errors"]
    axes = pictures.DRAWN["follows"](found.numbers).axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == [f"{z} after {arm}" for z in ("z0", "z1") for arm in log.arm_names]
    (whiskers,) = axes.collections
    widths = [segment[1, 0] - segment[0, 0] for segment in whiskers.get_segments()]
    expected = [error for of_arms in errors.values() for error in of_arms.values()]
    np.testing.assert_allclose(widths, 2 * 1.96 * np.array(expected))


@pytest.mark.usefixtures("quick")
def test_all_words_of_pictures_are_inside_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also beside the longest names that are shown."""
    names = [f"{letter} rather long name of an arm" for letter in "mcnp"]
    log = known.follows_the_arm(100).changed(
        arm_names=names, z_names=[f"{j}: a follow-up of twenty-four letters" for j in range(2)]
    )
    drawn: list[Any] = []
    monkeypatch.setattr(pictures, "_svg", drawn.append)
    found = diagnose(log)
    for finding in found.findings:
        pictures.picture(finding)
    pictures.picture_of_gains(found.gains)
    assert len(drawn) > 4
    for made in drawn:
        made.draw_without_rendering()
        box = made.get_tightbbox()
        assert 0.0 <= box.x0 < box.x1 <= pictures.WIDTH


def test_z_of_arms_that_are_eligible_at_other_x() -> None:
    """x moves z, and the last arm is eligible at some x only: that is no difference between arms."""
    world, rng = known.draw(1), np.random.default_rng(0)
    eligible = np.ones((len(world.x), known.ARMS), dtype=bool)
    eligible[:, -1] = world.z[:, 0] - world.z[:, 0].mean() > 0.0  # as if x told all of z
    kept = eligible[np.arange(len(eligible)), world.arms]
    share = 1.0 / eligible[kept].sum(axis=1)
    weighed = rng.random(len(share)) < share / share.max()  # served at random among the eligible
    log = world.take(np.flatnonzero(kept)[weighed]).log()
    log = log.changed(eligible=eligible[kept][weighed], propensities=share[weighed])
    assert not questions.follows(take_sample(log, len(log), rng)).numbers["follows"]
    moved = log.changed(z=log.z + 0.5 * (log.arms == 3)[:, None])
    found = questions.follows(take_sample(moved, len(log), rng)).numbers
    assert found["follows"]
    assert abs(found["differences"]["z0"]["3"] - 0.5 / moved.z[:, 0].std()) < 0.1


@pytest.mark.usefixtures("quick")
class TestObjections:
    def objections(self, world: known.World, **parts: Any) -> dict[str, str]:
        log = world.log().changed(**parts)
        return {each.kind: each.text for each in diagnose(log).objections}

    def test_a_sound_log_has_none(self) -> None:
        assert not self.objections(known.draw(1))

    def test_a_z_that_was_known_before(self) -> None:
        world = known.draw(1)
        z = world.z.copy()
        z[:, 0] = 3.0 * world.x[:, 1] - world.x[:, 0]
        found = diagnose(world._replace(z=z).log())
        assert [each.kind for each in found.objections] == ["leaked", "collinear"]
        assert "z0" in found.objections[0].text
        assert set(known.numbers_of(found, "predictability")["columns"]) == {"z1"}

    def test_no_column_is_left(self) -> None:
        world = known.draw(1)
        found = diagnose(world._replace(z=world.rewards[:, None]).log())
        assert (found.helps, found.trusted, found.gains, found.findings) == ("no", False, {}, ())
        assert "no column of z is left" in found.summary

    def test_rewards_missing_at_random_or_not(self) -> None:
        world, rng = known.draw(1), np.random.default_rng(1)
        by_chance = np.where(rng.random(len(world.x)) < 0.3, np.nan, world.rewards)
        by_z = np.where(
            rng.random(len(world.x)) < 1 / (1 + np.exp(-2 * world.z[:, 0])), np.nan, world.rewards
        )
        assert not self.objections(world, rewards=by_chance)
        assert set(self.objections(world, rewards=by_z)) == {"missing"}

    def test_z_that_is_there_because_of_the_reward(self) -> None:
        world = known.draw(1)
        z = world.z.copy()
        z[(world.rewards < 0.0) & (np.random.default_rng(1).random(len(z)) < 0.5)] = np.nan
        assert set(self.objections(world, z=z)) == {"selected"}

    def test_wrong_propensities(self) -> None:
        world = known.draw(1)
        wrong = np.where(world.arms == 0, 0.4, 0.2)
        assert "arm '0' was" in self.objections(world, propensities=wrong)["selected"]

    def test_right_propensities_that_depend_on_x(self) -> None:
        world, rng = known.draw(1, 40_000), np.random.default_rng(0)
        share = 1 / (1 + np.exp(-world.x[:, 0]))  # of arms 0 and 1 among all four
        kept = rng.random(len(share)) < np.where(world.arms < 2, share, 1.0 - share)
        propensities = np.where(world.arms < 2, share / 2, (1.0 - share) / 2)[kept]
        assert not self.objections(world.take(kept), propensities=propensities)

    def test_arms_that_are_not_always_eligible(self) -> None:
        world, rng = known.draw(1), np.random.default_rng(0)
        eligible = rng.random((len(world.x), known.ARMS)) < 0.7
        kept = eligible[np.arange(len(world.x)), world.arms]
        share = 1.0 / eligible.sum(axis=1, where=eligible, initial=0)[kept]
        weighed = rng.random(len(share)) < share / share.max()  # served at random among the eligible
        log = world.take(np.flatnonzero(kept)[weighed]).log()
        found = diagnose(log.changed(eligible=eligible[kept][weighed], propensities=share[weighed]))
        assert not found.objections

    def test_arms_that_were_served_with_certainty(self) -> None:
        """As a policy without chance serves them: nothing was left out, but nothing can be compared."""
        world = known.draw(1)
        best = world.x[:, :4].argmax(axis=1)
        found = diagnose(world._replace(arms=best).log().changed(propensities=1.0))
        assert [(each.kind, each.grave) for each in found.objections] == [("support", True)]
        assert "100% of rounds were served with propensity 1" in found.objections[0].text
        assert "It cannot be told" in found.findings[2].answer
        one_hot = np.eye(known.ARMS)[best]
        told = diagnose(
            world._replace(arms=best)
            .log()
            .changed(propensities=1.0, all_propensities=one_hot, eligible=one_hot > 0)
        )
        assert not told.objections  # no other arm was eligible

    def test_arms_whose_propensity_is_at_times_0(self) -> None:
        world = known.draw(1)
        chances = np.where(world.x[:, :1] > 0.0, [0.5, 0.5, 0.0, 0.0], [0.1, 0.1, 0.4, 0.4])
        rng = np.random.default_rng(0)
        kept = rng.random(len(chances)) < 2.0 * chances[np.arange(len(chances)), world.arms]
        log = world.take(kept).log()
        propensities = chances[kept][np.arange(len(log)), log.arms]
        found = diagnose(log.changed(propensities=propensities, all_propensities=chances[kept]))
        assert not found.objections

    def test_columns_that_repeat_others_and_arms_without_rounds(self) -> None:
        world = known.draw(1)
        z = np.hstack(
            [world.z, world.z[:, :1] + 1e-3 * np.random.default_rng(0).normal(size=(len(world.z), 1))]
        )
        log = LoggedRounds(
            x=world.x, z=z, arms=world.arms, rewards=world.rewards, propensities=0.25, arm_names=list("abcde")
        )
        found = {each.kind: each for each in diagnose(log).objections}
        assert set(found) == {"collinear", "support"}
        assert "z0, z2" in found["collinear"].text
        assert not found["support"].grave
        assert "1 of 5 arms has fewer" in found["support"].text


@pytest.mark.parametrize("luck", [0.1, 0.7, 1.0, 1.4, 3.0])
def test_the_interval_of_the_gain_holds_whatever_part_of_the_spread_is_luck(luck: float) -> None:
    """`luck` is the deviation of a world's mean due to its runs; worlds have 1, and so has the log."""
    rng, held = np.random.default_rng(0), 0
    for _ in range(2000):
        worlds = rng.normal() + rng.normal(size=(gains.WORLDS, 1))
        runs = worlds + luck * np.sqrt(gains.RUNS) * rng.normal(size=(gains.WORLDS, gains.RUNS))
        _, low, high = gains._interval(runs)
        held += low <= 0.0 <= high
    assert held / 2000 > 0.92


class TestWorlds:
    def test_lines_of_arms_that_differ_and_of_arms_that_do_not(self) -> None:
        rng = np.random.default_rng(0)
        x, arms = 5.0 + rng.normal(size=(3000, 3)), rng.integers(3, size=3000)
        weights = np.array([[1.0, -2.0, 0.5], [0.0, 1.0, 1.0], [2.0, 2.0, -1.0]])
        y = (x * weights[arms]).sum(axis=1) + arms + 0.1 * rng.normal(size=3000)
        np.testing.assert_allclose(fit_lines(x, arms, y, 3), np.c_[weights, [0.0, 1.0, 2.0]], atol=0.1)
        common = fit_lines(x, arms, x @ weights[0] + rng.normal(size=3000), 4)
        assert np.abs(common[:3, :3] - weights[0]).max() < 0.15
        np.testing.assert_allclose(common[3], common[:3].mean(axis=0), atol=0.5)  # an arm without rows

    def test_all_arms_have_one_phi_unless_each_has_its_own(self) -> None:
        """In few and noisy rows, where two ridges that are chosen one after the other are far apart."""
        world = known.draw(3, 150)
        log = world.log().changed(z=world.z + 5.0 * np.random.default_rng(0).normal(size=world.z.shape))
        sample = take_sample(log, 150, np.random.default_rng(0))
        for seed in range(6):
            z = (
                make_world(sample, log.x, False, np.random.default_rng(seed))
                .rounds(50, np.random.default_rng(0))
                .z
            )
            np.testing.assert_array_equal(z, np.tile(z[:, :1], (1, known.ARMS, 1)))

    @pytest.mark.parametrize("own", [False, True])
    def test_a_round_of_the_served_arm_is_the_row_itself(self, own: bool) -> None:
        world = known.draw(3, 500, shift=1.0)
        sample = take_sample(world.log(), 500, np.random.default_rng(0))
        drawn = make_world(sample, rows_of("line", world.x), own, np.random.default_rng(1))
        rounds = drawn.rounds(200, np.random.default_rng(2))
        at = {row.tobytes(): i for i, row in enumerate(world.x)}
        rows = np.array([at[x.tobytes()] for x in rounds.x])
        arms = world.arms[rows]
        np.testing.assert_allclose(rounds.z[np.arange(200), arms], world.z[rows], atol=1e-9)
        np.testing.assert_allclose(rounds.rewards[np.arange(200), arms], world.rewards[rows], atol=1e-9)

    @pytest.mark.parametrize("features", ["line", "products", "bumps"])
    @pytest.mark.parametrize("own", [False, True])
    def test_the_suggestion_runs(self, features: str, own: bool) -> None:
        log = known.draw(1, 200).log()
        names: dict[str, Any] = {"x": log.x}
        sample = take_sample(log, 200, np.random.default_rng(0))
        exec(advice.code(sample, Plan(features, own, "hybrid" if own else "disjoint")), names)
        names["policy"].update(log.x[0], 0, log.z[0], 1.0)
        assert names["policy"].n_arms == 4


@pytest.mark.parametrize("late", [False, True])
def test_the_answer_begins_with_the_gain_on_which_it_rests(late: bool) -> None:
    at_once = gains.Gain(1.0, -0.1, 2.0, 0.7, -0.07, 1.0, 0.0, 0.0, [600], {})
    if_late = at_once._replace(saved=0.3, saved_low=0.23, saved_high=0.38, reward_delay=1.2)
    found = {"now": at_once, "late": if_late}
    beyond = {"value": 0.5, "low": 0.4, "high": 0.6}
    findings = [Finding("worth", "", "", {"beyond": beyond}), Finding("lateness", "", "", {"late": late})]
    helps = advice.verdict(findings, found)
    told = advice.advice(helps, findings, found, [])
    first, second = ("30% [", "70% [") if late else ("70% [", "30% [")
    assert helps == ("much" if late else "unclear")
    assert told.index(f"follow-ups save {first}") < told.index(second)
    assert "rewards come 1 round late" in told


@pytest.mark.parametrize(
    ("beyond", "most_saved", "helps"),
    [
        ((0.08, -0.005, 0.17), 0.42, "unclear"),  # as 120 rounds may say where z is worth 8%
        ((0.08, -0.005, 0.17), 0.29, "no"),
        ((0.004, -0.01, 0.018), 0.42, "no"),
        ((0.012, 0.004, 0.03), 0.42, "unclear"),
        ((0.08, 0.005, 0.17), 0.42, "a little"),
    ],
)
def test_no_is_said_only_where_the_intervals_leave_nothing_else(
    beyond: tuple[float, ...], most_saved: float, helps: str
) -> None:
    now = gains.Gain(1.0, 0.1, 2.0, 0.18, 0.01, most_saved, 0.0, 0.0, [600], {})
    explained = dict(zip(("value", "low", "high"), beyond, strict=True))
    findings = [
        Finding("worth", "", "", {"beyond": explained}),
        Finding("lateness", "", "", {"late": False}),
    ]
    assert advice.verdict(findings, {"now": now, "late": now}) == helps


@pytest.mark.usefixtures("quick")
def test_of_few_rounds_it_cannot_be_told_what_z_explains() -> None:
    log = _weak(120, n_arms=3)
    found = diagnose(log)
    worth = known.numbers_of(found, "worth")["beyond"]
    assert worth["low"] < 0.0 < questions.MATERIAL < worth["high"]
    assert found.findings[0].answer.startswith("It cannot be told: beyond x, z explains")
    many = diagnose(_weak(120, n_arms=6))
    assert many.findings[0].answer == "No arm has enough rounds to tell."
    assert json.loads(many.to_json())["findings"][0]["numbers"]["beyond"]["high"] is None
    assert {found.helps, many.helps} == {"unclear"}


def _weak(n: int, n_arms: int) -> LoggedRounds:
    """z is worth about a tenth of the reward."""
    rng = np.random.default_rng(1)
    x, arms = rng.normal(size=(n, 3)), rng.integers(n_arms, size=n)
    z = x[:, :2] + 0.5 * rng.normal(size=(n, 2))
    beta = rng.normal(size=(n_arms, 2))
    rewards = np.vecdot(beta[arms], z) + 2.0 * rng.normal(size=n)
    return LoggedRounds(x=x, z=z, arms=arms, rewards=rewards, propensities=1.0 / n_arms)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("own", [False, True])
def test_the_suggestion_learns_a_log_with_gaps(own: bool) -> None:
    """As docs/diagnosis.md says it: with the log's encoders, z without marks."""
    world, rng = known.draw(1, 400), np.random.default_rng(0)
    table = {
        "decision_id": [str(i) for i in range(400)],
        "arm": [str(arm) for arm in world.arms],
        "propensity": np.full(400, 1 / known.ARMS),
        "reward": world.rewards,
        **{f"x.{j}": np.where(rng.random(400) < 0.1, None, world.x[:, j]) for j in range(2)},
        **{f"z.{j}": np.where(rng.random(400) < 0.1, None, world.z[:, j]) for j in range(2)},
    }
    log = DecisionLog.of(table)
    names: dict[str, Any] = {}
    text = advice.code(take_sample(log, 400, rng), Plan("line", own, "hybrid" if own else "disjoint"))
    x_encoder, z_encoder = log.encoders()
    names |= {"x_encoder": x_encoder, "z_encoder": z_encoder.without_marks()}
    exec(text.removesuffix(")") + ", x_features=x_encoder, z_features=z_encoder)", names)
    assert fit_log(names["policy"], log).pulls.sum() == 400


@pytest.mark.usefixtures("quick")
def test_the_command_writes_a_page_and_numbers(tmp_path: Path) -> None:
    known.late_rewards(100).write(tmp_path / "log.parquet")
    run = CliRunner().invoke(
        app, ["diagnose", str(tmp_path / "log.parquet"), "--rows", "1500", "--out", str(tmp_path / "out")]
    )
    assert run.exit_code == 0, run.output
    page = (tmp_path / "out/diagnosis.html").read_text(encoding="utf-8")
    content = json.loads((tmp_path / "out/diagnosis.json").read_text(encoding="utf-8"))
    assert content["summary"] in run.output.replace("\n", " ") or content["summary"][:40] in run.output
    assert page.count("<img ") == 6
    assert "How to read it" in page
    assert content["about"]["rounds"] == 4000
    assert content["about"]["looked at"] == 1500
    for finding in content["findings"]:
        assert finding["answer"] in run.output


@pytest.mark.usefixtures("quick")
def test_without_matplotlib_only_pictures_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    known.late_rewards(100).write(tmp_path / "log.parquet")
    words = ["diagnose", str(tmp_path / "log.parquet"), "--rows", "400", "--out", str(tmp_path)]
    run = CliRunner().invoke(app, words)
    assert run.exit_code == 0, run.output
    told = "not drawn: pictures need matplotlib, which is not installed, wanted: pip install"
    page = (tmp_path / "diagnosis.html").read_text(encoding="utf-8")
    content = json.loads((tmp_path / "diagnosis.json").read_text(encoding="utf-8"))
    assert told in run.output
    assert told in page
    assert content["summary"] in page
    assert "<img" not in page


@pytest.mark.usefixtures("quick")
def test_a_page_that_says_no_does_not_suggest_follow_ups(tmp_path: Path) -> None:
    found = diagnose(known.cannot_help(100))
    assert found.helps == "no"
    page = found.write(tmp_path).read_text(encoding="utf-8")
    assert "What was tried" in page
    assert "What is suggested" not in page
    assert "-0%" not in page + repr(found)


def test_no_more_than_all_regret_is_saved() -> None:
    runs = np.repeat(np.arange(1.0, 9.0)[:, None], 9, axis=1)  # worlds differ much: intervals are wide
    ours = np.where(runs < 8.0, 0.0, runs / 2.0)
    curves = {gains.WITHOUT: runs[:, :, None], gains.SUGGESTED: ours[:, :, None]}
    found = gains._gain(curves, np.array([10]), (0.0, 0.0))
    assert found.high > found.value == pytest.approx((runs - ours).mean() / 10)
    assert found.saved == pytest.approx(32.0 / 36.0)
    assert found.saved_high == 1.0
    assert found.share.startswith("89% [")
    assert found.share.endswith(", 100%]")


def test_a_share_that_is_the_same_in_every_world_is_known() -> None:
    """Gains differ as much as what can be lost does."""
    runs = np.repeat(np.arange(1.0, 9.0)[:, None], 9, axis=1)
    found = gains._gain(
        {gains.WITHOUT: runs[:, :, None], gains.SUGGESTED: runs[:, :, None] / 2}, np.array([10]), (0.0, 0.0)
    )
    assert found.high - found.low > 0.2
    assert (found.saved_low, found.saved, found.saved_high) == pytest.approx((0.5, 0.5, 0.5))


def test_intervals_of_a_share_hold_it() -> None:
    """2,000 logs whose share is around 0.3, with 8 worlds each whose shares are as far around the log's."""
    rng, held = np.random.default_rng(0), 0
    lost = rng.gamma(9.0, size=(2000, 8, 1, 1)) * np.ones((1, 1, 9, 1))
    noise = 0.5 * rng.normal(size=(2, *lost.shape))
    of_log = 0.3 + 0.1 * rng.normal(size=(2000, 1, 1, 1))
    saved = lost * (of_log + 0.1 * rng.normal(size=(2000, 8, 1, 1)))
    for one, off, gained in zip(lost, noise.swapaxes(0, 1), saved, strict=True):
        curves = {gains.WITHOUT: one + off[0], gains.SUGGESTED: one - gained + off[1]}
        found = gains._gain(curves, np.array([1]), (0.0, 0.0))
        held += found.saved_low <= 0.3 <= found.saved_high
    assert 0.92 < held / 2000 < 0.98


def test_runs_are_added_until_the_share_is_known_well_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gains, "WORLDS", 2)
    monkeypatch.setattr(gains, "HORIZON", 50)
    played = []

    def simulate(policy: Any, world: Any, horizon: int, seed: int, **delays: float) -> Any:
        played.append((type(policy).__name__, seed, *delays.values()))
        luck = np.random.default_rng(seed).random() if delays["z_delay"] else 0.5
        return SimpleNamespace(regret=np.full(horizon, 1.0 if isinstance(policy, LinUCB) else luck))

    monkeypatch.setattr(gains, "simulate", simulate)
    rng = np.random.default_rng(0)
    sample, plan = take_sample(known.cannot_help(100), 1000, rng), Plan("line", False, "disjoint")
    gains.gains(sample, plan, {"now": (0.0, 0.0), "late": (5.0, 50.0)}, rng)
    assert len(played) == len(set(played))  # no run twice
    by_delay = Counter(delay for _, _, delay, _ in played)
    assert by_delay == {0.0: 2 * 2 * gains.RUNS, 5.0: 2 * 2 * gains.MOST_RUNS}


@pytest.mark.usefixtures("quick")
def test_the_same_seed_says_the_same() -> None:
    log = known.draw(1, 600).log()
    assert diagnose(log, seed=3).to_json() == diagnose(log, seed=3).to_json()


class TestRefusals:
    def test_what_is_no_log(self) -> None:
        with pytest.raises(InvalidInput, match="log is a list, wanted a DecisionLog"):
            diagnose([1, 2])  # type: ignore[arg-type]

    def test_no_z(self) -> None:
        world = known.draw(1, 300)
        with pytest.raises(InvalidInput, match="no column of z"):
            diagnose(world._replace(z=np.empty((300, 0))).log())
        table = {"decision_id": ["a", "b"], "x.a": [1.0, 2.0], "arm": ["p", "q"], "propensity": [0.5, 0.5]}
        with pytest.raises(InvalidInput, match=r"no column of z, wanted some named z\.NAME"):
            diagnose(DecisionLog.of({**table, "reward": [1.0, 0.0]}))

    def test_too_few_complete_rounds(self) -> None:
        with pytest.raises(InvalidInput, match="99 of 99 rounds have z and a reward, wanted at least 100"):
            diagnose(known.draw(1, 99).log())
