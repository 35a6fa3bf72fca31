"""Harbor's own command with its providers for Daytona and for E2B, unmodified, and a task of ours."""

from __future__ import annotations

import asyncio

import pytest

from .harbor import need_harbor, oracle, write_task


def told_of(provider, served):
    """The variables that lead Harbor here."""
    if provider == "daytona":
        return {"DAYTONA_API_URL": f"{served.url}/api", "DAYTONA_API_KEY": served.token}
    return {
        "E2B_API_URL": served.url,
        "E2B_SANDBOX_URL": served.url,
        "E2B_API_KEY": served.token,
    }


@pytest.mark.timeout(420)
@pytest.mark.parametrize("provider", ["daytona", "e2b"])
def test_harbors_oracle_solves_a_task_through_its_provider(serve, tmp_path, provider):
    need_harbor()

    async def work():
        async with serve("jail+pool") as served:
            task, out = write_task(tmp_path / "task"), tmp_path / "jobs"
            (trial,) = await oracle(provider, task, out, told_of(provider, served))
            assert (trial.reward, trial.error) == (1.0, None)
            assert len(served.cloud.census) == 0, "Harbor deleted what it made"

    asyncio.run(work())
