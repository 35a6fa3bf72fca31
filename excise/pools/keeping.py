"""What is kept ready for rollouts that have not come yet: the demand, what is worth keeping by it, and the plan.

Nothing here is on anybody's critical path, and all of it yields to running actions for a while.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable

from excise.pools.abilities import Staged
from excise.pools.demand import Demand
from excise.pools.environments import Environment, Environments
from excise.pools.plan import plan
from excise.pools.rules import Rules
from excise.pools.size import Copy, copies
from excise.pools.stage import whole_price_s
from excise.pools.supply import Supply
from excise.substrates.base import Substrate


class Keeping:
    """Decides purely, by `plan`, and has the supply act on it."""

    def __init__(
        self, substrate: Substrate, rules: Rules, environments: Environments, supply: Supply
    ) -> None:
        self.demand = Demand()
        self.known: dict[str, Environment] = {}
        self.acting = 0
        self.yielding_since_s: float | None = None
        self.planned_s = float("-inf")
        self._staged = isinstance(substrate, Staged)
        self._rules = rules
        self._environments = environments
        self._supply = supply
        self._worthy: tuple[Copy, ...] = ()
        self._announced: deque[Environment] = deque()

    def asked(self, environment: Environment) -> None:
        """A rollout wants it."""
        price_s = self._environments.base_s + whole_price_s(environment.path)
        self.demand.arrived(environment.path, self._supply.now_s(), price_s)
        self.known[environment.key] = environment

    def worthy(self) -> tuple[Copy, ...]:
        """The copies worth keeping by the present demand, most worthy first."""
        wishes = self.demand.wishes(self._supply.now_s())
        return copies(
            wishes,
            self._rules.budget,
            create_s=self._environments.base_s,
            advance_s=self._environments.advance_s,
            partial=self._staged,
        )

    def plan(self, held: int, needed: int, waiting: Iterable[Environment]) -> None:
        """Let go of what is not worth its place, and make ahead what is."""
        now_s = self._supply.now_s()
        if now_s - self.planned_s >= self._rules.plan_every_s:
            self.planned_s = now_s
            self._worthy = self.worthy() if self._rules.ahead else ()
            self._remember(now_s, waiting)
        made = plan(
            self._supply.stock(held),
            self._worthy,
            self._rules.budget,
            now_s=now_s,
            ageing=self._rules.ageing,
            room=needed,
            barred=self._supply.barred(),
        )
        for leave in made.leave:
            self._supply.let_go(self._supply.take(leave.name))
        stale = self._supply.stale()
        if not (made.fill or stale or self._announced) or self._yields(now_s):
            return
        self._supply.prove_again(stale)
        self._prefetch()
        for key, count in Counter(one.key for one in made.fill).items():
            environment = self.known[key]
            if self._supply.laying.wanted(environment) and not self._may_lay():
                continue
            if may := self._supply.admits(environment, count):
                self._supply.make(environment, may)

    def _prefetch(self) -> None:
        """Have ready what the announced will stand on, next first, even those that there is no sandbox for yet."""
        while self._announced and self._may_lay():
            environment = self._announced.popleft()
            barred = environment.key in self._supply.barred()
            if not barred and self._supply.laying.wanted(environment):
                self._supply.laying.begin(environment)

    def _may_lay(self) -> bool:
        """What is only expected is not built all at once."""
        return len(self._supply.laying) < self._rules.laying

    def _yields(self, now_s: float) -> bool:
        """Whether filling ahead waits for running actions, which it does for a while and not for ever."""
        if self.acting < self._rules.yield_at:
            self.yielding_since_s = None
            return False
        if self.yielding_since_s is None:
            self.yielding_since_s = now_s
        return now_s - self.yielding_since_s < self._rules.yield_for_s

    def _remember(self, now_s: float, waiting: Iterable[Environment]) -> None:
        """Which environment each stage that is wished for belongs to; all other stages are forgotten."""
        wishes = self.demand.wishes(now_s)
        wished = [self._repriced(self.known[wish.key]) for wish in wishes]
        self.known = {e.path[i].key: e.cut(i + 1) for e in wished for i in range(len(e.path))}
        self.known |= {e.key: e for e in waiting}
        expected = sorted((wish for wish in wishes if wish.expected), key=lambda wish: wish.turn)
        self._announced = deque(self.known[wish.key] for wish in expected)
        self._supply.forget(self.known)

    def _repriced(self, environment: Environment) -> Environment:
        """At the prices of now, where something was to be built when it was last asked for."""
        if whole_price_s(environment.path) == 0:
            return environment
        now = self._environments.of(environment.spec)
        self.demand.reprice(now.path)
        return now
