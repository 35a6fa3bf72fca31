"""The OpenAPI document is what the service does: requests made up from it, good and bad, find no 5xx and no surprise."""

from __future__ import annotations

import asyncio
import json
import urllib.request

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks

from excise.service.native.openapi import document
from excise.service.native.table import OPERATIONS
from excise.service.sandbox import Wanted

EXAMPLES = 12
CHECKS = [checks.response_schema_conformance, checks.content_type_conformance]


def test_every_operation_is_described_once_and_every_reference_leads_somewhere():
    described = document()
    named = [o["operationId"] for path in described["paths"].values() for o in path.values()]
    assert len(named) == len(set(named)) == len(OPERATIONS)
    text = json.dumps(described)
    for part in text.split('"$ref": "#/components/schemas/')[1:]:
        assert part.partition('"')[0] in described["components"]["schemas"]
    for path, operations in described["paths"].items():
        for operation in operations.values():
            placed = {p["name"] for p in operation["parameters"] if p["in"] == "path"}
            assert all(f"{{{name}}}" in path for name in placed)
            assert operation["summary"].endswith(".")


def wrong_with(operation, answer) -> str | None:
    """What is wrong with an answer, besides its form."""
    said = f"{answer.status_code} {operation.label}: {answer.text[:300]}"
    if answer.status_code >= 500 and answer.status_code != 501:
        return said
    by_the_gate = "text/plain" in answer.headers.get("content-type", [""])
    if answer.status_code >= 400 and not (by_the_gate or answer.text.startswith('{"error":')):
        return said
    return None


def attack(operation, token: str, box: str) -> list[str]:
    """Ask for one operation in many ways, those that it describes and others."""
    failures = []

    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, derandomize=True,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.one_of(*(operation.as_strategy(mode) for mode in GenerationMode)), st.booleans())
    def ask(case, ours):
        if ours and "id" in case.path_parameters:
            case.path_parameters["id"] = box
        if operation.path.endswith("/watch"):
            case.query = {**case.query, "path": "/nowhere"}
        answer = case.call(headers={**(case.headers or {}), "X-API-Key": token}, timeout=30)
        if (wrong := wrong_with(operation, answer)) is not None:
            failures.append(wrong)
        elif answer.status_code < 400:
            case.validate_response(answer, checks=CHECKS)

    try:
        ask()
    except Exception as error:  # noqa: BLE001
        failures.append(f"{operation.label}: {error}")
    return failures


@pytest.mark.timeout(300)
def test_requests_made_up_from_the_document_are_answered_as_it_says(serve):
    """On real jails, so that what is made up is really done."""

    def attack_all(url: str, token: str, box: str) -> list[str]:
        with urllib.request.urlopen(f"{url}/v1/openapi.json") as answer:
            schema = schemathesis.openapi.from_dict(json.load(answer))
        schema.config.update(base_url=url)
        found = [each.ok() for each in schema.get_all_operations()]
        found.sort(key=lambda each: each.label == "DELETE /v1/sandboxes/{id}")
        return [failure for each in found for failure in attack(each, token, box)]

    async def work():
        async with serve("jail+pool") as served:
            box = await served.cloud.create("alice", Wanted(lifetime_s=3600))
            return await asyncio.to_thread(attack_all, served.url, served.token, box.id)

    failures = asyncio.run(work())
    assert not failures, "\n\n".join(failures[:5])
