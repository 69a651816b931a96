# distributed is typed, but not its constructors, which strict mode refuses to call.
from contextlib import AbstractContextManager
from typing import Any, Self

class LocalCluster(AbstractContextManager[LocalCluster]):
    def __init__(
        self,
        *,
        n_workers: int,
        threads_per_worker: int,
        host: str,
        dashboard_address: str,
        scheduler_kwargs: dict[str, Any],
        silence_logs: str,
    ) -> None: ...
    def __exit__(self, *args: object) -> None: ...

class Client(AbstractContextManager[Client]):
    def __init__(
        self, address: str | LocalCluster, *, timeout: float = ..., set_as_default: bool = ...
    ) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *args: object) -> None: ...
    def submit(self, func: Any, *args: Any, pure: bool) -> Any: ...
