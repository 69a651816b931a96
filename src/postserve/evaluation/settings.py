"""The options of `evaluate` and `compare`, checked."""

from typing import Any, Literal, NamedTuple, TypedDict, get_args

from postserve.errors import InvalidInput
from postserve.evaluation.delays import Delay
from postserve.evaluation.intervals import KINDS, NEED_RANGE, Kind, Range
from postserve.evaluation.models import Ridge, logistic
from postserve.validation import flag, integer, number, one_of, vector

Estimator = Literal["ips", "snips", "dm", "dr", "switch_dr", "replay", "dr_followups"]
ESTIMATORS: tuple[Estimator, ...] = get_args(Estimator)
BOUNDED: tuple[Estimator, ...] = ("ips", "dr", "dr_followups")
"""Their terms are bounded and without bias, as "bernstein" and "sequence" need."""


class Options(TypedDict, total=False):
    """What `evaluate` and `compare` take by name."""

    estimator: Estimator
    learns: bool
    interval: Kind
    level: float
    reward_range: tuple[float, float] | None
    max_ratio: float | None
    threshold: float | None
    reward_model: Any
    arrival_model: Any
    folds: int
    seed: int
    z_delay: Delay
    reward_delay: Delay


class Settings(NamedTuple):
    """The same with their defaults."""

    estimator: Estimator = "dr_followups"
    learns: bool = False
    interval: Kind = "normal"
    level: float = 0.95
    reward_range: Range | None = None
    max_ratio: float | None = None
    threshold: float | None = None
    reward_model: Any = None
    arrival_model: Any = None
    folds: int = 5
    seed: int = 0
    z_delay: Delay = 0
    reward_delay: Delay = 0

    @property
    def needs_models(self) -> bool:
        """Whether the estimator uses q."""
        return self.estimator in ("dm", "dr", "switch_dr", "dr_followups")

    @property
    def counts_missing(self) -> bool:
        """Whether rounds whose reward is missing count; other estimators leave them out."""
        return self.estimator in ("dm", "dr_followups")

    @property
    def normalises(self) -> bool:
        """Whether the estimator divides by what its rounds count for, weights among it."""
        return self.estimator in ("snips", "replay")


def checked(options: Options) -> Settings:
    """The options, or an error that says what is wrong with one.

    >>> checked({"estimator": "ips"}).interval
    'normal'
    """
    unknown = [name for name in options if name not in Settings._fields]
    if unknown:
        raise InvalidInput(f"there is no option {unknown[0]!r}, wanted one of {', '.join(Settings._fields)}")
    given: Any = Settings(**options)  # type: ignore[arg-type]  # a pair is made a Range below
    one_of("estimator", given.estimator, ESTIMATORS)
    one_of("interval", given.interval, KINDS)
    flag("learns", given.learns)
    number("level", given.level, above=0.0, below=1.0)
    integer("folds", given.folds, least=2)
    integer("seed", given.seed, least=0)
    if late := [name for name in ("z_delay", "reward_delay") if name in options]:
        if not given.learns:
            raise InvalidInput(f"{late[0]} is given for a fixed policy, wanted it with learns=True")
        if given.estimator == "replay":
            raise InvalidInput(f"{late[0]} is given for 'replay', wanted replay(…, {late[0]}=…)")
    if given.max_ratio is not None:
        number("max_ratio", given.max_ratio, least=1.0)
    if given.threshold is not None:
        number("threshold", given.threshold, least=0.0)
        if given.estimator != "switch_dr":
            raise InvalidInput(f"threshold is given for {given.estimator!r}, wanted it for 'switch_dr' only")
    if given.reward_range is not None:
        low, high = vector("reward_range", given.reward_range, 2)
        if not low < high:
            raise InvalidInput(f"reward_range is ({low:g}, {high:g}), wanted two numbers that rise")
        given = given._replace(reward_range=Range(float(low), float(high)))
    if given.interval in NEED_RANGE:
        if given.estimator not in BOUNDED:
            able = ", ".join(map(repr, BOUNDED))
            got = f"interval is {given.interval!r} for {given.estimator!r}, whose terms are no unbiased mean"
            raise InvalidInput(f"{got}, wanted one of {able}, or another interval")
        if given.reward_range is None:
            wanted = "the least and the largest reward that there can be"
            raise InvalidInput(f"reward_range is None, {given.interval!r} wanted {wanted}")
        if given.interval == "bernstein" and given.learns:
            got = "interval is 'bernstein' for a policy that learns, whose rounds are not independent"
            raise InvalidInput(f"{got}, wanted 'sequence'")
    for name, verbs in (("reward_model", ("fit", "predict")), ("arrival_model", ("fit", "predict_proba"))):
        model = getattr(given, name)
        if model is not None and not all(callable(getattr(model, verb, None)) for verb in verbs):
            raise InvalidInput(
                f"{name} is {model!r:.60}, wanted a scikit-learn model with {' and '.join(verbs)}"
            )
    if given.needs_models:
        given = given._replace(
            reward_model=Ridge() if given.reward_model is None else given.reward_model,
            arrival_model=logistic() if given.arrival_model is None else given.arrival_model,
        )
    return Settings(*given)
