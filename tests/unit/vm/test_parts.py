"""What guests are made of: found, or missed with what to type."""

from __future__ import annotations

import lzma

import pytest

from excise.errors import InputError
from excise.substrates.vm.config import Options
from excise.substrates.vm.parts import Missing, modules_in, remedy, uml_kernel


def test_a_folder_without_a_kernel_is_told_with_what_would_bring_it(tmp_path):
    with pytest.raises(Missing, match=r"there is no linux\.uml in") as missing:
        uml_kernel(Options.of({"machine": "uml", "parts": str(tmp_path)}))
    assert missing.value.remedy == remedy()


def test_what_to_type_depends_on_whether_there_is_a_checkout(tmp_path):
    assert "EXCISE_VM=FOLDER" in remedy(tmp_path / "no such lab")
    (tmp_path / "the lab").touch()
    assert remedy(tmp_path / "the lab").startswith(f"'{tmp_path}/the lab' up && eval")


def test_modules_come_plain_and_in_the_order_in_which_they_are_wanted(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "second-one.ko").write_bytes(b"2")
    (tmp_path / "first.ko.xz").write_bytes(lzma.compress(b"1"))
    (tmp_path / "other.ko").write_bytes(b"3")
    found = modules_in(tmp_path, ("first", "built_in", "second_one"))
    assert found == [("first.ko", b"1"), ("second_one.ko", b"2")]


def test_a_module_that_cannot_be_unpacked_is_bad_input(tmp_path):
    (tmp_path / "odd.ko.zst").write_bytes(b"")
    with pytest.raises(InputError, match="unpack it"):
        modules_in(tmp_path, ("odd",))
