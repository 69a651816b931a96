"""The only Numba code: what runs once a round.

`models.py` ridge regressions, `evidence.py` what learning their prior asks of them, `cholesky.py` the
factorisation that renews them, `joint.py` optimism over z and w, `network.py` the network of `NetworkMap`.

Scaling inputs by powers of two scales results exactly. No kernel releases the interpreter's lock: scratch
arrays are safe in them. No kernel calls one of another file or reads a constant of one, since the cache of
compiled code looks for changes only in a kernel's own.
"""
