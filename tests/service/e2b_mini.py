"""mini-swe-agent's own agent with a written-down model, in the environment that the documentation has for it."""

from __future__ import annotations

import json
import sys

from minisweagent.agents.default import DefaultAgent
from minisweagent.models.test_models import DeterministicModel, make_output

COMMANDS = (
    "echo 'print(6 * 7)' > solve.py && echo made",
    "python3 solve.py; echo complaint >&2; exit 5",
    "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && cat solve.py",
)

documented: dict = {}
exec(open(sys.argv[1]).read(), documented)  # noqa: PTH123, SIM115  # what the documentation says
environment = documented["E2BEnvironment"](cwd="/home/user")
outputs = [make_output("next", [{"command": command}], 0.0) for command in COMMANDS]
model = DeterministicModel(outputs=outputs)
agent = DefaultAgent(model, environment, system_template="Solve.", instance_template="{{task}}")
end = agent.run("Write a program.")
environment.sandbox.kill()
json.dump({"end": end, "said": [str(each["content"]) for each in agent.messages]}, sys.stdout)
