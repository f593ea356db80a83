"""The API against its own description: what it allows, and what it does not, sent to a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.api
schemathesis = pytest.importorskip("schemathesis")

from hypothesis import HealthCheck, settings  # noqa: E402
from schemathesis import checks  # noqa: E402
from schemathesis.specs.openapi import checks as conform  # noqa: E402

from kvplan.web.api import description  # noqa: E402
from tests.browser.conftest import serving  # noqa: E402

SCHEMA = schemathesis.openapi.from_dict(description())
LONGEST_S = 30.0  # the server's own limit on a question is 20 s
CHECKS = [
    checks.not_a_server_error,
    conform.status_code_conformance,
    conform.content_type_conformance,
    conform.response_schema_conformance,
]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with serving() as address:
        yield address


@SCHEMA.parametrize()
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_the_description_holds(case: Any, server: str) -> None:
    """No status, type or body that is not described, never a fault or an endless wait."""
    response = case.call(base_url=server, timeout=LONGEST_S)
    case.validate_response(response, checks=CHECKS)
    assert "fault of kvplan" not in response.text, response.text
