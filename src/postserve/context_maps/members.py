"""What maps that are made of maps have in common."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from postserve.changes import Effect, Guarded, counted, whole
from postserve.context_maps.base import SharedMap, TaughtByArm, cannot_fail, prepared
from postserve.errors import InvalidInput
from postserve.protocols import ContextMap, Forgets, HoldsArms, RefitsPrior
from postserve.types import FloatArray
from postserve.validation import errors_as_invalid_input, number


class MadeOfMaps(Guarded):
    """The verbs that go to every member."""

    maps: Sequence[ContextMap]

    def _effects(self, pairs: Mapping[int, tuple[FloatArray, int, FloatArray]]) -> list[Effect]:
        """The effects of teaching members, by their numbers, an x, an arm and a z each.

        Only maps of a user's own may fail to learn: they come first, so that then none has learnt.
        """
        ours, theirs = [], []
        for i, (x, arm, z) in pairs.items():
            each = self.maps[i]
            if cannot_fail(each):
                ours += prepared(each, x, arm, z)
            else:
                theirs.append(partial(_teach, i, each, x, arm, z))
        return theirs + ours

    def _parts(self) -> Iterable[ContextMap]:
        return self.maps

    def _settling(self) -> list[Effect]:
        ours = [each for each in self.maps if isinstance(each, SharedMap | TaughtByArm)]
        found = [(each, effects) for each in ours if (effects := each._settling())]
        return [effect for each, effects in found for effect in counted(each._guard, effects)]

    @whole
    def remove_arm(self, arm: int) -> None:
        """Drop what maps that hold something for this arm hold."""
        for each in self.maps:
            if isinstance(each, HoldsArms):
                each.remove_arm(arm)

    @whole
    def refit_prior(self) -> None:
        """Refit the prior of every map that has one."""
        for each in self.maps:
            if isinstance(each, RefitsPrior):
                each.refit_prior()

    @whole
    def forget(self, keep: float) -> None:
        """Multiply what every map has learnt by keep, in (0, 1]; refused if one of them cannot."""
        keep, forgetful = number("keep", keep, above=0.0, most=1.0), []
        for i, each in enumerate(self.maps):
            if not isinstance(each, Forgets):
                raise InvalidInput(f"maps[{i}], {each!r}, cannot forget, wanted maps that do")
            each.forget(1.0)  # which changes nothing, but is refused where a map cannot forget at all
            forgetful.append(each)
        for one in forgetful:
            one.forget(keep)


def _teach(i: int, phi_hat: ContextMap, x: FloatArray, arm: int, z: FloatArray) -> None:
    with errors_as_invalid_input(f"maps[{i}].update(x, arm, z) fails", "a map that learns every pair"):
        phi_hat.update(x, arm, z)
