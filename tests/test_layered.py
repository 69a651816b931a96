"""A layered dictionary is a dictionary, and so is each of its copies."""

import copy
import pickle

from hypothesis import given
from hypothesis import strategies as st

from postserve.layered import LEAST, Layered

KEYS = st.integers(0, 300)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("set"), KEYS, st.integers(0, 9)),
        st.tuples(st.just("add"), KEYS, st.integers(1, 3 * LEAST)),  # so many keys from here on
        st.tuples(st.just("delete"), KEYS, st.integers(1, 3 * LEAST)),
        st.tuples(st.just("copy"), KEYS, st.just(0)),
    ),
    max_size=40,
)


@given(changes=CHANGES)
def test_it_is_a_dictionary(changes: list[tuple[str, int, int]]) -> None:
    kept: list[tuple[Layered[int, int], dict[int, int]]] = [(Layered(), {})]
    for what, key, value in changes:
        ours, plain = kept[key % len(kept)]
        if what == "copy":
            kept.append((copy.copy(ours), dict(plain)))
        elif what == "set":
            ours[key] = plain[key] = value
        else:
            for each in range(key, key + value):
                if what == "add":
                    ours[each] = plain[each] = each
                elif each in plain:
                    del ours[each]
                    del plain[each]
    kept += [(pickle.loads(pickle.dumps(ours)), plain) for ours, plain in kept]
    kept += [(copy.deepcopy(ours), plain) for ours, plain in kept]
    for ours, plain in kept:
        assert list(ours.items()) == list(plain.items())
        assert (len(ours), bool(ours)) == (len(plain), bool(plain))
        assert all((key in ours) == (key in plain) for key in range(0, 900, 7))
        assert ours.get(-1) is None
