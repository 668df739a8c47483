"""What was made of texts is known for those that were asked for lately."""

from __future__ import annotations

from dg_lsp.remembered import Remembered


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
