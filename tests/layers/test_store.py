"""The store as its callers see it: built once, whole or absent, kept while in use, gone when told."""

from __future__ import annotations

import os
import threading

import pytest

from excise.errors import InputError, LayerError
from excise.layers import build as building
from excise.layers.key import key_of
from excise.layers.store import LayerGone, Store, StoreFull


def left_in(store: Store) -> list[str]:
    return [entry.name for entry in (store.root / "tmp").iterdir()]


def test_a_layer_holds_what_was_made_and_says_so(store, built) -> None:
    layer = built("a", files={"usr/x": "12345", "y": ""})
    assert (layer.path / "usr/x").read_text() == "12345"
    assert layer.facts.entries == 3
    assert layer.facts.bytes >= 5
    assert layer.facts.recipe == {"kind": "test", "name": "a"}
    assert store.verify(layer)
    assert store.get(layer.id) == layer


def test_the_same_recipe_is_built_once(store, built) -> None:
    calls = []
    recipe = {"kind": "counted"}
    for _ in range(3):
        store.build(key_of(recipe), recipe, lambda _tree: calls.append(1))
    assert calls == [1]


def test_the_same_recipe_gives_the_same_digest_in_another_store(tmp_path, store, built) -> None:
    other = Store(tmp_path / "other")
    assert built("a").facts.digest == built("a", into=other).facts.digest


def test_a_chain_has_the_top_first_and_each_layer_once(store, built) -> None:
    base = built("base")
    left, right = built("left", [base]), built("right", [base])
    top = built("top", [left, right])
    assert [layer.id for layer in store.lineage(top)] == [top.id, left.id, base.id, right.id]
    assert store.chain(left) == (left.path, base.path)


def test_what_make_returns_is_noted(store) -> None:
    recipe = {"kind": "noted"}
    layer = store.build(key_of(recipe), recipe, lambda _tree: {"skipped": ["lfs"]})
    assert store.get(layer.id).facts.notes == {"skipped": ["lfs"]}


def test_a_key_of_another_recipe_is_refused(store) -> None:
    with pytest.raises(InputError, match="key_of"):
        store.build(key_of({"kind": "a"}), {"kind": "b"}, lambda _tree: None)


@pytest.mark.parametrize("name", ["", ".", "..", "../../etc", "x" * 64, "A" * 64])
def test_a_name_that_is_no_key_never_becomes_a_path(store, name) -> None:
    with pytest.raises(InputError, match="not a layer's key"):
        store.get(name)


def test_what_make_raises_is_raised_and_leaves_nothing(store) -> None:
    recipe = {"kind": "bad"}

    def make(tree):
        (tree / "half").write_text("half")
        raise KeyError("reason")

    with pytest.raises(KeyError, match="reason"):
        store.build(key_of(recipe), recipe, make)
    assert store.get(key_of(recipe)) is None
    assert left_in(store) == []


def test_threads_that_want_one_layer_get_the_one_that_was_built(store) -> None:
    recipe, calls, found = {"kind": "raced"}, [], []
    together = threading.Barrier(8)

    def make(tree):
        calls.append(1)
        (tree / "f").write_text("f")

    def want():
        together.wait()
        found.append(store.build(key_of(recipe), recipe, make))

    threads = [threading.Thread(target=want) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == [1]
    assert found == [found[0]] * 8


def test_a_pinned_layer_and_all_below_it_stay(store, built) -> None:
    base = built("base")
    top = built("top", [base])
    with store.pin(top):
        assert store.gc(0) == ()
        assert store.du().pinned_bytes == store.du().bytes
        with pytest.raises(InputError, match="in use"):
            store.remove(top)
    assert store.gc(0) == (top.id, base.id)
    assert store.du().layers == 0


def test_two_pins_hold_until_both_are_closed(store, built) -> None:
    layer = built()
    first, second = store.pin(layer), store.pin(layer)
    first.close()
    first.close()
    assert store.gc(0) == ()
    second.close()
    assert store.gc(0) == (layer.id,)


def test_pinning_what_was_removed_says_so(store, built) -> None:
    layer = built()
    store.remove(layer)
    with pytest.raises(LayerGone):
        store.pin(layer)


def test_a_lease_builds_again_what_was_removed_in_between(store, built) -> None:
    calls = []

    def make_sure():
        layer = built()
        calls.append(layer.id)
        if len(calls) < 3:
            store.remove(layer)
        return layer

    with store.lease(make_sure) as pin:
        assert store.get(pin.layers[0].id)
        assert store.gc(0) == ()
    assert len(calls) == 3


def test_a_layer_below_another_is_not_removed(store, built) -> None:
    base = built("base")
    top = built("top", [base])
    with pytest.raises(InputError, match=top.short):
        store.remove(base)
    store.remove(top)
    store.remove(base)
    assert store.layers() == ()


def test_a_store_keeps_to_its_budget_but_never_drops_what_was_just_built(tmp_path, built) -> None:
    size = 64 * 1024
    small = Store(tmp_path / "small", budget_bytes=3 * size)
    for number in range(6):
        layer = built(f"{number}", files={"f": "x" * size}, into=small)
        assert small.get(layer.id) == layer
        assert small.du().bytes <= 3 * size


def test_a_changed_byte_is_found(store, built) -> None:
    layer = built(files={"f": "abc"})
    (layer.path / "f").write_text("abd")
    assert not store.verify(layer)


@pytest.mark.parametrize("change", ["mode", "link", "new", "gone", "xattr"])
def test_a_change_that_is_not_of_content_is_found_too(store, built, change) -> None:
    layer = built(files={"f": "abc", "g": "x"})
    file = layer.path / "f"
    if change == "mode":
        file.chmod(0o700)
    elif change == "link":
        file.unlink()
        file.symlink_to("g")
    elif change == "new":
        (layer.path / "h").touch()
    elif change == "gone":
        file.unlink()
    else:
        os.setxattr(file, "user.x", b"1")
    assert not store.verify(layer)


def test_a_file_linked_twice_takes_its_bytes_once(store) -> None:
    recipe = {"kind": "links"}

    def make(tree):
        (tree / "a").write_bytes(bytes(1 << 20))
        (tree / "b").hardlink_to(tree / "a")

    assert store.build(key_of(recipe), recipe, make).facts.bytes < (1 << 20) + (1 << 16)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"recipe": {}}', "\0" * 300])
def test_a_damaged_manifest_hides_the_layer_and_a_build_replaces_it(store, built, text) -> None:
    layer = built()
    manifest = layer.path.parent / "manifest.json"
    manifest.write_text(text)
    assert store.get(layer.id) is None
    assert store.damaged() == (layer.id,)
    assert store.get(built().id) is not None
    assert store.damaged() == ()
    assert left_in(store) == []


def test_a_manifest_of_another_layer_is_damage(store, built) -> None:
    one, other = built("one"), built("other")
    text = (other.path.parent / "manifest.json").read_text()
    (one.path.parent / "manifest.json").write_text(text)
    assert store.get(one.id) is None
    assert store.gc(1 << 40) == (one.id,)
    assert store.layers() == (other,)


@pytest.mark.parametrize("lost", ["pin", "manifest.json", "tree"])
def test_a_layer_that_lost_a_part_is_removed_by_gc(store, built, lost) -> None:
    layer = built()
    (layer.path.parent / lost).rename(layer.path.parent / "elsewhere")
    assert store.gc(1 << 40) == (layer.id,)
    assert list((store.root / "layers").iterdir()) == []


@pytest.mark.parametrize("odd", ["a file for a folder", "a folder for a pin"])
def test_what_nobody_could_have_pinned_is_removed_by_gc(store, built, odd) -> None:
    layer = built()
    folder = layer.path.parent
    if odd == "a folder for a pin":
        (folder / "pin").unlink()
        (folder / "pin").mkdir()
    else:
        folder.rename(store.root / "elsewhere")
        folder.touch()
    assert store.gc(1 << 40) == (layer.id,)
    assert list((store.root / "layers").iterdir()) == []


def test_after_a_restart_a_layer_that_lost_bytes_is_made_anew(store, built, monkeypatch) -> None:
    whole, torn = built("whole"), built("torn")
    (torn.path / "torn").write_text("")  # what a power cut does to a file that was not synced
    monkeypatch.setattr("excise.layers.store.boot", lambda: "the next boot")
    assert store.get(whole.id) == whole
    assert store.get(torn.id) is None
    assert (built("torn").path / "torn").read_text() == "torn"


def test_after_a_restart_a_layer_is_read_once(store, built, monkeypatch) -> None:
    layer, read = built(), []
    weigh = building.weigh
    monkeypatch.setattr("excise.layers.store.boot", lambda: "the next boot")
    monkeypatch.setattr("excise.layers.store.weigh", lambda top: read.append(top) or weigh(top))
    for _ in range(3):
        assert store.get(layer.id) == layer
    assert read == [layer.path]


def test_any_name_a_file_can_have_is_kept(store) -> None:
    names = [b"new\nline", b"\xff\xfe", b"x" * 255, b"-rf", b" ", "\u00e9".encode(), b"a\\b"]
    recipe = {"kind": "names"}

    def make(tree):
        for name in names:
            (tree / os.fsdecode(name)).touch()

    layer = store.build(key_of(recipe), recipe, make)
    assert {os.fsencode(path.name) for path in layer.path.iterdir()} == set(names)
    assert store.verify(layer)
    assert store.gc(0) == (layer.id,)


def test_a_tree_too_deep_for_paths_is_refused_and_removed(store) -> None:
    recipe = {"kind": "deep"}

    def make(tree):
        at = os.open(tree, os.O_RDONLY)
        for _ in range(3000):
            os.mkdir("d", dir_fd=at)
            below = os.open("d", os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = below
        os.close(at)

    with pytest.raises(LayerError, match="flatter"):
        store.build(key_of(recipe), recipe, make)
    assert left_in(store) == []


def test_special_files_are_neither_opened_nor_waited_for(store) -> None:
    recipe = {"kind": "fifo"}
    layer = store.build(key_of(recipe), recipe, lambda tree: os.mkfifo(tree / "pipe"))
    assert store.verify(layer)


def test_a_device_is_told_by_its_number(as_root, store) -> None:
    recipe = {"kind": "whiteout"}

    def make(tree):
        os.mknod(tree / "gone", 0o020000, os.makedev(0, 0))

    layer = store.build(key_of(recipe), recipe, make)
    assert store.verify(layer)
    (layer.path / "gone").unlink()
    os.mknod(layer.path / "gone", 0o020000, os.makedev(1, 3))
    assert not store.verify(layer)


def test_a_full_disk_is_said_in_one_line_and_leaves_nothing(small_disk) -> None:
    store = Store(small_disk / "store")
    recipe = {"kind": "large"}

    def make(tree):
        (tree / "f").write_bytes(bytes(8 << 20))

    with pytest.raises(StoreFull, match="no room for this large layer") as raised:
        store.build(key_of(recipe), recipe, make)
    assert "\n" not in str(raised.value)
    assert left_in(store) == []
    assert store.layers() == ()


def test_a_program_that_met_a_full_disk_is_not_believed_about_the_reason(small_disk) -> None:
    store = Store(small_disk / "store")
    recipe = {"kind": "program"}

    def make(tree):
        with (tree / "f").open("wb", buffering=0) as file:
            while file.write(bytes(4096)) == 4096:
                pass
        raise ValueError("the program ended with 1")

    with pytest.raises(StoreFull):
        store.build(key_of(recipe), recipe, make)
    small = {"kind": "small"}
    assert store.build(key_of(small), small, lambda tree: (tree / "f").touch())


def test_two_layers_share_a_disk_that_has_room_for_one_at_a_time(small_disk, built) -> None:
    store = Store(small_disk / "store", budget_bytes=1 << 20)
    for name in "abc":
        built(name, files={"f": "x" * (700 << 10)}, into=store)
    assert store.du().layers == 1


def test_only_its_owner_may_enter_a_store(store) -> None:
    assert store.root.stat().st_mode & 0o777 == 0o700


def test_a_store_that_cannot_be_made_is_bad_input(tmp_path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="EXCISE_STORE"):
        Store(tmp_path / "file" / "store")


def test_another_versions_store_is_left_alone(tmp_path) -> None:
    (tmp_path / "format").write_text("excise layer store 99\n")
    with pytest.raises(InputError, match="another version"):
        Store(tmp_path)


def test_a_layer_is_found_by_the_start_of_its_name(store, built) -> None:
    one, other = built("one"), built("other")
    assert store.find(one.id[:12]) == one
    assert store.find(other.id) == other
    for wrong in ("", "z", "../"):
        with pytest.raises(InputError, match="layer list"):
            store.find(wrong)
