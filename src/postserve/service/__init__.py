"""The decision service: it decides, remembers every decision, and learns when follow-ups and rewards come.

The log is the truth, in one order, and the model is a fold over it. A request becomes events (`requests.py`)
of a round (`rounds.py`), which the writer commits before anybody gets an answer (`writer.py`); the learner
takes them in their order (`learner.py`, `fold.py`), and decisions are made beside it, by the newest model.
Where several processes share a store (`stores/`), one of them learns for all.
"""
