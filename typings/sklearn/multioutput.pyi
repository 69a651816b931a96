from typing import Any

class MultiOutputRegressor:
    def __init__(self, estimator: Any) -> None: ...
