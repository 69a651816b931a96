"""The theory: bounds over measured regret, the lemmas' slack and tightness, the noisy Gram factor."""

from functools import partial

from postserve.experiments.bounds import DELTA
from postserve.experiments.figure import Row, Size
from postserve.experiments.figures.theory import quantities as q
from postserve.experiments.figures.theory.results import claims as claims
from postserve.experiments.figures.theory.results import draw as draw
from postserve.experiments.rates import with_slopes
from postserve.experiments.study import Cell, Study, cells_of, regret_cells, seed_list

TITLE = "The theory: bounds, lemmas and coverage"
ABOUT = (
    "The regret bounds with constants that hold (proved for gaps of at most 1: computed in units of the "
    "largest gap, and multiplied by it), over the regret of policies with the theory's own radii; the slack "
    "of the elliptical potential lemmas, without noise, with noise in every direction (the paper's "
    "generalised lemma) and with noise of z alone, where that does not apply; where each bound is below the "
    "trivial one; the lemma's tightness at x_t = 1; the factor by which noise of z can enlarge ||v||² at "
    "worst; and how often the confidence ellipsoid misses the truth. docs/theory/ derives each."
)
FULL, QUICK = Size(horizon=10_000, seeds=8), Size(horizon=300, seeds=3, quick=True)
MEASURE = "value"


def cells(size: Size) -> list[Cell]:
    seeds = seed_list(size.seeds)
    makers = {contender.name: partial(q.make_policy, contender, size.horizon) for contender in q.KINDS}
    found = regret_cells({q.REGRET: q.world}, makers, size.horizon, seeds)
    for (panel, line), compute in q.QUANTITIES.items():
        found += cells_of(panel, line, partial(q.curve_of, compute), size.horizon, seeds)
    return found


def summary(study: Study) -> list[Row]:
    """Values at the horizon, and slopes of regrets and of their bounds."""
    rows = []
    for row in study.summary():
        rows += with_slopes(study, [row]) if row["environment"] == q.REGRET else [row]
    return rows


def settings(size: Size) -> dict[str, str]:
    return {
        q.REGRET: f"x uniform on [-10, 10]^{q.DIM_X}, z in {q.DIM_Z} dimension with noise uniform on [-1, "
        f"1], {q.N_ARMS} arms, reward noise {q.REWARD_NOISE:g}; the theory's radii (determinant form, delta "
        f"{DELTA:g} split among them) and joint optimism; ridge {q.RIDGE:g} for poLinUCB, optimal_ridge for "
        "LinUCB(phi_hat)",
        q.SLACK: "right side minus left; u = (x, phi(x)), x normal in 3 dimensions, phi linear into 2, "
        f"normal noise of z; for the paper's generalised lemma, rows of length {q.EVERYWHERE_ROW:g} in the "
        "plane and noise of length 1 in every direction",
        q.SHARE: "the same sequences, p = 1: below 1 a lemma says more than that no round adds more than 1",
        q.ONE: "sum of t^{-p}",
        q.GRAM: "the least s with A~ >= (1 - s) A, the same u and noise, ridge 1: 1 - 1/factor, 1 where "
        "there is no factor yet",
        q.MISSED: f"share of {q.COVERAGE_RUNS} runs per seed, an arm that is chosen adaptively; dim_x = "
        "dim_z = 1, ridge 0.01",
    }
