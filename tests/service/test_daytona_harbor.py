"""Harbor's own command with its Daytona provider, unmodified, and a task of ours."""

from __future__ import annotations

import asyncio

import pytest

from .harbor import need_harbor, oracle, write_task


@pytest.mark.timeout(420)
def test_harbors_oracle_solves_a_task_through_its_daytona_provider(serve, tmp_path):
    need_harbor()

    async def work():
        async with serve("jail+pool") as served:
            env = {"DAYTONA_API_URL": f"{served.url}/api", "DAYTONA_API_KEY": served.token}
            task, out = write_task(tmp_path / "task"), tmp_path / "jobs"
            (trial,) = await oracle("daytona", task, out, env)
            assert (trial.reward, trial.error) == (1.0, None)
            assert len(served.cloud.census) == 0, "Harbor deleted what it made"

    asyncio.run(work())
