"""The only Numba code: what runs once per round.

`models.py` has ridge regressions, `evidence.py` the sums from which their prior is learnt, `cholesky.py` the
factorisation that renews them, `joint.py` optimism over z and w, `network.py` the network of `NetworkMap`,
and `compiling.py` what happens while they are compiled.

Scaling inputs by powers of two scales results exactly. No kernel releases the interpreter's lock, so scratch
arrays are safe. No kernel uses another file's kernels or constants: the cache of compiled code notices
changes only in a kernel's own file.

Compiling a kernel, at its first use, takes longer than anything else. Hence no kernel is used where a line of
numpy has the same bits (`linalg/reading.py`), none allocates an array that can be passed in, and none is
passed a literal number or a variable that begins as one: Numba would compile another case for it.
"""
