"""Virtual time: the order of what happens, and who sends when."""

from __future__ import annotations

from dataclasses import replace

from kvplan.core.step import Way
from kvplan.simulation.servers.contiguous import ContiguousServer
from tests.simulation.servers.cases import run, traffic


def server() -> ContiguousServer:
    return ContiguousServer(tokens=10_000, max_len=100, max_running=64, batched_tokens=1000)


def test_what_comes_together_is_computed_together() -> None:
    """All that arrive at one moment are in the step that begins then."""
    assert 2 == run(traffic([(0.0, 10, 2), (0.0, 10, 2)]), server()).num_steps


def test_a_closed_loop_sends_when_there_is_a_place() -> None:
    """Two in flight: the third goes out when the first is done, and is timed from then."""
    work = traffic([(0.0, 10, 2), (0.0, 10, 3), (0.0, 10, 1)], max_in_flight=2)
    outcome = run(work, server())

    assert [0.0, 0.0, 2.0] == outcome.arrived_s.tolist()
    assert [2.0, 3.0, 3.0] == outcome.finished_s.tolist()
    assert 2 == outcome.max_running


def test_a_step_ahead_sees_who_came_before_the_last() -> None:
    """Decided as the step from 0 to 1 begins, the next one does not see who comes at 0.5."""
    work = traffic([(0.0, 10, 5), (0.5, 10, 2), (9.0, 10, 1)])
    now, ahead = (run(work, server(), ahead=ahead) for ahead in (False, True))

    assert [0.0, 1.0, 9.0] == now.admitted_s.tolist()
    assert [0.0, 2.0, 9.0] == ahead.admitted_s.tolist()
    assert [5.0, 4.0, 10.0] == ahead.finished_s.tolist()


def test_who_waits_for_an_end_is_seen_after_its_way() -> None:
    """A place is free at 2; the next comes to the scheduler half a second and its prompt later."""
    work = traffic([(0.0, 10, 2), (0.0, 10, 1)], max_in_flight=1)
    outcome = run(replace(work, way=Way(0.5, 0.01)), server())

    assert [0.0, 2.6] == outcome.arrived_s.tolist()
    assert [2.0, 3.6] == outcome.finished_s.tolist()


def test_a_successor_is_sent_after_its_predecessor() -> None:
    """Whatever its own time says; a request that is refused has successors too."""
    work = traffic([(0.0, 10, 3), (0.0, 200, 1), (0.0, 10, 1)], after=[-1, 0, 1])
    outcome = run(work, server())

    assert [0.0, 3.0, 3.0] == outcome.arrived_s.tolist()
    assert [False, True, False] == outcome.rejected.tolist()


def test_means_are_over_time() -> None:
    """One request from 2 to 5 in a run of 100 tokens: a fifth of 5 seconds is not its share."""
    outcome = run(traffic([(2.0, 10, 3)]), server())

    assert 5.0 == outcome.duration_s
    assert 3 / 5 == outcome.mean_running
    assert 60.0 == outcome.mean_used_blocks
    assert 100 == outcome.peak_used_blocks


def test_the_timeline_is_bounded() -> None:
    """However long it takes, and still from the beginning to the end."""
    work = traffic([(0.0, 1, 90)] * 200, max_in_flight=1)
    line = run(work, server()).timeline

    assert 1000 < len(line.time_s) <= 4096
    assert 0.0 == line.time_s[0]
    assert line.time_s[-1] > 200 * 89
    assert (line.time_s[1:] >= line.time_s[:-1]).all()
