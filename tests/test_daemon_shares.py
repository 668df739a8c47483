"""Who goes next: priorities first, then the window that has had the least."""

from __future__ import annotations

from dg_engine.daemon.shares import BURST_SECONDS, MOST_WAITING, Shares
from dg_engine.job import CanvasJob, Priority
from hypothesis import given
from hypothesis import strategies as st


def job(name: str, priority: Priority = Priority.INTERACTIVE) -> CanvasJob:
    return CanvasJob(id=name, prompt=[1], canvas=[0], roles=b"\0", priority=priority)


def ran(shares: Shares[str], seconds: float = 1.0) -> str:
    """Run the next job to its end; whose it was."""
    taken = shares.take()
    assert taken is not None
    window, one = taken
    shares.ended(window, one.id, seconds)
    return window


def test_the_more_urgent_goes_first_whoever_wants_it() -> None:
    shares: Shares[str] = Shares(1)
    shares.put("a", job("1", Priority.PREFETCH))
    shares.put("a", job("2", Priority.EDIT))
    shares.put("b", job("1", Priority.INTERACTIVE))
    assert [ran(shares) for _ in range(3)] == ["b", "a", "a"]


def test_a_slot_is_kept_for_each_priority() -> None:
    shares: Shares[str] = Shares(1)
    shares.put("a", job("1", Priority.EDIT))
    assert shares.take() is not None
    shares.put("a", job("2", Priority.EDIT))
    assert shares.take() is None
    shares.put("b", job("1"))
    assert shares.take() == ("b", job("1"))


def test_the_window_that_is_typed_in_goes_first_until_its_burst_is_spent() -> None:
    shares: Shares[str] = Shares(1)
    for number in range(4):
        shares.put("quiet", job(f"q{number}"))
    for number in range(8):
        shares.put("typing", job(f"t{number}"))
    order = [ran(shares, BURST_SECONDS * 0.6) for _ in range(8)]
    assert order[:2] == ["typing", "typing"]
    assert sorted(order) == ["quiet"] * 3 + ["typing"] * 5


def test_time_in_which_nothing_was_wanted_gives_no_claim() -> None:
    shares: Shares[str] = Shares(1)
    for number in range(100):
        shares.put("busy", job(f"b{number}"))
    for _ in range(50):
        assert ran(shares) == "busy"
    for number in range(100):
        shares.put("late", job(f"l{number}"))
    order = [ran(shares) for _ in range(20)]
    assert 9 <= order.count("late") <= 11


def test_a_cancelled_job_gives_its_slot_at_once() -> None:
    shares: Shares[str] = Shares(1)
    shares.put("a", job("1"))
    shares.put("a", job("2"))
    assert shares.take() == ("a", job("1"))
    assert shares.take() is None
    shares.let_go("a", "1")
    assert shares.take() == ("a", job("2"))


def test_a_window_has_so_many_jobs_and_no_two_of_a_name() -> None:
    shares: Shares[str] = Shares(1)
    assert shares.put("a", job("same"))
    assert not shares.put("a", job("same"))
    assert shares.put("b", job("same"))
    assert all(shares.put("a", job(str(number))) for number in range(MOST_WAITING - 1))
    assert not shares.put("a", job("one too many"))
    assert shares.drop("a", "same")
    assert not shares.drop("a", "same")
    assert shares.put("a", job("room again"))


windows = st.sampled_from("abcd")
steps = st.lists(
    st.tuples(windows, st.sampled_from(Priority), st.floats(0.001, 3.0)), min_size=1, max_size=60
)


@given(steps, st.integers(1, 3))
def test_every_job_runs_once_and_never_more_than_the_slots(
    wanted: list[tuple[str, Priority, float]], slots: int
) -> None:
    shares: Shares[str] = Shares(slots)
    for number, (window, priority, _) in enumerate(wanted):
        assert shares.put(window, job(str(number), priority))
    running: list[tuple[str, CanvasJob]] = []
    done: list[str] = []
    while len(shares):
        while (taken := shares.take()) is not None:
            running.append(taken)
        for priority in Priority:
            assert sum(one.priority == priority for _, one in running) <= slots
        window, one = running.pop(0)
        shares.ended(window, one.id, wanted[int(one.id)][2])
        done.append(one.id)
    assert sorted(done, key=int) == [str(number) for number in range(len(wanted))]


@given(st.integers(2, 6), st.floats(0.05, 2.0))
def test_nobody_starves_beside_a_flood(flooding: int, long: float) -> None:
    """A window that wants one job waits for no more than the burst and what runs."""
    shares: Shares[str] = Shares(1)
    for window in range(flooding):
        for number in range(40):
            shares.put(f"flood{window}", job(str(number)))
    for _ in range(10):
        ran(shares, long)
    shares.put("one", job("1"))
    waited, mine = 0.0, False
    while not mine:
        mine = ran(shares, long) == "one"
        waited += 0.0 if mine else long
        shares.put("flood0", job(f"again{waited}"))  # the flood was typed in last
    assert waited <= flooding * (BURST_SECONDS + long) + long
