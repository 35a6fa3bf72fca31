"""Keeps one jail's network: a process of its own that starts the tools, and takes them along when it ends.

It is process 1 of its own pid name space, so that the kernel ends the tools with it, however it ends. It
ends when the jail's init does, when whoever started it does (the other end of its input closes), or when
a tool does. Its files are in a tmpfs of its own mount name space, so nothing is left on any disk either.

It speaks lines of JSON over a socket: a plan comes in, with the descriptors of what to keep, and
`{"ready": true}` or `{"error": ...}` goes out. Until the plan comes it runs only when nobody else would.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple, NoReturn

from excise.jail import kernel
from excise.jail.destinations import Address, Destination, names
from excise.jail.firewall import PROBE_MARK, Known, allow_rules, hosts_file, set_elements
from excise.jail.lookup import Lookup
from excise.jail.relay import Relay
from excise.jail.uplink import INTERFACE, dnsmasq_command

PRIVATE = Path("/tmp")  # noqa: S108  # covered by a tmpfs that only this process and the tools see
NAMESPACE, HOSTS, LOG = PRIVATE / "netns", PRIVATE / "hosts", PRIVATE / "log"

KEEP_S = 600.0
_LOOK_UP_S = 10.0
_RETRY_S = 0.003
_LAST_WORDS = 400
_ENDED = "the jail or its owner ended meanwhile"


@dataclass(frozen=True, slots=True)
class Plan:
    """With what tools to keep a network, and what it lets pass."""

    nft: str
    pasta: Sequence[str]
    dnsmasq: str
    rules: str | None
    """Of full egress; None: an egress list, below."""
    wanted: tuple[Destination, ...] = ()
    host: tuple[str, ...] = ()
    """This host's addresses, one of each IP version that it has."""
    stub: str = ""
    """The host's name server, if that is on its loopback."""
    deadline_s: float = 15.0
    refresh_s: float = 30.0
    """How often names are looked up again."""

    @classmethod
    def of(cls, given: Mapping[str, object]) -> Plan:
        """From JSON, in which tuples have become lists."""
        wanted = given["wanted"]
        assert isinstance(wanted, list)
        plan = {**given, "wanted": tuple(Destination(*each) for each in wanted)}
        return cls(**plan)  # type: ignore[arg-type]


class Place(NamedTuple):
    """The jail to keep the network of, as descriptors."""

    jail: int
    """A pidfd."""
    network: int
    users: int = -1
    """Of the user name space that owns the network; -1: our own."""


class Trouble(Exception):
    """The network cannot be had; said on the output."""


def main() -> NoReturn:
    """Become the keeper that the first line of the input asks for."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    given, place = _told(socket.socket(fileno=os.dup(0)))
    with contextlib.suppress(PermissionError):  # an old kernel keeps the idle idle
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    plan = Plan.of(given)
    try:
        if place.users >= 0:
            kernel.enter(place.users, kernel.NEWUSER)
            os.close(place.users)
        kernel.unshare(kernel.NEWNS | kernel.NEWPID | kernel.NEWIPC)
    except OSError as error:
        _say({"error": f"no name spaces for the network's tools: {error}"})
        os._exit(1)
    child = os.fork()
    if child == 0:
        kernel.die_with_parent()
        _first_process(plan, place)
    os.close(0)
    os.close(1)
    _, status = os.waitpid(child, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 127)


def _first_process(plan: Plan, place: Place) -> NoReturn:
    """All of the keeper's life; process 1 ends only through `_exit`, and everything with it."""
    try:
        keeper = Keeper(plan, place)
        keeper.open()
        _say({"ready": True})
        keeper.keep()
    except (Trouble, OSError) as error:
        with contextlib.suppress(OSError):
            _say({"error": f"{error}{_last_words()}"})
        os._exit(1)
    os._exit(0)


@dataclass(slots=True)
class Keeper:
    """The tools of one jail's network, and the addresses that its names have had."""

    plan: Plan
    place: Place
    known: Known = field(default_factory=Known)
    tools: dict[int, tuple[str, int]] = field(default_factory=dict)
    """By pidfd: name and pid."""
    looking: Lookup | None = None

    def open(self) -> None:
        """The filter first, then names, then packets: at no time is anything let out that should not be."""
        kernel.private_mounts()
        kernel.mount("tmpfs", str(PRIVATE), "tmpfs", "mode=0755,size=4m")
        NAMESPACE.touch()
        kernel.bind(f"/proc/self/fd/{self.place.network}", str(NAMESPACE))
        self._must_be_unserved()
        asked = names(self.plan.wanted)
        if asked:
            self._first_answers(asked)
        rules = self.plan.rules
        self._filter(allow_rules(self.plan.wanted, self.known) if rules is None else rules)
        if asked:
            command = dnsmasq_command(self.plan.dnsmasq, str(HOSTS), _unprivileged())
            self._start("dnsmasq", command, inside=True)
        if self.plan.stub:
            self._start_relay()
        self._start("pasta", self.plan.pasta, inside=False)
        self._until_packets_pass()

    def keep(self) -> None:
        """Wait for the first end of anything; meanwhile look names up again."""
        ends = select.poll()
        for fd in (0, self.place.jail, *self.tools):
            ends.register(fd, select.POLLIN)
        due = time.monotonic() + self.plan.refresh_s
        waits = bool(names(self.plan.wanted))
        while True:
            if self.looking:
                ends.register(self.looking.fd, select.POLLIN)
            left = max(0.0, due - time.monotonic()) * 1000 if waits else None
            for fd, _ in ends.poll(left):
                if self.looking is None or fd != self.looking.fd:
                    return
                ends.unregister(fd)
                self._take(self.looking.answers())
                self.looking = None
            if waits and time.monotonic() >= due:
                due = time.monotonic() + self.plan.refresh_s
                if self.looking is None:
                    self.looking = Lookup.of(names(self.plan.wanted), self._versions)

    @property
    def _versions(self) -> set[int]:
        return {ip_address(each).version for each in self.plan.host}

    def _first_answers(self, asked: Sequence[str]) -> None:
        lookup = Lookup.of(asked, self._versions)
        ready, _, _ = select.select([lookup.fd, 0, self.place.jail], [], [], _LOOK_UP_S)
        if ready and lookup.fd not in ready:
            raise Trouble(_ENDED)
        if not ready:
            raise Trouble(f"no answer in {_LOOK_UP_S:g} s about {', '.join(asked)}")
        answers = lookup.answers()
        self.known = self.known.after(answers, time.monotonic(), KEEP_S)
        current = self.known.current()
        for name in asked:
            if name not in current:
                found = ", ".join(map(str, answers.get(name, ())))
                why = f"is only {found}, which no sandbox reaches" if found else "has no address"
                raise Trouble(f"{name} {why}")
        HOSTS.write_text(hosts_file(self.known))

    def _take(self, answers: Mapping[str, Sequence[Address]]) -> None:
        """Let out what the names are now before telling the jail of it. No answer changes nothing."""
        before = self.known
        self.known = before.after(answers, time.monotonic(), KEEP_S)
        if set(self.known.seen) != set(before.seen):
            self._filter(set_elements(self.plan.wanted, self.known))
        if self.known.current() != before.current():
            aside = HOSTS.with_suffix(".new")
            aside.write_text(hosts_file(self.known))
            aside.replace(HOSTS)
            for name, pid in self.tools.values():
                if name == "dnsmasq":
                    os.kill(pid, signal.SIGHUP)

    def _must_be_unserved(self) -> None:
        pid = self._fork(_no_interface, inside=True)
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
            raise Trouble("this jail has one already: close that first")

    def _filter(self, rules: str) -> None:
        text = os.memfd_create("rules")
        os.write(text, rules.encode())
        os.lseek(text, 0, os.SEEK_SET)
        pid = self._fork(lambda: _become([self.plan.nft, "-f", "-"], text), inside=True)
        os.close(text)
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
            raise Trouble("nft does not take the rules")

    def _start(self, name: str, command: Sequence[str], *, inside: bool) -> None:
        nothing = os.open(os.devnull, os.O_RDONLY)
        pid = self._fork(lambda: _become(command, nothing), inside=inside)
        os.close(nothing)
        self.tools[os.pidfd_open(pid)] = (name, pid)

    def _start_relay(self) -> None:
        outside = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

        def relay() -> None:
            listening = Relay.listening()
            kernel.enter(outside, kernel.NEWNET)
            for fd in (0, 1):
                os.close(fd)
            listening.serve(self.plan.stub)

        pid = self._fork(relay, inside=True)
        os.close(outside)
        self.tools[os.pidfd_open(pid)] = ("the relay of names", pid)

    def _fork(self, role: Callable[[], None], *, inside: bool) -> int:
        """A child, in the jail's network or in the host's."""
        pid = os.fork()
        if pid:
            return pid
        try:
            if inside:
                kernel.enter(self.place.network, kernel.NEWNET)
            role()
        except OSError as error:
            with contextlib.suppress(OSError), LOG.open("a") as log:
                log.write(f"{error}\n")
            os._exit(127)
        os._exit(0)

    def _until_packets_pass(self) -> None:
        """Connect from the jail's network to a socket of our own on the host, over every IP version."""
        deadline = time.monotonic() + self.plan.deadline_s
        for host in self.plan.host:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            with socket.socket(family) as server:
                server.bind((host, 0))
                server.listen()
                port = server.getsockname()[1]
                connect = functools.partial(_connect, family, host, port, deadline)
                probe = self._fork(connect, inside=True)
                watched = [os.pidfd_open(probe), *self.tools, 0, self.place.jail]
                ready, _, _ = select.select(watched, [], [])
                os.close(watched[0])
            self._judge_probe(ready, watched[0], probe, host)

    def _judge_probe(self, ready: Sequence[int], pidfd: int, probe: int, host: str) -> None:
        for fd, (name, _) in self.tools.items():
            if fd in ready:
                raise Trouble(f"{name} does not start")
        if pidfd not in ready:
            raise Trouble(_ENDED)
        if os.waitstatus_to_exitcode(os.waitpid(probe, 0)[1]) != 0:
            raise Trouble(f"no packet from the jail reached {host} in {self.plan.deadline_s:g} s")


def _connect(family: socket.AddressFamily, host: str, port: int, deadline: float) -> None:
    """Until it succeeds: at first there is no interface, then no route."""
    while time.monotonic() < deadline:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, PROBE_MARK)
            probe.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                probe.connect((host, port))
            except OSError:
                time.sleep(_RETRY_S)
            else:
                return
    os._exit(1)


def _no_interface() -> None:
    if any(name == INTERFACE for _, name in socket.if_nameindex()):
        os._exit(1)


def _become(command: Sequence[str], stdin: int) -> None:
    os.dup2(stdin, 0)
    log = os.open(LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    signal.signal(
        signal.SIGPIPE, signal.SIG_DFL
    )  # Python ignores it, and pasta takes that for a failure
    os.execv(command[0], list(command))  # noqa: S606


def _unprivileged() -> str:
    """Whom dnsmasq becomes. In a user name space of few ids there is nobody else to be."""
    lines = Path("/proc/self/uid_map").read_text().splitlines()
    ranges = [list(map(int, line.split())) for line in lines]
    everyone = any(first <= 65534 < first + count for first, _, count in ranges)
    return "nobody" if everyone else "root"


def _told(line: socket.socket) -> tuple[dict[str, object], Place]:
    """The plan, and the descriptors that come with its first bytes."""
    with line:
        text, descriptors, _, _ = socket.recv_fds(line, 65536, 3)
        while text and not text.endswith(b"\n"):
            more = line.recv(65536)
            text = text + more if more else b""
    if not text:
        os._exit(1)
    return json.loads(text), Place(*descriptors)


def _say(what: Mapping[str, object]) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


def _last_words() -> str:
    try:
        said = " ".join(LOG.read_text(errors="replace").split())
    except OSError:
        return ""
    return f": {said[-_LAST_WORDS:]}" if said else ""


if __name__ == "__main__":
    sys.exit("the keeper is started by excise.jail.egress")
