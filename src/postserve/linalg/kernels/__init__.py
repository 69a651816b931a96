"""The only Numba code: what runs once a round. `linalg/reference.py` says the same in plain numpy.

`models.py` ridge regressions, `panels.py` matrix products, Cholesky's factorisation and a network,
`joint.py` optimism over z and w.

Scaling inputs by powers of two scales results exactly. No kernel releases the interpreter's lock: scratch
arrays are safe in them. No kernel calls one of another file, since the cache of compiled code looks for
changes only in a kernel's own.
"""
