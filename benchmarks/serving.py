"""The service as its benchmark starts it: `python -m benchmarks.serving FILE [--reference]`.

The reference is the same app, endpoint and policy, which has learnt some rounds and has others open, with no
log and no learning: each request is answered at once.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette

from benchmarks.service import Traffic
from postserve.service.edge.app import make_app
from postserve.service.engine import Engine
from postserve.service.experiment import read_experiment
from postserve.service.log.replies import Answer
from postserve.service.log.requests import Decide, Request
from postserve.service.log.rounds import Round
from postserve.service.log.stores.memory import MemoryStore
from postserve.service.serving import serve

TAUGHT = 600
"""Rounds that the reference has met."""


def teach(engine: Engine) -> None:
    """Some rounds, of which the last stay open."""
    traffic = Traffic()
    for i in range(TAUGHT):
        _, asked = traffic.decide()
        engine.decide(asked["context"], name=asked["id"]).result()
        if i >= TAUGHT // 2:
            came = traffic.outcome()
            engine.follow(came["id"], came["z"]).result()
            engine.reward(came["id"], came["reward"]).result()
    engine.learner.wait_for(engine.store.last(), 60.0)


def serve_reference(path: Path) -> None:
    experiment = read_experiment(path)
    engine = Engine(experiment, MemoryStore())
    app = make_app(engine)

    @contextlib.asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        await asyncio.to_thread(engine.start)
        await asyncio.to_thread(teach, engine)
        loop = asyncio.get_running_loop()

        def answer(request: Request) -> Any:
            future = loop.create_future()
            known = Round().after(request.decided) if isinstance(request, Decide) else Round()
            future.set_result(Answer(known, True))
            return future

        engine.submit = answer
        yield

    app.router.lifespan_context = life
    host, port = experiment.server.host, experiment.server.port
    uvicorn.run(app, host=host, port=port, log_level="warning", access_log=False, server_header=False)


if __name__ == "__main__":
    (serve_reference if "--reference" in sys.argv else serve)(Path(sys.argv[1]))
