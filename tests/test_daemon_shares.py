"""Who goes next: priorities first, then the window that has had the least."""

from __future__ import annotations

from dg_engine.daemon.shares import BURST_SECONDS, FOCUS_TURNS, MOST_WAITING, Shares
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


def test_the_window_in_focus_goes_first_though_others_were_typed_in_later() -> None:
    shares: Shares[str] = Shares(1)
    for window, focused in (("looked at", True), ("behind", False), ("silent", None)):
        shares.focus(window, focused)
        assert shares.focused(window) is focused
    for window in ("looked at", "behind", "silent"):
        shares.put(window, job("1"))
    assert [ran(shares, 0.01) for _ in range(3)] == ["looked at", "silent", "behind"]


def test_a_window_that_never_says_so_stands_where_one_out_of_focus_does() -> None:
    orders: list[list[str]] = []
    for said in ({}, {"a": False}, {"a": None, "b": False}):
        shares: Shares[str] = Shares(1)
        for window, focused in said.items():
            shares.focus(window, focused)
        for number in range(4):
            shares.put("a", job(f"a{number}"))
            shares.put("b", job(f"b{number}"))
        orders.append([ran(shares, BURST_SECONDS) for _ in range(8)])
    assert orders[0][:2] == ["b", "b"]  # typed in last
    assert orders[1:] == orders[:1] * 2


def test_a_more_urgent_job_of_another_window_goes_before_what_the_focus_wants_ahead() -> None:
    shares: Shares[str] = Shares(1)
    shares.focus("looked at", True)
    shares.put("looked at", job("ahead", Priority.PREFETCH))
    shares.put("looked at", job("edit", Priority.EDIT))
    shares.put("other", job("typed"))
    assert [ran(shares) for _ in range(3)] == ["other", "looked at", "looked at"]


def test_a_focus_that_floods_has_its_burst_and_then_its_share() -> None:
    shares: Shares[str] = Shares(1)
    shares.focus("flood", True)
    for number in range(40):
        shares.put("other", job(f"o{number}"))
        shares.put("flood", job(f"f{number}"))
    order = "".join(ran(shares, BURST_SECONDS / 4)[0] for _ in range(40))
    assert order.startswith("fffo" + "fffo")
    assert 16 <= order.count("o") <= 20


def test_jobs_that_come_one_by_one_wait_for_few_turns_of_a_flood_in_focus() -> None:
    shares: Shares[str] = Shares(1)
    shares.focus("flood", True)
    for number in range(200):
        shares.put("flood", job(f"f{number}"))
    waited: list[int] = []
    for number in range(10):
        shares.put("other", job(f"o{number}"))
        shares.put("flood", job(f"typed{number}"))
        waited.append([ran(shares, 0.02) for _ in range(FOCUS_TURNS + 1)].index("other"))
    assert waited == [FOCUS_TURNS] * 10


def test_turns_in_a_row_are_counted_for_each_rank_and_only_past_others() -> None:
    shares: Shares[str] = Shares(1)
    shares.focus("looked at", True)
    for number in range(FOCUS_TURNS):
        shares.put("looked at", job(f"alone{number}"))
    assert [ran(shares, 0.01) for _ in range(FOCUS_TURNS)] == ["looked at"] * FOCUS_TURNS
    for number in range(FOCUS_TURNS + 1):
        shares.put("looked at", job(f"edit{number}", Priority.EDIT))
    shares.put("other", job("edit", Priority.EDIT))
    assert [ran(shares, 0.01) for _ in range(FOCUS_TURNS)] == ["looked at"] * FOCUS_TURNS
    shares.put("other", job("typed"))
    shares.put("looked at", job("typed"))
    assert [ran(shares, 0.01) for _ in range(2)] == ["looked at", "other"]
    assert [ran(shares, 0.01) for _ in range(2)] == ["other", "looked at"]


def test_who_is_far_beyond_its_share_goes_last_even_in_focus() -> None:
    """Also while the window that has had the least wants nothing of this rank."""
    shares: Shares[str] = Shares(1)
    shares.put("least", job("long", Priority.EDIT))
    assert shares.take() is not None
    shares.focus("looked at", True)
    for number in range(20):
        shares.put("other", job(f"o{number}"))
        shares.put("looked at", job(f"l{number}"))
    order = [ran(shares, BURST_SECONDS) for _ in range(20)]
    assert 9 <= order.count("other") <= 11


def test_a_window_that_leaves_takes_its_focus_along() -> None:
    shares: Shares[str] = Shares(1)
    shares.focus("a", True)
    shares.leave("a")
    assert shares.focused("a") is None


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
        assert waited <= flooding * (BURST_SECONDS + long) + long
        shares.put("flood0", job(f"again{waited}"))  # the flood was typed in last


looks = st.lists(st.one_of(st.none(), st.integers(0, 5)), min_size=1, max_size=40)


@given(st.integers(1, 5), st.floats(0.03, 2.0), looks, st.sampled_from(Priority))
def test_no_window_waits_for_more_than_so_many_turns_whoever_has_the_focus(
    flooding: int, long: float, looked_at: list[int | None], priority: Priority
) -> None:
    """Of each other window: as many turns as its burst holds, and the one that passes it."""
    shares: Shares[str] = Shares(1)
    for number in range(60):
        for window in range(flooding):
            shares.put(f"flood{window}", job(f"{number}", priority))
    for _ in range(10):
        ran(shares, long)
    shares.put("one", job("1", priority))
    turns: dict[str, int] = {}
    turn = 0
    while (window := ran(shares, long)) != "one":
        turns[window] = turns.get(window, 0) + 1
        assert turns[window] <= int(BURST_SECONDS / long) + 2
        now = looked_at[turn % len(looked_at)]  # the user looks elsewhere after each turn
        turn += 1
        for number in range(flooding):
            shares.focus(f"flood{number}", number == now)
            shares.put(f"flood{number}", job(f"again{turn}", priority))


@given(st.floats(0.001, 2.0), st.integers(0, 20), st.sampled_from(Priority), st.booleans())
def test_beside_one_window_in_focus_nobody_waits_for_more_than_its_turns_in_a_row(
    long: float, before: int, priority: Priority, was_there: bool
) -> None:
    shares: Shares[str] = Shares(1)
    shares.focus("looked at", True)
    if was_there:
        shares.focus("one", False)
    for number in range(before + 60):
        shares.put("looked at", job(f"{number}", priority))
    for _ in range(before):
        ran(shares, long)
    for number in range(5):
        shares.put("one", job(f"{number}", priority))
        turns = 0
        while ran(shares, long) != "one":
            turns += 1
            assert turns <= FOCUS_TURNS
