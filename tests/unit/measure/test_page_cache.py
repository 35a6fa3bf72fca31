import pytest

from excise.errors import InputError
from excise.measure import page_cache


def test_pages_and_names_are_dropped_by_one_write(tmp_path):
    control = tmp_path / "drop_caches"
    control.write_bytes(b"")
    page_cache.refuse_unless_droppable(control)
    assert control.read_bytes() == b""
    page_cache.drop(control)
    assert control.read_bytes() == b"3\n"


def test_where_it_cannot_be_dropped_the_study_is_refused_before_it_begins(tmp_path):
    with pytest.raises(InputError, match="leave it out"):
        page_cache.refuse_unless_droppable(tmp_path / "nowhere")
    with pytest.raises(InputError, match="run it as root"):
        page_cache.refuse_unless_droppable(tmp_path)
