"""Arms that come and go, and move their follow-ups: which context map, and what the wrong one costs.

An offer is made to a customer, and z is how much it is used. That depends on the offer, and so does what use
earns. Every 100 rounds the oldest offer is retired and a new one begins.
"""

import numpy as np

from postserve import LinUCB, PerArmMap, PoLinUCB, RidgeMap

ROUNDS, RENEWAL = 2000, 100
ON_X = RidgeMap(dim_x=2, dim_z=1)
ON_ROWS = RidgeMap(dim_x=8, dim_z=1)


def value_lost(policy):
    """Mean value lost per round to the best present offer; the policy is given rows, or x if it is short."""
    world, rng = np.random.default_rng(0), np.random.default_rng(1)
    use, items, worth, lost = world.normal(size=8), {}, {}, 0.0
    for t in range(ROUNDS):
        if t and t % RENEWAL == 0:
            policy.remove_arm(policy.arms[0])
            policy.add_arm()  # its id is new: ids are never used twice
        for arm in policy.arms:
            if arm not in items:
                items[arm], worth[arm] = world.normal(size=2), world.uniform(0.5, 1.5)
        x = world.uniform(-1.0, 1.0, size=2)
        rows = np.array([[*x, *items[arm], *np.outer(x, items[arm]).ravel()] for arm in policy.arms])
        takes_rows = policy.dim_x == 8
        arm = policy.select(rows if takes_rows else x, rng).arm
        served = policy.arms.index(arm)
        z = use @ rows[served] + 0.5 * world.normal()
        policy.update(rows[served] if takes_rows else x, arm, [z], reward=worth[arm] * z)
        expected = rows @ use * [worth[each] for each in policy.arms]
        lost += expected.max() - expected[served]
    return lost / ROUNDS


policies = {
    "poLinUCB, one map of rows (customer, offer)": PoLinUCB(4, ON_ROWS, model="hybrid"),
    "LinUCB on the same rows, which ignores follow-ups": LinUCB(4, dim_x=8, model="hybrid"),
    "LinUCB on x": LinUCB(4, dim_x=2),
    "poLinUCB, one map per arm": PoLinUCB(4, PerArmMap(ON_X)),
    "poLinUCB, one map of x for all arms: wrong, as the arm moves z": PoLinUCB(4, ON_X),
}
print("Value lost per round:")
for name, policy in policies.items():
    print(f"{value_lost(policy):.3f}  {name}")
