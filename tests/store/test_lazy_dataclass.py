"""Frozen dataclasses whose constructor is written late behave as those of the standard library."""

import copy
import dataclasses
import pickle
from dataclasses import field
from typing import Any

import pytest

from store.lazy_dataclass import dataclass


def made(decorator: Any, **options: Any) -> Any:
    @decorator(frozen=True, slots=True, **options)
    class Example:
        first: int
        second: str = "two"
        many: list[int] = field(default_factory=list)
        hidden: int = field(default=0, repr=False, compare=False)

    return Example


WAYS = [{}, {"kw_only": True}]
GIVEN = [{"first": 1}, {"first": 1, "second": "x"}, {"first": 2, "many": [3], "hidden": 9}]


@pytest.mark.parametrize("options", WAYS)
@pytest.mark.parametrize("given", GIVEN)
def test_instances_hold_and_show_what_those_of_the_standard_library_do(options, given):
    ours, theirs = made(dataclass, **options)(**given), made(dataclasses.dataclass, **options)(**given)
    assert repr(ours) == repr(theirs)
    assert dataclasses.asdict(ours) == dataclasses.asdict(theirs)
    assert ours == type(ours)(**given)
    assert ours == dataclasses.replace(ours, hidden=5)
    assert ours != dataclasses.replace(ours, first=7)
    assert ours != theirs
    assert not hasattr(ours, "__dict__")


@pytest.mark.parametrize("options", WAYS)
@pytest.mark.parametrize("arguments", [(), (1, "x", [], 0, 0), (1,), (1, "x")])
def test_the_same_arguments_are_refused(options, arguments):
    results = []
    for decorator in (dataclass, dataclasses.dataclass):
        try:
            results.append(dataclasses.astuple(made(decorator, **options)(*arguments)))
        except TypeError as error:
            results.append(str(error))
    assert results[0] == results[1]


def test_an_unknown_name_is_refused_each_time():
    example = made(dataclass)
    for _ in range(2):
        with pytest.raises(TypeError, match="unexpected keyword argument 'third'"):
            example(first=1, third=3)


def test_what_defaults_are_made_of_is_made_for_each():
    example = made(dataclass)
    assert example(1).many is not example(1).many


def test_nothing_can_be_set_or_deleted():
    one = made(dataclass)(1)
    for attribute in ("first", "other"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(one, attribute, 2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        del one.first
    assert one.first == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A class that can be found by its name."""

    x: int
    y: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Height(Place):
    """One that adds to another."""

    z: int = 0

    def __post_init__(self) -> None:
        if self.z < 0:
            raise ValueError(self.z)


def test_equal_ones_are_one_key_and_others_are_not():
    assert {Place(x=1): "a", Place(x=1): "b", Place(x=2): "c"} == {Place(x=1): "b", Place(x=2): "c"}
    assert Place(x=1) != Height(x=1)
    assert len({Height(x=1), Height(x=1, z=1), Place(x=1)}) == 3


def test_they_can_be_copied_and_sent():
    one = Height(x=1, y=(2, 3), z=4)
    assert pickle.loads(pickle.dumps(one)) == copy.copy(one) == copy.deepcopy(one) == one


def test_a_class_with_another_before_it_takes_its_fields_and_checks_itself():
    assert dataclasses.astuple(Height(x=1, z=2)) == (1, (), 2)
    with pytest.raises(ValueError, match="-1"):
        Height(x=1, z=-1)


def test_the_constructor_is_written_with_the_first_instance():
    example = made(dataclass)
    before = example.__init__
    example(1)
    assert example.__init__ is not before
    assert example.__init__.__qualname__ == f"{example.__qualname__}.__init__"
    example(1)


def test_one_without_fields_is_what_it_is():
    @dataclass(frozen=True, slots=True)
    class Nothing:
        pass

    assert Nothing() == Nothing()
    assert hash(Nothing()) == hash(Nothing())
    assert repr(Nothing()).endswith("Nothing()")


@pytest.mark.parametrize("options", [{"frozen": False, "slots": True}, {"frozen": True, "slots": False}])
def test_what_is_not_frozen_or_has_no_slots_is_left_to_the_standard_library(options):
    with pytest.raises(TypeError):
        dataclass(**options)
