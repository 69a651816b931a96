"""The experiment's file: arms, the fields of x and z, the policy, and what feedback means."""

import hashlib
import math
import re
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct

from postserve import context_maps, policies
from postserve.data.encoder import Encoder
from postserve.errors import InvalidInput
from postserve.service.values import Values
from postserve.validation import MAX_NORM, one_of

Field: TypeAlias = Literal["number"] | Annotated[list[str], Meta(min_length=2)]
"""A raw value: a number, or one of these categories."""
PRINTABLE = r"^[^\x00-\x1f\x7f\ufffd]*$(?!\n)"
"""No control characters, which not every store keeps, and no character that stands for broken text."""
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=200, pattern=PRINTABLE)]
Role: TypeAlias = Literal["decide", "feedback", "read", "admin"]
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
POLICIES = ("PoLinUCB", "PoLinTS", "RobustPoLinUCB", "LinUCBPhiHat", "LinUCB", "RandomPolicy")
MAPS = ("HybridMap", "RidgeMap", "StagedMap", "KernelMap", "NeighborsMap", "NetworkMap")
LOOPBACK = ("127.0.0.1", "::1", "localhost")
MOST_TEXT = 200
"""Characters of an id, an arm or a category."""
LEAST = 1e-30
"""Smaller numbers are taken as 0: slopes on them would be so steep that usual inputs overflow."""
FOR_EVER = 1e11
"""Seconds; later than any due moment."""


class _Table(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class Feedback(_Table, frozen=True):
    """How long a decision waits, and what its feedback means."""

    wait_for_z: str = "7d"
    wait_for_reward: str = "30d"
    default_reward: float | None = None
    rewards: Literal["first", "last", "sum"] = "first"

    @property
    def longest_wait(self) -> float:
        """In seconds."""
        return max(seconds("wait_for_z", self.wait_for_z), seconds("wait_for_reward", self.wait_for_reward))


class Store(_Table, frozen=True):
    """Where the log is kept, and how often the model is saved."""

    path: Annotated[str, Meta(pattern=PRINTABLE)] = "postserve.sqlite"
    schema: Annotated[str, Meta(pattern="^(?!pg_)[a-z_][a-z0-9_]{0,62}$")] | None = None
    """Of the tables, in Postgres; named after the experiment if it is not said."""
    snapshot_every: Annotated[int, Meta(ge=1)] = 50_000
    keep_snapshots: Annotated[int, Meta(ge=1)] = 10
    keep_events: str | None = None
    """How long the events of closed decisions are kept; for ever if it is not said."""


class Server(_Table, frozen=True):
    """Where the service listens, and what it takes."""

    host: Annotated[str, Meta(pattern=PRINTABLE)] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 8711
    most_bytes: Annotated[int, Meta(ge=1024)] = 1_000_000
    most_waiting: Annotated[int, Meta(ge=1)] = 2_000
    most_per_second: Annotated[float, Meta(gt=0)] | None = None


class Key(_Table, frozen=True):
    """Who may ask for what; `hash` is the SHA-256 of the key, in hexadecimal digits."""

    name: Name
    hash: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    roles: Annotated[list[Role], Meta(min_length=1)]


class Experiment(_Table, frozen=True):
    """An experiment, as its file has it; `read_experiment` checks all of it."""

    name: Name
    arms: Annotated[list[Name], Meta(min_length=1)]
    x: dict[Name, Field]
    z: dict[Name, Field] = {}
    policy: dict[str, Any] = {}
    shadow: dict[str, Any] | None = None
    """A second policy, which learns and decides nothing."""
    explore: Annotated[float, Meta(ge=0.0, le=1.0)] = 0.05
    most_magnitude: Annotated[float, Meta(gt=0.0, le=MAX_NORM)] = 1e9
    feedback: Feedback = Feedback()
    store: Store = Store()
    server: Server = Server()
    keys: list[Key] = []

    @property
    def model(self) -> dict[str, Any]:
        """All that the model depends on: it cannot change once the experiment has begun."""
        return {"name": self.name, "x": self.x, "z": self.z, "policy": self.policy}

    @property
    def digest(self) -> str:
        """Of `model`."""
        return hashlib.sha256(msgspec.json.encode(self.model, order="sorted")).hexdigest()

    def encoders(self) -> tuple[Encoder, Encoder]:
        """How the fields of x and z become numbers."""
        return _encoder(self.x), _encoder(self.z)

    def untaught(self, n_arms: int) -> Any:
        """The policy before the first event."""
        return make_policy(self, n_arms)


def read_experiment(path: Path) -> Experiment:
    """The experiment in a TOML file, checked down to the policy that it makes."""
    try:
        content = path.read_bytes()
    except OSError as error:
        got = f"{path} cannot be read ({error.strerror})"
        raise InvalidInput(f"{got}, wanted an experiment's file") from error
    return parse_experiment(content.decode("utf-8", "replace"), str(path))


def parse_experiment(text: str, label: str = "the experiment") -> Experiment:
    """`read_experiment` of a file's text."""
    try:
        raw = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # of thousands of digits, or of brackets
        wanted = "a file as `postserve serve --init` writes it"
        raise InvalidInput(f"{label} is not TOML ({error}), wanted {wanted}") from error
    try:
        found = msgspec.convert(raw, Experiment)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{label}: {_in_words(str(error), raw)}") from error
    try:
        _check(found)
        make_policy(found, len(found.arms))
    except InvalidInput as error:
        raise InvalidInput(f"{label}: {error}") from error
    if found.shadow is not None:
        try:
            make_policy(msgspec.structs.replace(found, policy=found.shadow), len(found.arms))
        except InvalidInput as error:
            raise InvalidInput(f"{label}, in [shadow]: {error}") from error
    return found


@lru_cache  # as the writer asks with every commit
def seconds(key: str, text: str) -> float:
    """A wait such as "90s", "15m", "12h" or "30d"."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smhd])", text)
    found = float(match[1]) * UNITS[match[2]] if match else math.nan
    if not 0.0 < found <= FOR_EVER:
        raise InvalidInput(f'{key} is {text!r:.60}, wanted a time such as "90s", "15m", "12h" or "30d"')
    return found


def make_policy(experiment: Experiment, n_arms: int) -> Any:
    """The policy of the file, untaught."""
    options = dict(experiment.policy)
    name = options.pop("name", "PoLinUCB" if experiment.z else "LinUCB")
    made = _class_named("policy.name", name, policies, POLICIES)
    x_encoder, z_encoder = experiment.encoders()
    settings = options.pop("map", {})
    if not isinstance(settings, dict):
        raise InvalidInput(f"policy.map is {settings!r:.60}, wanted a table with a name")
    if options.get("missing_z") == "raise":
        raise InvalidInput('policy.missing_z is "raise", wanted "impute" or "drop": z may never come')
    sizes: tuple[Any, ...] = (n_arms,)
    if name == "LinUCB":
        sizes, options["x_features"] = (n_arms, len(x_encoder.names)), x_encoder
    elif name != "RandomPolicy":
        if not experiment.z:
            raise InvalidInput(f"policy.name is {name!r}, which needs z, wanted fields in [z], or LinUCB")
        sizes = (n_arms, _map(dict(settings), x_encoder, z_encoder))
        options = {"missing_z": "impute", **options, "x_features": x_encoder, "z_features": z_encoder}
    return _made(f"policy ({name})", made, sizes, options)


def _map(settings: dict[str, Any], x_encoder: Encoder, z_encoder: Encoder) -> Any:
    name = settings.pop("name", "HybridMap")
    made = _class_named("policy.map.name", name, context_maps, MAPS)
    dim_x, dim_z = len(x_encoder.names), len(z_encoder.names)
    if name != "StagedMap":
        return _made(f"policy.map ({name})", made, (dim_x, dim_z), settings)
    stages, maps = settings.pop("stages", None), []
    lists = isinstance(stages, list) and all(isinstance(stage, list) for stage in stages)
    if not lists or [each for stage in stages for each in stage] != z_encoder.inputs:
        wanted = f"lists of the fields of z, in their order: {', '.join(z_encoder.inputs)}"
        raise InvalidInput(f"policy.map.stages is {stages!r:.60}, wanted {wanted}")
    for stage in stages:
        width = sum(len(range(dim_z)[z_encoder.place(field)]) for field in stage)
        maps.append(_made("policy.map (a stage)", context_maps.HybridMap, (dim_x, width), settings))
        dim_x += width
    return made(maps)


def _class_named(key: str, name: Any, room: Any, known: tuple[str, ...]) -> Any:
    return getattr(room, one_of(key, name, known))


def _made(key: str, made: Any, sizes: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    try:
        return made(*sizes, **options)
    except InvalidInput as error:
        raise InvalidInput(f"{key}: {error}") from error
    except TypeError as error:
        raise InvalidInput(f"{key} cannot be made ({error}), wanted options of this class") from error


def _encoder(fields: Mapping[str, Field]) -> Encoder:
    """Categories that nobody named count as the mean of those named."""
    columns: list[list[Any]] = []
    for name, field in fields.items():
        if field == "number":
            columns.append([name, 0.0, "refused"])
        else:
            columns.append([name, list(field), [1.0 / len(field)] * len(field), "refused"])
    return Encoder(columns)


def _check(found: Experiment) -> None:
    """Raise for what types cannot say."""
    if len(set(found.arms)) < len(found.arms):
        raise InvalidInput(f"arms is {', '.join(found.arms):.60}, wanted each name once")
    if not found.x:
        raise InvalidInput("x has no fields, wanted at least one")
    for side, fields in (("x", found.x), ("z", found.z)):
        for name, field in fields.items():
            if field == "number":
                continue
            if len(set(field)) < len(field):
                raise InvalidInput(f"{side}.{name} is {', '.join(field):.60}, wanted each category once")
            for category in field:
                check_text(f"{side}.{name}: the category {category!r:.60}", category)
    for key in ("wait_for_z", "wait_for_reward"):
        seconds(f"feedback.{key}", getattr(found.feedback, key))
    if found.store.keep_events is not None:
        seconds("store.keep_events", found.store.keep_events)
    default = found.feedback.default_reward
    if default is not None and not abs(default) <= found.most_magnitude:
        raise InvalidInput(f"feedback.default_reward is {default}, wanted at most {found.most_magnitude:g}")
    if found.server.host not in LOOPBACK and not found.keys:
        raise InvalidInput(
            f"server.host is {found.server.host!r} and there are no keys, wanted a loopback address "
            f"({', '.join(LOOPBACK)}), or [[keys]]"
        )
    names = [key.name for key in found.keys]
    if len(set(names)) < len(names):
        raise InvalidInput(f"keys are named {', '.join(names):.60}, wanted each name once")


def check_values(
    side: str, fields: Mapping[str, Field], values: Mapping[str, Any], most: float, *, whole: bool
) -> Values:
    """Raw values of x or z as they are logged; raises for the first that does not fit its field."""
    if unknown := [name for name in values if name not in fields]:
        raise InvalidInput(f"{side} has {unknown[0]!r:.60}, wanted only {', '.join(fields)}")
    if whole and (lacking := [name for name in fields if name not in values]):
        raise InvalidInput(f"{side} has no {lacking[0]}, wanted {', '.join(fields)}")
    found: Values = {}
    for name, value in values.items():
        if fields[name] == "number":
            found[name] = check_number(f"{side}.{name}", value, most)
        else:
            if type(value) is not str:
                raise InvalidInput(f"{side}.{name} is {value!r:.60}, wanted the name of a category")
            found[name] = check_text(f"{side}.{name}", value)
    return found


def check_number(what: str, value: Any, most: float) -> float:
    """A number as it is logged; one that is next to nothing is 0."""
    if type(value) not in (int, float) or not abs(value) <= most:
        raise InvalidInput(f"{what} is {value!r:.60}, wanted a number of at most {most:g}")
    return float(value) if abs(value) >= LEAST else 0.0


def check_text(what: str, text: str) -> str:
    """A text as every store can keep it: some have no NUL characters, and none has lone surrogates.

    The edge of HTTP asks the same of ids (`Name`); this is for callers in Python, and for values.
    """
    if not 0 < len(text) <= MOST_TEXT:
        raise InvalidInput(f"{what} has {len(text)} characters, wanted 1 to {MOST_TEXT}")
    if not re.match(PRINTABLE, text) or not (text.isascii() or _is_whole(text)):
        raise InvalidInput(f"{what} is {text!r:.60}, wanted no control characters and no lone surrogates")
    return text


def _is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _in_words(error: str, raw: dict[str, Any]) -> str:
    """msgspec's message with the key first, and what the file has there."""
    what, _, where = error.partition(" - at ")
    key = where.strip("`").removeprefix("$.").removeprefix("key in `$.") or "the file"
    got: Any = raw
    for name in re.findall(r"[^.[\]]+", key):
        got = got.get(name) if isinstance(got, dict) else got[int(name)] if isinstance(got, list) else None
    if what.startswith("Expected") and "got" not in what and isinstance(got, str | int | float):
        with suppress(ValueError):  # of thousands of hexadecimal digits
            what += f", got {got!r:.60}"
    return f"{key}: {what[:1].lower()}{what[1:]}"
