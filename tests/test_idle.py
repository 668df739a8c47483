"""What is done while nobody waits: a piece at a time, and never while a request is in flight."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator

import pytest
from dg_lsp.idle import PIECE_SECONDS, QUIET_SECONDS, Idle, in_pieces


class World:
    """A loop that runs what it was told to run later, when it is let."""

    def __init__(self) -> None:
        self.told: list[Callable[[], None]] = []
        self.busy = False
        self.done: list[str] = []
        self.now = 0.0
        self.idle = Idle(lambda: self.busy, self.later, lambda: self.now)

    def later(self, seconds: float, work: Callable[[], None]) -> None:
        assert seconds > 0

        def in_time() -> None:
            self.now += seconds
            work()

        self.told.append(in_time)

    def run(self, most: int = 100) -> None:
        while self.told and most:
            most -= 1
            self.told.pop(0)()

    def work(self, name: str, pieces: int) -> Iterator[None]:
        for number in range(pieces):
            self.done.append(f"{name}{number}")
            yield


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    monkeypatch.setattr("dg_lsp.idle.gc.collect", found.append)
    return found


def test_work_is_done_a_piece_at_a_time_the_newest_first(world: World) -> None:
    world.idle.put("a", world.work("a", 3))
    assert world.done == []
    world.run(1)
    assert world.done == ["a0"]
    world.idle.put("b", world.work("b", 2))
    world.run()
    assert world.done == ["a0", "b0", "b1", "a1", "a2"]
    assert "a" not in world.idle
    assert not world.told  # nothing wakes the loop for nothing


def test_nothing_is_done_while_a_request_is_in_flight(world: World) -> None:
    world.idle.put("a", world.work("a", 2))
    world.busy = True
    world.run()
    assert world.done == []
    assert not world.told
    world.busy = False
    world.idle.resume()
    world.run()
    assert world.done == ["a0", "a1"]


def test_a_change_holds_it_off_for_a_moment(world: World) -> None:
    world.idle.put("a", world.work("a", 2))
    world.run(1)
    assert world.done == ["a0"]
    world.idle.hold()
    changed_at = world.now
    world.run(1)
    assert world.done == ["a0"]
    world.run(1)
    assert world.done == ["a0", "a1"]
    assert world.now >= changed_at + QUIET_SECONDS


def test_newer_work_takes_the_place_of_older(world: World) -> None:
    world.idle.put("a", world.work("old", 2))
    world.idle.put("a", world.work("new", 1))
    world.run()
    assert world.done == ["new0"]


@pytest.mark.parametrize("leave", [lambda idle: idle.drop("a"), lambda idle: idle.clear()])
def test_what_is_dropped_stays_undone(world: World, leave: Callable[[Idle], None]) -> None:
    world.idle.put("a", world.work("a", 2))
    world.run(1)
    leave(world.idle)
    world.run()
    assert world.done == ["a0"]


def test_work_that_fails_ends_alone(world: World, caplog: pytest.LogCaptureFixture) -> None:
    def failing() -> Iterator[None]:
        raise ValueError("lost")
        yield

    world.idle.put("a", world.work("a", 1))
    world.idle.put("b", failing())
    with caplog.at_level(logging.ERROR):
        world.run()
    assert world.done == ["a0"]
    assert "Work for later failed." in caplog.text


def test_garbage_is_collected_once_behind_requests(world: World, collected: list[int]) -> None:
    world.idle.resume()
    world.idle.resume()
    world.run()
    assert collected == [0]
    world.idle.resume()
    world.busy = True  # the next key
    world.run()
    assert collected == [0]


def test_what_is_older_is_looked_through_now_and_then(world: World, collected: list[int]) -> None:
    for _ in range(400):
        world.idle.resume()
        world.run()
    assert collected.count(0) == 380
    assert collected.count(1) == 19
    assert collected.count(2) == 1


def test_small_steps_share_a_piece() -> None:
    ticks = itertools.count()
    pieces = in_pieces(iter(range(100)), lambda: next(ticks) * PIECE_SECONDS / 10)
    assert 9 <= len(list(pieces)) <= 12
