"""Other libraries of contextual bandits, each measured in a virtual environment of its own.

A peer is a file here with `make(n_arms, dim)`: LinUCB with ridge 1 and radius 1, or the nearest equivalent.
"""
