"""The only Numba code: what runs once a round.

`models.py` ridge regressions, `evidence.py` what learning their prior asks of them, `cholesky.py` the
factorisation that renews them, `joint.py` optimism over z and w, `network.py` the network of `NetworkMap`;
`compiling.py` what happens when they are compiled.

Scaling inputs by powers of two scales results exactly. No kernel releases the interpreter's lock: scratch
arrays are safe in them. No kernel calls one of another file or reads a constant of one, since the cache of
compiled code looks for changes only in a kernel's own.

Each is compiled at its first use, which takes longer than anything else does. Hence none is used where a line
of numpy has the same bits (`linalg/reading.py`), none allocates what can be handed to it, and none is given a
literal number or a variable that begins as one: Numba would compile it for that as a case of its own.
"""
