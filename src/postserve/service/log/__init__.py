"""The log: what can happen to a decision, the one way into the log, and where it is kept."""
