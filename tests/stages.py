"""z in stages by hand: one dense regression per stage, and rounds whose stages are out."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from postserve import RidgeMap, StagedMap
from postserve.types import FloatArray

NAN = np.nan
DIM_X, SIZES, ARMS = 2, (1, 2, 1), (0, 1, 2)
DIM_Z = sum(SIZES)
STARTS = [0, 1, 3]
RIDGE = 0.7


X_ALONE, ONE_STAGE = (0, 0, 0), (0, 0, 1)
"""How many entries of z each map is told, where it is not told all before its stage."""


def staged(kind: Any = RidgeMap, told: Sequence[int] = STARTS) -> StagedMap:
    dims = [(DIM_X + n, size) for n, size in zip(told, SIZES, strict=True)]
    return StagedMap([kind(dim_x, dim_z, ridge=RIDGE) for dim_x, dim_z in dims])


class Truth:
    """One dense regression per stage, on (x, earlier stages) or on a common part of it and one per arm."""

    def __init__(self, hybrid: bool, told: Sequence[int] = STARTS) -> None:
        self.hybrid, self.told = hybrid, told
        blocks = 1 + len(ARMS) if hybrid else 1
        dims = [blocks * (DIM_X + n) for n in told]
        self.precision = [RIDGE * np.eye(dim) for dim in dims]
        self.moment = [np.zeros((dim, size)) for dim, size in zip(dims, SIZES, strict=True)]
        self.out = [np.zeros((dim, dim)) for dim in dims]

    def lift(self, row: FloatArray, arm: int) -> FloatArray:
        if not self.hybrid:
            return row
        lifted = np.zeros((1 + len(ARMS), len(row)))
        lifted[0] = lifted[1 + arm] = row
        return lifted.ravel()

    def learn(self, stage: int, x: FloatArray, arm: int, z: FloatArray) -> None:
        start = STARTS[stage]
        f = self.lift(np.concatenate([x, z[: self.told[stage]]]), arm)
        self.precision[stage] += f[:, None] * f
        self.moment[stage] += f[:, None] * z[start : start + SIZES[stage]]

    def rows_out(self, x: FloatArray, arm: int, z: FloatArray) -> dict[int, FloatArray]:
        """The rows of the stages that cannot be learnt from this z, at its conditional mean."""
        completed = np.concatenate([x, self.complete(x, arm, z)])
        stages = set(range(len(SIZES))) - stages_in(z, self.told)
        return {stage: self.lift(completed[: DIM_X + self.told[stage]], arm) for stage in stages}

    def announce(self, rows: dict[int, FloatArray], sign: float = 1.0) -> None:
        for stage, f in rows.items():
            self.out[stage] += sign * f[:, None] * f

    def remove(self, arm: int) -> None:
        """Start the arm's own part again; what it has taught the common part stays."""
        if not self.hybrid:
            return
        for n, precision, moment in zip(self.told, self.precision, self.moment, strict=True):
            dim = DIM_X + n
            gone = np.isin(np.arange(len(precision)) // dim, 1 + arm)
            taught = precision[~gone][:, gone] @ np.linalg.inv(precision[gone][:, gone])
            precision[np.ix_(~gone, ~gone)] -= taught @ precision[gone][:, ~gone]
            moment[~gone] -= taught @ moment[gone]
            precision[gone], precision[:, gone], moment[gone] = 0.0, 0.0, 0.0
            precision[np.ix_(gone, gone)] = RIDGE * np.eye(dim)

    def forget(self, keep: float) -> None:
        for precision, moment in zip(self.precision, self.moment, strict=True):
            precision[:] = keep * precision + (1.0 - keep) * RIDGE * np.eye(len(precision))
            moment *= keep

    def complete(self, x: FloatArray, arm: int, z: FloatArray) -> FloatArray:
        row = x
        for stage, (start, size) in enumerate(zip(STARTS, SIZES, strict=True)):
            f = self.lift(row[: DIM_X + self.told[stage]], arm)
            mean = f @ np.linalg.solve(self.precision[stage], self.moment[stage])
            known = z[start : start + size]
            row = np.concatenate([row, np.where(np.isnan(known), mean, known)])
        return row[DIM_X:]

    def covariance(self, x: FloatArray, arm: int) -> FloatArray:
        """Of phi(x), stage by stage, with rounds that are out: the noise of z counts as 1."""
        mean = np.concatenate([x, self.complete(x, arm, np.full(DIM_Z, NAN))])
        total = np.zeros((0, 0))
        for stage, (start, size) in enumerate(zip(STARTS, SIZES, strict=True)):
            inverse = np.linalg.inv(self.precision[stage] + self.out[stage])
            weights = np.linalg.solve(self.precision[stage], self.moment[stage])
            basis = np.zeros((DIM_X + start, len(inverse)))
            for i, row in enumerate(np.eye(DIM_X + self.told[stage])):
                basis[i] = self.lift(row, arm)
            A = basis @ inverse @ basis.T
            slopes = (basis @ weights)[DIM_X:].T
            f = mean[: DIM_X + start]
            own = f @ A @ f + np.trace(A[DIM_X:, DIM_X:] @ total)
            grown = np.zeros((start + size, start + size))
            grown[:start, :start] = total
            grown[start:, :start] = slopes @ total
            grown[:start, start:] = grown[start:, :start].T
            grown[start:, start:] = slopes @ total @ slopes.T + own * np.eye(size)
            total = grown
        return total


def require_equal(phi_hat: StagedMap, truth: Truth, rng: np.random.Generator) -> None:
    X = rng.normal(size=(len(ARMS), DIM_X))
    means = [truth.complete(x, arm, np.full(DIM_Z, NAN)) for x, arm in zip(X, ARMS, strict=True)]
    np.testing.assert_allclose(phi_hat.predict(X, ARMS), means, rtol=1e-8, atol=1e-8)
    spread = [np.sqrt(np.diag(truth.covariance(x, arm))) for x, arm in zip(X, ARMS, strict=True)]
    np.testing.assert_allclose(phi_hat.spread(X, ARMS), spread, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(phi_hat.radius(X, ARMS), np.linalg.norm(spread, axis=1), rtol=1e-8)
    z = np.where(rng.random(DIM_Z) < 0.5, rng.normal(size=DIM_Z), NAN)
    np.testing.assert_allclose(phi_hat.complete(X[1], 1, z), truth.complete(X[1], 1, z), rtol=1e-8, atol=1e-8)


def rounds(n: int, rng: np.random.Generator) -> list[tuple[FloatArray, int, FloatArray]]:
    first = np.arange(1.0, DIM_X + 1.0)
    found = []
    for _ in range(n):
        x, arm = rng.normal(size=DIM_X), int(rng.integers(len(ARMS)))
        z = np.cumsum(rng.normal(size=DIM_Z) + x @ first + arm)
        found.append((x, arm, z))
    return found


def stages_in(part: FloatArray | None, told: Sequence[int]) -> set[int]:
    gaps = np.full(DIM_Z, True) if part is None else np.isnan(part)
    needed = [np.r_[:n, start : start + size] for n, start, size in zip(told, STARTS, SIZES, strict=True)]
    return {k for k, entries in enumerate(needed) if not gaps[entries].any()}
