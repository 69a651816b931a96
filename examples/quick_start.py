"""Quick start: choose a delivery route by the morning's forecast; the day's traffic is known in the evening.

x is the forecast, z the traffic that followed it and the reward the minutes saved. Traffic is curved in the
forecast, and each route suffers from it differently: a line in x is not enough, a line in (x, z) is.
"""

import numpy as np

from postserve import LinUCB, PoLinUCB, RidgeMap

DAYS = 1000
MINUTES = np.array([[2.0, 8.0], [4.0, -6.0], [0.0, 3.0]])  # one row per route: what each kind of traffic does


def traffic(x):
    """E[z | x], which nobody tells the policies."""
    return np.array([x[0] ** 2, x[0] * x[1]])


def features(x):
    """Features of x in which phi may be linear."""
    return np.array([x[0], x[1], x[0] ** 2, x[0] * x[1], x[1] ** 2])


def minutes_lost(policy):
    """Run the days, and return the mean minutes lost per day to the best route, over the second half."""
    world, rng = np.random.default_rng(0), np.random.default_rng(1)
    lost = np.zeros(DAYS)
    for day in range(DAYS):
        x = world.uniform(-1.0, 1.0, size=2)
        arm = policy.select(x, rng).arm  # only x is known
        z = traffic(x) + 0.3 * world.normal(size=2)  # later
        policy.update(x, arm, z, reward=MINUTES[arm] @ z + 0.1 * world.normal())
        expected = MINUTES @ traffic(x)
        lost[day] = expected.max() - expected[arm]
    return lost[DAYS // 2 :].mean()


polinucb = PoLinUCB(3, RidgeMap(dim_x=2, dim_z=2, features=features))
ours, theirs = minutes_lost(polinucb), minutes_lost(LinUCB(3, dim_x=2))
print(f"Minutes lost per day: {ours:.3f} with follow-ups (poLinUCB), {theirs:.3f} without (LinUCB on x)")
