"""Late and partial feedback: z comes after 10 rounds or never, the reward after 50, and the process restarts.

The policy holds nothing pending: the caller keeps (x, arm) of every open decision, and brings z and rewards
when they come. On a restart, open decisions have to be stored beside the policy's state.
"""

import tempfile
from pathlib import Path

import numpy as np

import postserve
from postserve import PoLinUCB, RidgeMap

ROUNDS, Z_DELAY, REWARD_DELAY = 1000, 10, 50
world, rng = np.random.default_rng(0), np.random.default_rng(1)
# A z that never comes becomes phi_hat(x).
policy = PoLinUCB(2, RidgeMap(dim_x=2, dim_z=1), missing_z="impute")
open_decisions, without_z, right = {}, 0, []

for t in range(ROUNDS):
    x = world.normal(size=2)
    arm = policy.select(x, rng).arm
    open_decisions[t] = {"x": x, "arm": arm, "z": None, "z_hat": None}
    right.append(arm == (x.sum() < 0.0))  # arm 0 earns z and arm 1 loses it, and E[z | x] is the sum of x

    if t >= Z_DELAY and t % 10:  # one z in ten never comes
        late = open_decisions[t - Z_DELAY]
        late["z"] = [late["x"].sum() + world.normal()]
        late["z_hat"] = policy.observe(late["x"], late["arm"], late["z"])  # phi learns
    if t >= REWARD_DELAY:
        late = open_decisions.pop(t - REWARD_DELAY)
        seen = late["z"] or [late["x"].sum() + world.normal()]  # the world knows z, the policy may not
        without_z += late["z"] is None
        reward = seen[0] * (1.0 if late["arm"] == 0 else -1.0)
        policy.credit(late["x"], late["arm"], late["z"], reward, z_hat=late["z_hat"])  # the arm learns

    if t == ROUNDS // 2:  # a restart: arrays only, no pickle
        with tempfile.TemporaryDirectory() as folder:
            policy.save(Path(folder) / "policy.npz")
            policy = postserve.load(Path(folder) / "policy.npz", kind=PoLinUCB)

print(f"{policy.pulls.sum():.0f} rewards learnt, {without_z} without z; {len(open_decisions)} still open")
first, last = np.mean(right[:100]), np.mean(right[-100:])
print(f"Right choices: {first:.0%} of the first 100, {last:.0%} of the last 100")
