"""The initial file system, read back by rules of our own and by cpio where it is installed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from excise.substrates.vm.initrd import initrd


def read(archive: bytes) -> dict[str, tuple[int, bytes]]:
    found, at = {}, 0
    while True:
        assert archive[at : at + 6] == b"070701"
        fields = [int(archive[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        mode, size, name_size = fields[1], fields[6], fields[11]
        name = archive[at + 110 : at + 110 + name_size - 1].decode()
        at += -(-(110 + name_size) // 4) * 4
        if name == "TRAILER!!!":
            assert at == len(archive)
            return found
        assert name not in found
        found[name] = (mode, archive[at : at + size])
        at += -(-size // 4) * 4


@given(st.binary(max_size=50), st.lists(st.binary(max_size=9), max_size=12))
def test_it_holds_the_agent_and_the_modules_in_their_order(agent, modules):
    found = read(initrd(agent, [(f"m{n % 3}.ko", data) for n, data in enumerate(modules)]))
    assert found.pop("init") == (0o100755, agent)
    assert found.pop("modules") == (0o040755, b"")
    assert [found[name][1] for name in sorted(found)] == modules
