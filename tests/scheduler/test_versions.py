from __future__ import annotations

from muster.model.keys import Key
from muster.scheduler.versions import Versions, version

KEY = Key("default", "a")


def test_an_older_or_equal_state_of_the_same_object_is_no_news():
    versions = Versions()
    assert versions.accepts(KEY, "u1", 5)
    assert not versions.accepts(KEY, "u1", 5)
    assert not versions.accepts(KEY, "u1", 4)
    assert versions.accepts(KEY, "u1", 6)


def test_a_deleted_object_is_not_brought_back_by_a_late_event():
    versions = Versions()
    versions.accepts(KEY, "u1", 5)
    assert versions.ends(KEY, "u1")
    assert not versions.accepts(KEY, "u1", 4)
    assert not versions.ends(KEY, "u1")


def test_a_deletion_seen_before_the_creation_counts():
    versions = Versions()
    assert not versions.ends(KEY, "u1")
    assert not versions.accepts(KEY, "u1", 3)


def test_an_object_made_anew_under_the_name_replaces_the_old_one_and_outlives_its_late_deletion():
    versions = Versions()
    versions.accepts(KEY, "u1", 5)
    assert versions.accepts(KEY, "u2", 8)
    assert not versions.ends(KEY, "u1")
    assert not versions.accepts(KEY, "u1", 9)
    assert versions.ends(KEY, "u2")


def test_a_late_event_of_an_unknown_earlier_incarnation_is_no_news():
    versions = Versions()
    versions.accepts(KEY, "u2", 8)
    assert not versions.accepts(KEY, "u1", 5)


def test_what_a_list_lacks_has_ended():
    versions = Versions()
    versions.accepts(KEY, "u1", 5)
    assert versions.missing(set()) == [KEY]
    assert not versions.accepts(KEY, "u1", 6)


def test_an_opaque_revision_is_always_news():
    versions = Versions()
    assert version("abc") is None
    assert versions.accepts(KEY, "u1", None)
    assert versions.accepts(KEY, "u1", None)
