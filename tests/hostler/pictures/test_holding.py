"""How much of each resource a run held when."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from hostler.pictures.holding import Hold, Step, bands, steps


def hold(start_s: float, end_s: float, units: int = 1, *, node: str = "a", known: bool = True) -> Hold:
    return Hold(node=node, resource="cpu", units=units, start_s=start_s, end_s=end_s, known=known)


HOLDS = st.lists(
    st.builds(
        lambda start, length, units, node, known: hold(start, start + length, units, node=node, known=known),
        st.integers(0, 20), st.integers(1, 9), st.integers(1, 3), st.sampled_from("abcd"), st.booleans(),
    ),
    max_size=12,
)  # fmt: skip


@given(HOLDS)
def test_at_each_moment_a_step_holds_the_sum_of_what_is_held(holds: list[Hold]) -> None:
    found = steps(holds)
    for moment in [number + 0.5 for number in range(30)]:
        there = [each for each in holds if each.start_s <= moment < each.end_s]
        at = [step for step in found if step.start_s <= moment < step.end_s]
        assert len(at) == bool(there)
        for step in at:
            assert step.units == sum(each.units for each in there if each.known)
            assert step.perhaps == sum(each.units for each in there if not each.known)
            assert step.nodes == tuple(sorted({each.node for each in there}))


@given(HOLDS)
def test_steps_follow_each_other_and_none_is_over_another(holds: list[Hold]) -> None:
    found = steps(holds)
    assert all(step.start_s < step.end_s for step in found)
    assert all(before.end_s <= after.start_s for before, after in itertools.pairwise(found))


def test_bands_come_by_name_with_their_most_and_the_capacity_that_is_known() -> None:
    cpu, other = hold(0, 2, 2), hold(1, 3, 1, node="b", known=False)
    disk = Hold(node="a", resource="a-disk", units=1, start_s=0, end_s=1)
    first, second = bands([cpu, other, disk], {"cpu": 4})
    assert (first.resource, first.capacity, first.most) == ("a-disk", None, 1)
    assert (second.resource, second.capacity, second.most) == ("cpu", 4, 3)
    assert second.steps[1] == Step(start_s=1, end_s=2, units=2, perhaps=1, nodes=("a", "b"))
