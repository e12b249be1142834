"""Amounts are exact, and one amount has one text."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from store.amounts import Budget, Usage, decimal_text
from store.records import decode, encode


@pytest.mark.parametrize("written", [0.1, "0.1", "0.10", Decimal("0.100"), "0.1000000000"])
def test_an_amount_is_the_decimal_that_people_mean(written: object) -> None:
    """0.10 and 0.1 are one amount, whether they were a number or a text."""
    assert Budget.model_validate({"cost": written}) == Budget(cost=Decimal("0.1"))
    assert encode(Usage.model_validate({"cost": written})) == b'{"cost":"0.1","tokens":0}'


@pytest.mark.parametrize("wrong", [-1, "-0.1", "nan", "inf", "1e400", "0.1234567891", True, " 1", "x", 2**53, [1]])
def test_what_is_no_amount_is_refused(wrong: object) -> None:
    """Negative, endless, too fine and too large amounts, and what is no number, are refused."""
    with pytest.raises(ValidationError):
        Budget.model_validate({"cost": wrong})


@given(st.decimals(min_value=0, max_value=10**9, places=9))
def test_the_text_of_an_amount_gives_it_back(amount: Decimal) -> None:
    """No digit is lost on the way to the disk and back."""
    assert Decimal(decimal_text(amount)) == amount
    assert decode(Budget, encode(Budget(seconds=amount)), "budget").seconds == amount
