"""The pages that are written from code say what the code says now."""

import pytest

from scripts.reference import PAGES, current, now
from scripts.reference.told import rows_of


@pytest.mark.parametrize("page", PAGES)
def test_a_page_that_is_written_from_code_is_current(page: str) -> None:
    """Whoever changes a command, an error, an event, a word of a policy, a move or an example writes it anew."""
    assert now(page) == current(page), f"{page} is not current: run scripts/docs --pages"


def test_a_word_of_which_nobody_says_what_it_means_is_named_with_the_place_to_say_it() -> None:
    """So is one that is gone."""
    with pytest.raises(ValueError, match=r"nobody says what b, c means; add a line to MEANINGS in here\.py"):
        rows_of(["a", "b", "c"], {"a": "first"}, where="MEANINGS in here.py")
    with pytest.raises(ValueError, match="says something of b, which is not there any more"):
        rows_of(["a"], {"a": "first", "b": "second"}, where="MEANINGS in here.py")
