"""What was made of texts is known for those that were asked for lately."""

from __future__ import annotations

from dg_lsp.remembered import Remembered
from hypothesis import given
from hypothesis import strategies as st


def test_what_is_asked_for_is_kept_and_the_rest_is_forgotten() -> None:
    remembered: Remembered[int] = Remembered(8)
    remembered.put("kept", -1)
    for number in range(40):
        remembered.put(str(number), number)
        assert remembered.get("kept") == -1
        assert len(remembered) <= 8
    assert remembered.get("0") is None
    assert remembered.get_all(["39", "0", "kept"]) == [39, None, -1]


def test_what_is_looked_up_with_others_is_kept_as_well() -> None:
    remembered: Remembered[int] = Remembered(4)
    for number in range(12):
        remembered.put(str(number), number)
        assert remembered.get_all(["0", "never"]) == [0, None]


def test_what_is_asked_for_twice_at_once_is_known_twice() -> None:
    remembered: Remembered[int] = Remembered(4)
    for number in range(3):
        remembered.put(str(number), number)
    assert remembered.get_all(["0", "1", "0", "2", "0"]) == [0, 1, 0, 2, 0]


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=6), max_size=20))
def test_many_at_once_are_each_told_alike(asked: list[list[str]]) -> None:
    remembered: Remembered[str] = Remembered(6)
    for texts in asked:
        found = remembered.get_all(texts)
        known = dict(zip(texts, found, strict=True))
        assert found == [known[text] for text in texts]
        assert set(found) <= {None, *map(str.upper, texts)}
        for text in texts:
            remembered.put(text, text.upper())
            assert remembered.get_all([text, text]) == [text.upper()] * 2
        assert len(remembered) <= 6
