import uuid

from muster.runtime.uids import AT_A_TIME, Uids


def test_uids_are_random_ones_of_version_4_and_never_the_same():
    new_uid = Uids()
    made = [new_uid() for _ in range(3 * AT_A_TIME)]
    assert len(set(made)) == len(made)
    for text in made:
        assert str(uuid.UUID(text)) == text
        assert (uuid.UUID(text).version, uuid.UUID(text).variant) == (4, uuid.RFC_4122)
    assert {text[19] for text in made} == set("89ab")
