"""Runs and figures."""
