"""What a policy has learnt, by the names of its inputs: as data, as text and as HTML."""

import html
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from postserve.errors import InvalidInput
from postserve.linalg.hybrid import HybridModels
from postserve.policies.inputs import Inputs
from postserve.protocols import ContextMap, MeasuresErrors
from postserve.types import FloatArray, IntArray, Prior
from postserve.validation import errors_as_invalid_input

if TYPE_CHECKING:
    from postserve.policies.linear import LinearPolicy

FIRST, MOST_PULLED = 6, 6
"""Of many arms, how many are described: the first ones, and those pulled most."""
ARMS_PER_BLOCK = 6
"""Columns of arms in one block of the text, which then fits 80 columns where names are short."""


class Description(NamedTuple):
    """What a policy has learnt; `print` shows it as a table, and so does a notebook.

    `weights` has one row per described arm and one column per input, block after block of `inputs`. Where
    all arms share one model, `arms` is empty and there is one row. In a hybrid model `shared` is w_0, which
    the weights of each arm include. `map_errors` are phi_hat's root mean squared errors at a z that
    it has not learnt, one per follow-up: by generalised cross-validation in a `RidgeMap`, in maps that keep
    pairs the mean over all predictions so far, each made before its z was learnt. They are None where the map
    does not know them, and there are none where there is no map. `reward_errors` are those of the members of
    a `BestPolicy`, over rewards that they had not learnt; the member with the least is described.
    """

    policy: str
    n_arms: int
    arms: tuple[int, ...] = ()
    pulls: FloatArray = np.empty(0)
    inputs: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    weights: FloatArray = np.empty((0, 0))
    shared: FloatArray | None = None
    prior: Prior | None = None
    prior_is_learnt: bool = False
    map_errors: tuple[float | None, ...] = ()
    reward_errors: Mapping[str, float] = MappingProxyType({})

    def __str__(self) -> str:
        columns = list(self._columns())
        labels, arms = columns[: -len(self.pulls)], columns[-len(self.pulls) :]
        lines = [self._title()]
        for start in range(0, len(self.pulls), ARMS_PER_BLOCK):
            lines += ["", *_aligned([*labels, *arms[start : start + ARMS_PER_BLOCK]])]
        return "\n".join([*lines, "", *self._notes()])

    def _repr_html_(self) -> str:
        left, right = "text-align: left", "text-align: right; padding-left: 1em"
        rows: list[str] = []
        for label, *cells in zip(*self._columns(), strict=True) if len(self.pulls) else ():
            tag = "td" if rows else "th"
            numbers = "".join(f'<{tag} style="{right}">{html.escape(cell)}</{tag}>' for cell in cells)
            rows.append(f'<tr><th style="{left}">{html.escape(label)}</th>{numbers}</tr>')
        table = f"<table>{''.join(rows)}</table>" if rows else ""
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self._notes())
        return f"<div><p><b>{html.escape(self._title())}</b></p>{table}{notes}</div>"

    def _title(self) -> str:
        arms = "1 arm" if self.n_arms == 1 else f"{self.n_arms:,} arms"
        return f"{self.policy}: {arms if self.n_arms else 'decision sets'}"

    def _columns(self) -> Iterator[list[str]]:
        """The table, column by column: the names of the inputs first, the arms last."""
        yield ["", "pulls", *(name for names in self.inputs.values() for name in names)]
        if self.map_errors:
            errors = ["unknown" if error is None else _shown(error) for error in self.map_errors]
            cells = (errors if block == "z" else [""] * len(names) for block, names in self.inputs.items())
            yield ["phi error", "", *chain.from_iterable(cells)]
        if self.shared is not None:
            yield ["shared", "", *map(_shown, self.shared)]
        labels = [f"arm {arm}" for arm in self.arms] or ["all"] * len(self.pulls)
        for label, pulls, weights in zip(labels, self.pulls, self.weights, strict=True):
            yield [label, f"{pulls:.10g}", *map(_shown, weights)]

    def _notes(self) -> Iterator[str]:
        if self.prior is None:
            yield "No weights are learnt."
            return
        if self.arms and len(self.arms) < self.n_arms:
            left_out = f"{self.n_arms - len(self.arms):,} arms are left out"
            yield f"{left_out}: shown are the first {FIRST}, and the {MOST_PULLED} others with most pulls."
        if self.shared is not None:
            yield "The weights of each arm include the shared ones."
        ridges = ", ".join(f"{block} {_shown(ridge)}" for block, ridge in self.prior.ridge.items())
        if self.prior_is_learnt:
            noise = float(np.sqrt(self.prior.noise_variance[0]))
            known = _shown(noise) if noise > 0.0 else "unknown"
            yield f"Prior, learnt from the evidence: ridge {ridges}; noise scale {known}."
        else:
            yield f"Prior, fixed: ridge {ridges}."
        if self.map_errors:
            yield "phi error: the root mean squared error of phi_hat, at a z that it has not learnt."
        if self.reward_errors:
            errors = ", ".join(f"{name} {_shown(error)}" for name, error in self.reward_errors.items())
            yield f"Root mean squared errors of rewards that were not yet learnt: {errors}."


def describe(
    policy: "LinearPolicy", x_names: Sequence[str] | None, z_names: Sequence[str] | None
) -> Description:
    """What the arms and the map of a linear policy have learnt."""
    arms, ids, prior = policy._arms, policy.arms, policy._arms.models.prior
    x, z = input_names(policy._x, x_names), input_names(policy._z, z_names)
    predicted = tuple(f"predicted {name}" for name in z)
    names = {"x": x, "z": z, "z_hat": predicted, "intercept": ("intercept",)}
    hybrid = arms.models if isinstance(arms.models, HybridModels) else None
    own = list(prior.blocks)[: len(prior.blocks) // 2] if hybrid else list(prior.blocks)
    slots = np.zeros(1, dtype=np.int64) if arms.model == "shared" else _described(policy.pulls)
    phi_hat = policy.context_map
    return Description(
        policy=type(policy).__name__ + (f" with {type(phi_hat).__name__}" if phi_hat is not None else ""),
        n_arms=len(ids),
        arms=() if arms.model == "shared" else tuple(ids[slot] for slot in slots),
        pulls=policy.pulls[slots],
        inputs={block: names[block] for block in own},
        weights=arms.weights(slots),
        shared=_shared_weights(hybrid) if hybrid else None,
        prior=policy.prior,
        prior_is_learnt=prior.evidence,
        map_errors=() if phi_hat is None else _errors(phi_hat),
    )


def _shared_weights(models: HybridModels) -> FloatArray:
    """w_0; where there is a level, its intercept is the reward where x and z are 0."""
    weights, frame = models.shared.weights_of()[0, 0], models.frame
    return weights if frame is None else frame.raw_weights(weights, frame.y_centre[0])


def input_names(inputs: Inputs, names: Sequence[str] | None) -> tuple[str, ...]:
    """The names of what the models see of x or z; where a transformer names it, `names` are its inputs'."""
    what, features, dim = f"{inputs.name}_names", cast(Any, inputs.features), inputs.dim or 0
    if not dim:  # it is not looked at
        return ()
    if names is not None and (isinstance(names, str | Mapping) or not np.iterable(names)):
        raise InvalidInput(f"{what} is {names!r:.60}, wanted a list of names")
    names = None if names is None else list(names)
    taken = getattr(features, "n_features_in_", None)
    numbered = [f"{inputs.name}[{i}]" for i in range(taken or dim)]
    try:
        given = None if hasattr(features, "feature_names_in_") else numbered
        known = tuple(features.get_feature_names_out(given))
    except Exception:  # it has no such method, or, as in some pipelines, one that fails
        known = ()
    if names is None:
        label = inputs.name if features is None else f"{inputs.name}_features"
        return tuple(map(str, known)) if len(known) == dim else tuple(f"{label}[{i}]" for i in range(dim))
    wanted, why = (taken, ": one per input of the transformer") if len(known) and taken else (dim, "")
    if len(names) != wanted:
        raise InvalidInput(f"{what} has {len(names)} names, wanted {wanted}{why}")
    if len(known):
        with errors_as_invalid_input(f"{what} is {list(names)!r:.60}", "names that the transformer takes"):
            names = list(features.get_feature_names_out(names))
    if len(names) != dim:
        raise InvalidInput(f"{what} gives {len(names)} names of features, wanted {dim}")
    return tuple(map(str, names))


def _described(pulls: FloatArray) -> IntArray:
    """The slots to describe, in rising order."""
    if len(pulls) <= FIRST + MOST_PULLED:
        return np.arange(len(pulls))
    by_pulls = FIRST + np.argsort(-pulls[FIRST:], kind="stable")
    return np.sort(np.concatenate([np.arange(FIRST), by_pulls[:MOST_PULLED]]))


def _errors(phi_hat: ContextMap) -> tuple[float | None, ...]:
    if isinstance(phi_hat, MeasuresErrors):
        squares, pairs = phi_hat.squared_errors()
        if pairs > 0.0:
            return tuple(np.sqrt(squares / pairs).tolist())
    return (None,) * phi_hat.dim_z


def _shown(value: float) -> str:
    return f"{value:.3g}"


def _aligned(columns: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows of text: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in columns]
    for label, *cells in zip(*columns, strict=True):
        yield "  ".join([label.ljust(widths[0]), *map(str.rjust, cells, widths[1:])]).rstrip()
