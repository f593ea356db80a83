"""The application without its processes: jobs are done where the test runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from fastapi.testclient import TestClient

from kvplan.web.app import create_app
from kvplan.web.jobs import Job, Reply, perform


class Here:
    """A worker that does jobs at once."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Here]:
        yield self

    async def do(self, job: Job) -> Reply:
        return perform(job)


@pytest.fixture
def client() -> Iterator[TestClient]:
    with TestClient(create_app(workers=Here(), offline=True)) as found:
        yield found
