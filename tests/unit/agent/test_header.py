"""The header is the law: every number and every layout of the package is the header's."""

import re
import struct
from pathlib import Path

import pytest

from excise.agent import wire

HEADER = Path(__file__).parents[3] / "native" / "protocol.h"
LAYOUTS = {
    "exec_head": wire.EXEC_HEAD,
    "exec_limit": wire.EXEC_LIMIT,
    "result_head": wire.RESULT_HEAD,
    "write_head": wire.WRITE_HEAD,
}
CODES = {
    "uint8_t": "B",
    "uint16_t": "H",
    "int32_t": "i",
    "uint32_t": "I",
    "uint64_t": "Q",
}


def code_only():
    return re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.DOTALL)


def enumerated():
    found = {}
    for body in re.findall(r"\benum\s*\w*\s*\{(.*?)\}", code_only(), re.DOTALL):
        for name, value in re.findall(r"(\w+)\s*=\s*([^,]+?)\s*(?:,|$)", body.strip()):
            found[name] = eval(value, {"__builtins__": {}})
    return found


def members(struct_name):
    body = re.search(rf"struct {struct_name} \{{(.*?)\}}", code_only(), re.DOTALL)[1]
    for kind, names in re.findall(r"(\w+_t)\s+([^;]+);", body):
        for name in names.split(","):
            yield name.strip(), CODES[kind]


def test_every_number_of_the_header_is_in_the_package_and_the_same():
    numbers = enumerated()
    assert len(numbers) > 60
    different = {n: v for n, v in numbers.items() if getattr(wire, n, None) != v}
    assert not different


def test_the_package_has_no_number_that_the_header_has_not():
    pattern = re.compile("(OP|EXEC|END|FAULT|WRITE)_[A-Z_]+$")
    ours = {n for n in vars(wire) if pattern.match(n) and isinstance(getattr(wire, n), int)}
    assert ours == {n for n in enumerated() if pattern.match(n)}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_has_the_members_of_the_header_in_their_order(name):
    layout = LAYOUTS[name]
    expected = "<" + "".join(code for _, code in members(name))
    assert layout.format == expected
    assert layout.size == struct.calcsize(expected)


def test_a_result_names_its_numbers_as_the_header_does():
    from excise.agent.answers import Result

    expected = [name for name, _ in members("result_head")][:-2]
    assert list(Result._fields) == [*expected, "stdout", "stderr"]


def test_only_what_the_header_calls_an_answer_may_come():
    text = code_only()
    body = re.search(r"enum answer \{(.*?)\}", text, re.DOTALL)[1]
    answers = {getattr(wire, name) for name in re.findall(r"OP_\w+", body)}
    assert answers | {wire.OP_HELLO} == wire.ANSWERS
