"""What maps that are made of maps have in common."""

from collections.abc import Sequence

from postserve.errors import InvalidInput
from postserve.protocols import ContextMap, Forgets, HoldsArms, RefitsPrior
from postserve.validation import number


class MadeOfMaps:
    """The verbs that go to every member."""

    maps: Sequence[ContextMap]

    def remove_arm(self, arm: int) -> None:
        """Drop what maps that hold something for this arm hold."""
        for each in self.maps:
            if isinstance(each, HoldsArms):
                each.remove_arm(arm)

    def refit_prior(self) -> None:
        """Refit the prior of every map that has one."""
        for each in self.maps:
            if isinstance(each, RefitsPrior):
                each.refit_prior()

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
