"""The model: a fold over the log, and the thread that follows it."""
