"""How long a question about something that is not done yet is held before it is answered. Pure.

Clients of this protocol ask again and again, and sleep in between. Held questions are answered in the moment in
which there is news. Who asks once wants to know and go on: the first question is held shortly. Who asks again waits.
"""

from __future__ import annotations

FIRST_S = 2.0
AGAIN_S = 20.0
"""Well below the time after which proxies and clients give a silent connection up."""


def hold_s(asked_before: int) -> float:
    """For how long to hold the next question."""
    return AGAIN_S if asked_before else FIRST_S
