"""Archives by somebody who means harm: they stay inside, or are refused in one clear line."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from excise.errors import ImageError
from excise.layers.images.below import Below
from excise.layers.images.tarstream import read_entries
from excise.layers.images.unpack import unpack


def test_a_file_behind_a_link_to_the_hosts_etc_stays_in_the_image(tar, layers, tree_of) -> None:
    before = set(Path("/etc").iterdir())
    (tree,), _ = layers(tar(tar.link("a", "/etc"), tar.file("a/excise-was-here", b"x")))
    assert set(Path("/etc").iterdir()) == before
    assert set(tree_of(tree)) == {"a", "etc", "etc/excise-was-here"}


@pytest.mark.parametrize("target", ["../../../../../..", "/../..", "d/../../..", "."])
def test_a_link_cannot_climb_out_of_the_image(tar, layers, tmp_path, target) -> None:
    (tree,), _ = layers(tar(tar.folder("d"), tar.link("up", target), tar.file("up/f", b"x")))
    assert (tree / "f").read_bytes() == b"x"
    assert {entry.name for entry in tmp_path.iterdir()} <= {"tree0", "layout"}


def test_absolute_names_are_names_in_the_image(tar, layers, tree_of) -> None:
    (tree,), _ = layers(tar(tar.file("/abs/olute"), tar.hard("//abs/./other", "/abs/olute")))
    assert set(tree_of(tree)) == {"abs", "abs/olute", "abs/other"}


@pytest.mark.parametrize("name", ["../f", "a/../../f", "..", "a/.."])
def test_a_name_that_climbs_is_refused(tar, layers, name) -> None:
    with pytest.raises(ImageError, match=r"climbs with \.\. is refused"):
        layers(tar(tar.file(name)))


def test_a_hard_link_that_climbs_or_leaves_through_a_link_is_refused(tar, layers) -> None:
    with pytest.raises(ImageError, match="climbs"):
        layers(tar(tar.hard("f", "../../etc/passwd")))
    with pytest.raises(ImageError, match="no file of the same layer"):
        layers(tar(tar.link("out", "/"), tar.hard("f", "out/etc/passwd")))


def test_a_hard_link_to_a_link_is_not_followed_when_it_is_written_over(
    tar, layers, tmp_path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    steps = [tar.link("l", str(victim)), tar.hard("h", "l"), tar.file("h", b"mine")]
    (tree,), _ = layers(tar(*steps))
    assert victim.read_text() == "untouched"
    assert (tree / "h").read_bytes() == b"mine"
    assert (tree / "l").is_symlink()


def test_modes_and_times_are_not_set_through_a_link(tar, layers, tmp_path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o700)
    layers(tar(tar.folder("v"), tar.link("v", str(victim), mode=0o777, mtime=1), tar.file(".wh.v")))
    assert victim.stat().st_mode & 0o777 == 0o700
    assert victim.stat().st_mtime > 1


def test_a_hard_link_to_itself_is_refused(tar, layers) -> None:
    with pytest.raises(ImageError, match="a link to itself"):
        layers(tar(tar.file("f", b"x"), tar.hard("./f", "/f")))


def test_a_folder_that_became_a_link_gives_its_times_to_nobody(tar, layers, tmp_path) -> None:
    victim = tmp_path / "victim"
    (victim / "in").mkdir(parents=True)
    before = (victim / "in").stat()
    folders = [
        tar.folder("d"),
        tar.folder("d/in"),
        tar.file("d/in/.wh.f"),
        tar.file("d/in/.wh..wh..opq"),
    ]
    below = tar(*folders[:2], tar.file("d/in/f"))
    layers(below, tar(*folders, tar.link("d", str(victim))))
    after = (victim / "in").stat()
    assert (after.st_mtime_ns, after.st_ctime_ns) == (before.st_mtime_ns, before.st_ctime_ns)
    assert list((victim / "in").iterdir()) == []


def test_a_folder_that_became_a_link_to_itself_is_no_matter(tar, layers, tree_of) -> None:
    (tree,), _ = layers(tar(tar.file("a/b/c"), tar.folder("a/b"), tar.link("a", "a")))
    assert set(tree_of(tree)) == {"a"}


def test_a_file_inside_a_file_is_refused(tar, layers) -> None:
    with pytest.raises(ImageError, match="part of which is a file"):
        layers(tar(tar.file("f"), tar.file("f/g")))


def test_links_that_run_in_circles_are_refused(tar, layers) -> None:
    with pytest.raises(ImageError, match="leads nowhere"):
        layers(tar(tar.link("a", "b"), tar.link("b", "a"), tar.file("a/f")))


@pytest.mark.parametrize(
    "name",
    ["trusted.overlay.opaque", "trusted.overlay.redirect", "user.overlay.whiteout", "user.\0"],
)
def test_marks_that_an_overlay_obeys_are_refused(tar, layers, name) -> None:
    about = {f"SCHILY.xattr.{name}": "y"}
    with pytest.raises(ImageError, match="attribute"):
        layers(tar(tar.folder("d", pax_headers=about)))


@pytest.mark.parametrize("name", [".wh.", ".wh..", ".wh...", "d/.wh..."])
def test_a_whiteout_of_nothing_is_refused(tar, layers, name) -> None:
    with pytest.raises(ImageError, match="hides nothing"):
        layers(tar(tar.file(name)))


def test_names_no_file_system_can_hold_are_refused(tar, layers) -> None:
    for name in ("n" * 256, "/".join(["d" * 200] * 25)):
        with pytest.raises(ImageError, match="no file system"):
            layers(tar(tar.file(name)))


def test_a_nul_in_a_name_or_a_target_is_refused(tar, layers) -> None:
    with pytest.raises(ImageError, match="no file system"):
        layers(tar(tar.file("f", pax_headers={"path": "a\0b"})))
    with pytest.raises(ImageError, match="link to nowhere"):
        layers(tar(tar.link("l", "to", pax_headers={"linkpath": "a\0b"})))


def test_a_root_that_is_no_folder_is_refused(tar, layers) -> None:
    with pytest.raises(ImageError, match="root is no folder"):
        layers(tar(tar.file("./")))


def test_a_link_to_nothing_is_refused(tar, layers) -> None:
    with pytest.raises(ImageError, match="link to nowhere"):
        layers(tar(tar.link("l", "")))


def test_a_message_shows_a_hostile_name_as_one_printable_line(tar, layers) -> None:
    with pytest.raises(ImageError) as raised:
        layers(tar(tar.file("../\x1b[31mred\nline")))
    assert str(raised.value).isprintable()


NAMES = st.sampled_from(["a", "b", "a/b", "b/a", "a/b/a"])
TARGETS = st.sampled_from(["{victim}", "{victim}", "/", "../../..", "../b", "a"])
OPS = st.one_of(
    st.tuples(st.just("file"), NAMES, TARGETS),
    st.tuples(st.just("folder"), NAMES, TARGETS),
    st.tuples(st.just("link"), NAMES, TARGETS),
    st.tuples(st.just("hard"), NAMES, NAMES),
    st.tuples(st.just("hide"), NAMES, TARGETS),
)


@pytest.mark.timeout(180)
@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(stack=st.lists(st.lists(OPS, max_size=10), min_size=1, max_size=3))
def test_nothing_outside_is_ever_touched(as_root, tar, tree_of, stack) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="images-") as name:
        place = Path(name)
        (place / "victim").mkdir(mode=0o700)
        (place / "victim/file").write_bytes(b"untouched")
        for inner in ("a", "b", "a/b", "b/a", "a/b/a"):
            (place / "victim" / inner).mkdir(parents=True, exist_ok=True)
        before = tree_of(place), changes_of(place / "victim")
        trees: list[Path] = []
        (place / "trees").mkdir()
        for number, ops in enumerate(stack):
            tree = place / "trees" / str(number)
            tree.mkdir()
            archive = tar(*(make(tar, op, place) for op in ops))
            try:
                unpack(read_entries(io.BytesIO(archive)), tree, Below(trees))
            except ImageError:
                continue
            trees.insert(0, tree)
        after = {at: about for at, about in tree_of(place).items() if not at.startswith("trees")}
        assert (after, changes_of(place / "victim")) == before


def changes_of(top: Path) -> list[int]:
    return [path.lstat().st_ctime_ns for path in (top, *sorted(top.rglob("*")))]


def make(tar, op, place: Path):
    kind, name, target = op
    if kind == "file":
        return tar.file(name, b"x", mode=0o777)
    if kind == "folder":
        return tar.folder(name, mode=0o777)
    if kind == "link":
        return tar.link(name, target.format(victim=place / "victim"))
    if kind == "hard":
        return tar.hard(name, target)
    above, _, last = name.rpartition("/")
    return tar.file(f"{above}/.wh.{last}")
