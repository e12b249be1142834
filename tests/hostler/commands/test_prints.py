"""What is printed while a view has the terminal."""

import sys

from hostler.commands.prints import LONGEST, MOST, Prints


def test_whole_lines_are_taken_and_the_rest_in_the_end() -> None:
    prints = Prints(sys.stdout)
    stream = prints.stream()
    print("one", file=stream)
    print("two\r\nthr", end="", file=stream)
    assert prints.take() == ["one", "two"]
    print("ee", end="", file=stream)
    assert prints.take() == []
    assert prints.take(rest=True) == ["three"]
    assert prints.take(rest=True) == []


def test_of_a_line_that_is_written_over_and_over_the_last_counts() -> None:
    prints = Prints(sys.stdout)
    stream = prints.stream()
    for percent in range(101):
        stream.write(f"\r{percent} %")
    assert prints.take() == []
    stream.write("\n")
    assert prints.take() == ["100 %"]


def test_a_flood_is_bounded() -> None:
    prints = Prints(sys.stdout)
    stream = prints.stream()
    stream.write("".join(f"{number}\n" for number in range(3 * MOST)))
    assert prints.take()[-1] == str(3 * MOST - 1)
    stream.write("x" * 10 * LONGEST + "\n")
    assert len(prints.take()[0]) == LONGEST


def test_it_can_be_used_as_the_standard_output_is() -> None:
    with open("/dev/null", "w", encoding="utf-8") as under:
        prints = Prints(under)
        stream = prints.stream()
        stream.buffer.write("größe\n".encode())  # type: ignore[attr-defined] # as of any text stream
        stream.write("lone \udcff surrogate\n")
        assert prints.take() == ["größe", r"lone \udcff surrogate"]
        assert stream.fileno() == under.fileno()
        assert not stream.isatty()
