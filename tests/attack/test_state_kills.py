"""A process that is killed while it saves leaves the file before or the file after."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
from tests.attack.size import LONG

from postserve import LinUCB, load

KILLS = 300 if LONG else 3

SAVES_FOR_EVER = """
import sys
from postserve import LinUCB
policies = [LinUCB(n, 2000, ridge=1.0) for n in (2, 3)]
for policy in policies:
    policy.update([1.0] * 2000, 0, None, 1.0)
print("saving", flush=True)
while True:
    for policy in policies:
        policy.save(sys.argv[1])
"""


def test_a_kill_while_saving_leaves_a_whole_file(tmp_path: Path) -> None:
    path, rng = tmp_path / "state.npz", np.random.default_rng(5)
    LinUCB(2, 2000, ridge=1.0).save(path)
    left = 0
    for _ in range(KILLS):
        saver = subprocess.Popen([sys.executable, "-c", SAVES_FOR_EVER, path], stdout=subprocess.PIPE)
        assert saver.stdout is not None
        saver.stdout.readline()
        try:
            saver.wait(timeout=float(rng.uniform(0.0, 0.05)))
        except subprocess.TimeoutExpired:
            saver.send_signal(signal.SIGKILL)
        saver.communicate()
        policy = load(path, kind=LinUCB)
        assert policy.n_arms in (2, 3)
        left += len(list(tmp_path.iterdir())) - 1
    print(f"{KILLS} kills, {left} unfinished files")
    policy.save(path)
    assert list(tmp_path.iterdir()) == [path]
