import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import InputError
from excise.tax.economics import (
    Paid,
    Shape,
    advise,
    break_even,
    cost_usd,
    pool_pays,
    reset_pays,
)
from excise.tax.prices import Price, latest, parse

MICROSECONDS = st.integers(0, 10**8).map(lambda us: us / 1e6)
COSTS = st.builds(Paid, once_s=MICROSECONDS, per_action_s=MICROSECONDS)


def price(**changes):
    return Price(**({"provider": "x", "per_vcpu_hour": 0.1, "source": "none"} | changes))


def test_the_break_even_is_where_both_pay_the_same():
    found = break_even("container", Paid(0.6, 0.07), "pool", Paid(0.1, 0.08))
    assert found.actions == pytest.approx(50)
    assert (found.short, found.long) == ("pool", "container")


@given(COSTS, COSTS)
def test_below_the_break_even_the_short_one_pays_less_above_it_the_long_one(a, b):
    by_name = {"a": a, "b": b}
    found = break_even("a", a, "b", b)

    def tax(name, k):
        return by_name[name].once_s + k * by_name[name].per_action_s

    other = {"a": "b", "b": "a"}[found.short]
    if found.actions is None:
        assert tax(found.short, 1e6) <= tax(other, 1e6)
        assert tax(found.short, 0) <= tax(other, 0)
    else:
        assert tax(found.short, found.actions / 2) <= tax(found.long, found.actions / 2) * (
            1 + 1e-6
        )
        assert tax(found.long, found.actions * 2) <= tax(found.short, found.actions * 2) * (
            1 + 1e-6
        )


@given(COSTS, COSTS)
def test_the_order_of_the_two_does_not_matter(a, b):
    there, back = break_even("a", a, "b", b), break_even("b", b, "a", a)
    assert there.actions == back.actions
    if a != b:
        assert there == back


def test_a_break_even_that_is_never_reached_is_none():
    found = break_even("a", Paid(0.0, 5e-324), "b", Paid(1.0, 0.0))
    assert (found.actions, found.short) == (None, "a")


def test_a_sandbox_costs_what_it_holds_for_as_long_as_it_holds_it():
    shape = Shape(vcpus=2, memory_gib=4)
    assert cost_usd(price(per_gib_hour=0.01), shape, 3600) == pytest.approx(0.24)
    assert cost_usd(price(minimum_s=60), shape, 1) == cost_usd(price(), shape, 60)


def test_active_billing_leaves_think_time_free():
    active = price(billing="active", per_gib_hour=0.01)
    assert cost_usd(active, Shape(1, 1), 3600, active_s=36) == pytest.approx(0.011)
    assert cost_usd(active, Shape(1, 1), 3600) == pytest.approx(0.11)


def test_the_papers_whole_gap_is_some_hundred_dollars():
    hours, table = 5316 * 3600, latest()
    costs = [
        cost_usd(table.of(name), Shape(2, 4), hours)
        for name in ("fargate-linux-x86-us-east-1", "hosted-daytona-e2b")
    ]
    assert costs == pytest.approx([525, 880], rel=0.01)


def test_pools_and_resets_pay_where_they_save_more_than_they_cost():
    pool = {"saved_s": 2.0, "usd_per_s": 1.0, "slots": 4.0, "idle_usd_per_s": 0.5}
    assert pool_pays(rollouts_per_s=1.1, **pool)
    assert not pool_pays(rollouts_per_s=1.0, **pool)
    assert reset_pays(reset_s=0.1, once_s=0.6)
    assert not reset_pays(reset_s=0.1, once_s=0.6, contamination_s=0.5)


def advice(paid, actions=150):
    return {a.kind: a for a in advise(paid, actions=actions)}


def test_advice_names_the_cheaper_one_and_where_that_flips():
    paid = {"quick": [Paid(0.1, 0.09)] * 5, "steady": [Paid(1.1, 0.01)] * 5}
    found = advice(paid)
    assert "steady pays the least" in found["choice"].text
    assert "K < 12 actions quick is cheaper than steady" in found["break_even"].text
    assert found["choice"].sure == found["break_even"].sure == 1.0
    assert "quick pays the least" in advice(paid, actions=5)["choice"].text


def test_advice_that_the_data_do_not_settle_is_unsure():
    noisy = [Paid(1.0, 0.0), Paid(2.0, 0.0), Paid(3.0, 0.0)]
    found = advice({"a": noisy, "b": [Paid(t.once_s + 0.1, 0.0) for t in noisy]})
    assert 0.4 < found["choice"].sure < 0.8
    assert "break_even" not in found


def test_a_break_even_that_some_resamples_turn_around_is_unsure():
    quick = [Paid(1.0, 0.2), Paid(3.0, 0.2), Paid(1.0, 0.2)]
    steady = [Paid(2.0, 0.1), Paid(2.0, 0.1), Paid(2.0, 0.1)]
    assert 0.4 < advice({"quick": quick, "steady": steady})["break_even"].sure < 0.9


def test_a_costly_cleanup_is_advised_off_the_critical_path_and_a_cheap_one_is_not():
    found = advice({"docker": [Paid(1.0, 0.0, cleanup_s=0.4)]})
    assert found["cleanup"].text == (
        "cleanup is 40% of the tax on docker: destroy off the critical path"
    )
    assert advice({"docker": [Paid(1.0, 0.0, cleanup_s=0.1)]}) == {}


def test_advice_is_the_same_every_time():
    paid = {"a": [Paid(1, 0.1), Paid(2, 0.2)], "b": [Paid(1.1, 0.1), Paid(1.9, 0.2)]}
    assert advise(paid, actions=10) == advise(paid, actions=10)


@pytest.mark.parametrize("nothing", [{}, {"a": []}])
def test_advice_without_trials_is_refused(nothing):
    with pytest.raises(InputError, match="at least one trial"):
        advise(nothing, actions=10)


def test_the_price_table_is_dated_and_names_its_sources():
    table = latest()
    assert table.date.startswith("2026-11")
    assert all(p.source for p in table.price)
    assert all(g.low < g.high and g.source for g in table.gpu)


def test_an_unknown_provider_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match="known: fargate"):
        latest().of("nobody")


@pytest.mark.parametrize(
    "text",
    [
        "date = ",
        "date = '2026-11-01'",
        "date = '2026-11-01'\n[[price]]\nprovider = 'x'\nper_vcpu_hour = 'cheap'\nsource = 'y'",
        "date = '2026-11-01'\n[[price]]\nprovider = 'x'\nper_vcpu_hour = 1\nsource = 'y'\ncolour = 1",
        "date = '2026-11-01'\n[[price]]\nprovider = 'x'\nper_vcpu_hour = -1\nsource = 'y'",
    ],
)
def test_a_broken_price_table_is_refused_by_name(text):
    with pytest.raises(InputError, match=r"mine\.toml"):
        parse(text, "mine.toml")
