"""Simulated traffic: worlds that fit an experiment, what they send, and what came of it."""
