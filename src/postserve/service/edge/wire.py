"""What goes over the wire, in JSON; unknown fields are refused."""

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType

from postserve.service.experiment import PRINTABLE, Name
from postserve.service.log.rounds import Round

Id: TypeAlias = Name
RewardKey: TypeAlias = Annotated[str, Meta(max_length=200, pattern=PRINTABLE)]
Place: TypeAlias = Annotated[int, Meta(ge=1, le=2**63 - 1)]
"""Of an event in the log."""


class _In(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class DecideIn(_In, frozen=True):
    """Choose an arm; the caller's id makes it safe to ask again."""

    context: dict[str, Any]
    id: Id | None = None
    eligible: list[Id] | None = None
    deferred: bool = False


class ContextIn(_In, frozen=True):
    """Fields of z, all or some."""

    z: dict[str, Any]


class RewardIn(_In, frozen=True):
    """A reward."""

    reward: float
    key: RewardKey = ""


class OutcomeIn(_In, frozen=True):
    """What came to one decision, in a batch of many."""

    id: Id
    z: dict[str, Any] | None = None
    reward: float | None = None
    key: RewardKey = ""
    activate: bool = False


class BatchIn(_In, frozen=True):
    """Outcomes of many decisions."""

    events: Annotated[list[OutcomeIn], Meta(max_length=10_000)]


class ArmIn(_In, frozen=True):
    """An arm's name."""

    arm: Id


class PromoteIn(_In, frozen=True):
    """Which snapshot."""

    snapshot: Place


class LogQuery(_In, frozen=True):
    """Which part of the log, and as what; `after` and `before` are places in the log, or times."""

    format: Literal["parquet", "dsjson", "events"] = "parquet"
    after: str | None = None
    before: str | None = None


class DecideOut(Struct, frozen=True, kw_only=True):
    """The arm to serve."""

    id: str
    arm: str
    propensity: float
    propensities: dict[str, float]
    model_version: int
    expires: float
    """Seconds since 1970, until when its reward is waited for."""
    repeated: bool


class OutcomeOut(Struct, frozen=True, kw_only=True):
    """That feedback is kept: what the round waits for now."""

    id: str
    status: str
    repeated: bool


class BatchedOut(Struct, frozen=True, kw_only=True):
    """What became of one outcome of a batch: it is kept, or it is refused."""

    id: str
    status: str | UnsetType = UNSET
    repeated: bool | UnsetType = UNSET
    error: str | UnsetType = UNSET
    message: str | UnsetType = UNSET


class BatchOut(Struct, frozen=True, kw_only=True):
    """What became of a batch, in its order."""

    results: list[BatchedOut]


class ArmOut(Struct, frozen=True, kw_only=True):
    """An arm, and whether it can be served."""

    arm: str
    eligible: bool


class ArmsOut(Struct, frozen=True, kw_only=True):
    """All arms."""

    arms: list[ArmOut]


class SnapshotOut(Struct, frozen=True, kw_only=True):
    """A saved model."""

    snapshot: int
    digest: str


class ModelsOut(Struct, frozen=True, kw_only=True):
    """The model that decides, and all snapshots."""

    version: int
    leads: bool
    """Whether this process is the one that learns."""
    behind: int
    """How many events of the log it has not learnt yet."""
    skipped: int
    """How many events taught it nothing because the policy refused them."""
    promoted: int | None
    """The snapshot from which it goes on, if one was promoted."""
    snapshots: list[SnapshotOut]


class LiveOut(Struct, frozen=True, kw_only=True):
    """The process answers."""

    status: Literal["alive"] = "alive"


class ReadyOut(Struct, frozen=True, kw_only=True):
    """The service decides."""

    version: int
    status: Literal["ready"] = "ready"


class ErasedOut(Struct, frozen=True, kw_only=True):
    """That a decision is forgotten."""

    id: str
    status: str


class RoundOut(Struct, frozen=True, kw_only=True):
    """All that is known of a decision."""

    id: str
    status: str
    x: dict[str, Any] | None
    arm: str | None
    propensity: float | None
    eligible: list[str] | None
    model_version: int | None
    time: float | None
    expires: float | None
    active: bool
    z: dict[str, Any]
    rewards: list[float]
    reward: float | None


class ErrorOut(Struct, frozen=True, kw_only=True):
    """What went wrong: a word for programs, and a sentence for people."""

    error: str
    message: str


def status_of(known: Round, z_names: tuple[str, ...]) -> str:
    """One word for where a round is."""
    if known.decided is None:
        return "parked"
    if known.is_void:
        return "expired"
    if known.is_closed(z_names):
        return "closed"
    return "open" if known.active else "deferred"


def round_out(name: str, known: Round, z_names: tuple[str, ...]) -> RoundOut:
    """A round as the caller sees it."""
    decided = known.decided
    return RoundOut(
        id=name,
        status=status_of(known, z_names),
        x=None if decided is None else decided.x,
        arm=None if decided is None else decided.arm,
        propensity=None if decided is None else decided.propensity,
        eligible=None if decided is None else list(decided.eligible),
        model_version=None if decided is None else decided.version,
        time=None if decided is None else decided.time,
        expires=None if decided is None else decided.due,
        active=known.active,
        z=known.z,
        rewards=[each.reward for each in known.rewards],
        reward=known.reward,
    )
