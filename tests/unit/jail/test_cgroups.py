"""Where cgroups are, read out of what /proc says on different kinds of host."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.jail.cgroups import (
    NONE,
    Layout,
    Place,
    candidates_v2,
    discover,
    make,
    parse_mounts,
    parse_own,
    plan_v1,
    remove,
)
from excise.jail.ids import COUNT, WANTED, first_id, subordinate
from excise.jail.usage import Usage

V1 = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
31 30 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
34 30 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
36 30 0:34 / /sys/fs/cgroup/freezer rw,relatime shared:9 - cgroup cgroup rw,freezer
38 30 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
39 30 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
40 30 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
OWN_V1 = "9:name=systemd:/x\n8:pids:/\n6:freezer:/\n4:memory:/mine/own\n1:cpu,cpuacct:/user.slice\n0::/\n"
DOCKER_V1 = "34 30 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"
V2 = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"


def test_each_controller_of_version_1_is_used_where_we_are_ourselves() -> None:
    layout = plan_v1(parse_mounts(V1), parse_own(OWN_V1))
    assert {place.kind: str(place.path) for place in layout.places} == {
        "memory": "/sys/fs/cgroup/memory/mine/own",
        "pids": "/sys/fs/cgroup/pids",
        "cpu": "/sys/fs/cgroup/cpu,cpuacct/user.slice",
        "freezer": "/sys/fs/cgroup/freezer",
    }
    assert layout.missing == ("cpuset",)
    assert str(layout) == "cgroups v1, without cpuset"


def test_a_container_sees_only_its_own_part_of_a_hierarchy() -> None:
    mounts, own = parse_mounts(DOCKER_V1), {"memory": "/docker/abc/inner"}
    assert plan_v1(mounts, own).places == (Place("memory", Path("/sys/fs/cgroup/memory/inner")),)
    assert plan_v1(mounts, {"memory": "/docker/abc"}).places[0].path == Path(
        "/sys/fs/cgroup/memory"
    )
    assert plan_v1(mounts, {"memory": "/elsewhere"}).places[0].path == Path("/sys/fs/cgroup/memory")


def test_in_version_2_ours_stands_beside_our_own_cgroup_not_below_it() -> None:
    own = parse_own("0::/user.slice/session-1.scope\n")
    assert candidates_v2(parse_mounts(V2), own) == [
        Path("/sys/fs/cgroup/user.slice"),
        Path("/sys/fs/cgroup"),
    ]
    assert candidates_v2(parse_mounts(V2), {"": "/"}) == [Path("/sys/fs/cgroup")]
    assert candidates_v2(parse_mounts(V1.replace("cgroup2", "tmpfs")), own) == []


def test_a_host_without_cgroups_has_none() -> None:
    assert plan_v1([], {}) == NONE
    assert discover(Path("/nonexistent")) == NONE
    assert make(NONE, "x") == ()


def _fake_v2(tmp_path: Path, handed: str) -> Path:
    top, proc = tmp_path / "cgroup", tmp_path / "proc"
    (top / "user").mkdir(parents=True)
    (proc / "self").mkdir(parents=True)
    (top / "cgroup.controllers").write_text("cpuset cpu io memory pids")
    (top / "cgroup.subtree_control").write_text("cpu memory pids")
    (top / "user/cgroup.controllers").write_text("cpu memory pids")
    (top / "user/cgroup.subtree_control").write_text(handed)
    (proc / "self/mountinfo").write_text(f"30 24 0:26 / {top} rw - cgroup2 cgroup2 rw\n")
    (proc / "self/cgroup").write_text("0::/user/session\n")
    return proc


def test_version_2_is_used_at_the_nearest_place_that_hands_down_what_we_need(
    tmp_path: Path,
) -> None:
    proc = _fake_v2(tmp_path, "cpu memory pids")
    found = discover(proc)
    assert (found.version, found.missing) == ("v2", ("cpuset",))
    assert found.places == (Place("unified", tmp_path / "cgroup/user"),)


def test_version_2_is_used_further_up_where_the_nearest_place_hands_nothing_down(
    tmp_path: Path,
) -> None:
    found = discover(_fake_v2(tmp_path, ""))
    assert found.places == (Place("unified", tmp_path / "cgroup"),)


def test_directories_are_made_for_all_hierarchies_or_for_none(tmp_path: Path) -> None:
    from excise.errors import SubstrateUnavailable

    (tmp_path / "a").mkdir()
    good = Layout("v1", (Place("memory", tmp_path / "a"),), ())
    made = make(good, "lease")
    assert [place.path for place in made] == [tmp_path / "a/excise-lease"]
    remove(made)
    bad = Layout("v1", (*good.places, Place("pids", tmp_path / "missing")), ())
    with pytest.raises(SubstrateUnavailable, match="missing"):
        make(bad, "lease")
    assert list((tmp_path / "a").iterdir()) == []


@given(st.text(max_size=300))
def test_any_text_for_mounts_is_read_without_failing(text: str) -> None:
    for mount in parse_mounts(text):
        assert mount.controllers or mount.unified or mount.controllers == frozenset()


def test_a_path_with_blanks_is_read_as_it_is() -> None:
    line = r"34 30 0:32 / /mnt/a\040b rw - cgroup cgroup rw,memory"
    assert parse_mounts(line)[0].path == "/mnt/a b"


@pytest.mark.parametrize(
    ("uid_map", "first"),
    [
        ("0 0 4294967295", WANTED),
        ("0 1000 1", 0),
        ("0 100000 65536", 0),
        ("0 100000 131072", 65536),
        ("0 1000 1\n1 100000 65536", 0),
        ("", 0),
    ],
)
def test_ids_are_taken_from_a_range_that_we_have(uid_map: str, first: int) -> None:
    assert first_id(uid_map) == first


@given(
    st.lists(
        st.tuples(st.integers(0, 2**32), st.integers(0, 2**32), st.integers(1, 2**32)), max_size=5
    )
)
def test_ids_are_never_those_of_root_nor_outside_of_the_map(
    ranges: list[tuple[int, int, int]],
) -> None:
    first = first_id("\n".join(" ".join(map(str, one)) for one in ranges))
    assert first == 0 or (
        first >= COUNT
        and any(inside <= first and first + COUNT <= inside + count for inside, _, count in ranges)
    )


@pytest.mark.parametrize("version", [1, 2])
def test_usage_is_read_where_the_version_keeps_it(tmp_path: Path, version: int) -> None:
    box = tmp_path / "box-7"
    box.mkdir()
    if version == 1:
        usage = Usage.of([Place(k, tmp_path) for k in ("memory", "pids", "cpu")], 7)
        (box / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
        (box / "memory.max_usage_in_bytes").write_text("4096\n")
    else:
        usage = Usage.of([Place("unified", tmp_path)], 7)
        (box / "memory.events").write_text("low 0\noom 9\noom_kill 3\n")
        (box / "memory.peak").write_text("4096\n")
    (box / "cpu.stat").write_text("usage_usec 5\nnr_periods 4\nnr_throttled 2\n")
    (box / "pids.current").write_text("6\n")
    assert (usage.oom_kills(), usage.peak_bytes(), usage.throttled(), usage.processes()) == (
        3,
        4096,
        2,
        6,
    )
    assert usage.cpu_ns() == (None if version == 1 else 5000)


def test_what_nobody_counts_is_none() -> None:
    usage = Usage.of([], 1)
    assert (usage.oom_kills(), usage.memory_bytes(), usage.processes()) == (None, None, None)


@pytest.mark.parametrize(
    ("table", "first"),
    [
        ("", None),
        ("me:100000:65536", 100000),
        ("1000:100000:65535", 100000),
        ("other:100000:65536", None),
        ("me:100000:65534", None),
        ("me:0:65536", None),
        ("# a remark\nme:x:y\n\nme:100000:10\nme:200000:65536\n", 200000),
    ],
)
def test_subordinate_ids_are_found_where_there_are_enough(table: str, first: int | None) -> None:
    assert subordinate(table, "me", 1000) == first
