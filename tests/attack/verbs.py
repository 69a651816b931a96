"""Every verb that changes a policy or a map, and what can be seen of either from outside."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from postserve.conformance.tools import Feedback, chances, choose, in_turn, rounds_for, some_rounds

Verb = Callable[[Any], Any]
Make = Callable[[], Any]
SOME = 40
"""Rounds that are learnt before a verb; later ones are for the verb, and for going on."""
ARMS = (0, 1, 2)


def rounds_of(item: Any) -> list[Feedback]:
    """Rounds for a policy or a map, the arms served in turn."""
    if hasattr(item, "select"):
        return in_turn(item, rounds_for(item, 60))
    rounds = some_rounds(60, item.dim_x, item.dim_z, 3)
    return [(rounds.x[i], i % 3, rounds.z[i], float(rounds.rewards[i, 0])) for i in range(60)]


def teach(item: Any, round_: Feedback) -> None:
    """Learn a round."""
    item.update(*round_) if hasattr(item, "select") else item.update(*round_[:3])


def go_on(item: Any, came: list[Feedback]) -> None:
    """Learn one more round, of an arm that there is, and choose an arm."""
    arms = getattr(item, "arms", ()) or ARMS
    (x, arm, z, reward), rng = came[-6], np.random.default_rng(0)
    arm = arm if arm in arms else arms[0]
    if hasattr(item, "select"):
        item.update_batch([x], [arm], [z], [reward])  # which takes the steps that `update` does
        one_row = getattr(item, "arms", ())  # for all arms; a decision set has one per candidate
        choose(item, x if one_row else x[None], z if one_row else z[None], rng)
    else:
        teach(item, (x, arm, z, reward))


def announce(item: Any, came: list[Feedback]) -> None:
    """Five rounds are out; the z of the second has come. So has that of a policy's round "b", not of "a"."""
    for x, arm, *_ in came[SOME : SOME + 5]:
        item.expect(x, arm)
    if hasattr(item, "select"):
        x, arm, z, _ = came[SOME + 1]
        item.observe(x, arm, z)
        x, arm, z, _ = came[SOME]
        for name in "ab":
            item.expect(x, arm, round_id=name)
        item.observe(x, arm, z, round_id="b")


def verbs(make: Make, came: list[Feedback], *, announced: bool) -> Iterator[tuple[str, Verb]]:
    """The verbs, by name; not every object has each of them."""
    x, arm, z, reward = came[SOME]
    X, arms, Z, rewards = map(list, zip(*came[SOME : SOME + 6], strict=True))
    part = np.where(np.arange(len(z)) > 0, np.nan, z)
    yield "expect", lambda item: item.expect(x, arm)
    if announced:
        yield "withdraw", lambda item: item.withdraw(x, arm)
    if not hasattr(make(), "select"):
        yield "update", lambda item: item.update(x, arm, z)
        yield "update far away", lambda item: item.update(1e5 * x, arm, 1e5 * z)
        yield "update of another arm", lambda item: item.update(x, 7, z)
        yield "learn_stages", lambda item: item.learn_stages(x, arm, part)
        yield "forget", lambda item: item.forget(0.5)
    else:
        z_hat = None if make().dim_z is None else np.zeros(make().dim_z)
        yield "update", lambda item: item.update(x, arm, z, reward)
        yield "update far away", lambda item: item.update(1e5 * x, arm, 1e5 * z, reward)
        yield "observe", lambda item: item.observe(x, arm, z)
        yield "credit", lambda item: item.credit(x, arm, z, reward, z_hat=z_hat)
        yield "update_batch", lambda item: item.update_batch(X, arms, Z, rewards)
        yield "add_arm", lambda item: item.add_arm()
        yield "forget", lambda item: item.forget(arms=0.9, map=0.5)
        yield "forget arms", lambda item: item.forget(arms=0.9)
        if announced:
            yield "observe a part", lambda item: item.observe(x, arm, part)
            yield "update without z", lambda item: item.update(*came[SOME + 1][:2], None, reward)
            yield from verbs_with_ids(came)
        yield "expect with an id", lambda item: item.expect(x, arm, round_id="new")
        names = [f"new {i}" for i in range(len(X))]
        yield "expect_batch", lambda item: item.expect_batch(X, arms, round_ids=names)
    yield "remove_arm", lambda item: item.remove_arm(arm)
    yield "refit_prior", lambda item: item.refit_prior()
    other = make()
    for each in came[20:30]:
        teach(other, each)
    if hasattr(other, "select"):
        other.expect(x, arm, round_id="theirs")
    yield "merge", lambda item: item.merge(other)


def verbs_with_ids(came: list[Feedback]) -> Iterator[tuple[str, Verb]]:
    """Those whose feedback names its round: of "a" nothing has come, of "b" the z."""
    x, arm, z, reward = came[SOME]
    part = np.where(np.arange(len(z)) > 0, np.nan, z)
    yield "observe by id", lambda item: item.observe(x, arm, z, round_id="a")
    yield "observe a part by id", lambda item: item.observe(x, arm, part, round_id="a")
    yield "credit by id", lambda item: item.credit(x, arm, None, reward, round_id="b")
    yield "update by id", lambda item: item.update(x, arm, z, reward, round_id="a")
    yield "update without z by id", lambda item: item.update(x, arm, None, reward, round_id="b")
    yield "withdraw by id", lambda item: item.withdraw(x, arm, round_id="b")


def answers(item: Any, came: list[Feedback]) -> list[Any]:
    """Decisions, and what they are made of."""
    if not hasattr(item, "select"):
        return [ask(item, x) for x, *_ in came[-3:] for ask in _questions(item)]
    found = [item.arms, getattr(item, "weights", 0.0), getattr(item, "pulls", 0.0)]
    phi_hat = getattr(item, "context_map", None)
    for x, _, z, _ in came[-3:]:
        seen, shown = (x, z) if item.arms else (np.stack([x, -x, 2.0 * x]), np.stack([z, z, -z]))
        found.append(chances(item, seen, shown))
        if phi_hat is not None and getattr(item, "x_features", None) is None:
            found += [ask(phi_hat, x) for ask in _questions(phi_hat)]
    return found


def _questions(phi_hat: Any) -> list[Callable[[Any, Any], Any]]:
    return [
        lambda phi_hat, x: phi_hat.predict(x, ARMS),
        lambda phi_hat, x: phi_hat.radius(x, ARMS),
        lambda phi_hat, x: phi_hat.sample(x, ARMS, np.random.default_rng(0)),
    ]
