"""Quantities, against exact fractions."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api import quantity

SUFFIXES = {
    suffix: Fraction(10) ** exponent
    for suffix, exponent in zip(["n", "u", "m", "", "k", "M", "G", "T", "P", "E"], range(-9, 21, 3), strict=True)
}
SUFFIXES |= {f"{letter}i": Fraction(1024) ** (i + 1) for i, letter in enumerate("KMGTPE")}
SUFFIXES |= {"e3": Fraction(1000), "E-2": Fraction(1, 100), "e+6": Fraction(10**6)}
WHOLE_PART = st.integers(0, 999).map(str)
FRACTION = st.one_of(st.just(""), st.integers(0, 999_999).map(lambda number: f".{number}"))


@given(
    sign=st.sampled_from(["", "+", "-"]), whole=WHOLE_PART, fraction=FRACTION, suffix=st.sampled_from(list(SUFFIXES))
)
def test_a_quantity_is_its_number_times_its_suffix_rounded_up_to_billionths(
    sign: str, whole: str, fraction: str, suffix: str
) -> None:
    exact = Fraction(f"{whole}{fraction}") * SUFFIXES[suffix]
    nanos = min(ceil(exact * quantity.NANOS), ((1 << 63) - 1) * quantity.NANOS)
    text = f"{sign}{whole}{fraction}{suffix}"
    assert quantity.nanos(text) == (-nanos if sign == "-" else nanos)
    if sign != "-":
        assert quantity.milli(text) == ceil(Fraction(nanos, 10**6))
        assert quantity.whole(text) == ceil(Fraction(nanos, 10**9))


@given(whole=WHOLE_PART, fraction=FRACTION, suffix=st.sampled_from(list(SUFFIXES)))
def test_the_canonical_form_means_the_same_and_is_its_own_canonical_form(
    whole: str, fraction: str, suffix: str
) -> None:
    text = f"{whole}{fraction}{suffix}"
    form = quantity.canonical(text)
    assert "." not in form
    assert quantity.canonical(form) == form
    if quantity.nanos(text) < ((1 << 63) - 1) * quantity.NANOS:
        assert quantity.nanos(form) == quantity.nanos(text)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("0.5", "500m"),
        ("1.0", "1"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1000", "1k"),
        ("100000k", "100M"),
        ("1e3", "1e3"),
        ("12E2", "1200"),
        ("0.1Ki", "102400m"),
        ("512Ki", "512Ki"),
        ("1000Ki", "1000Ki"),
        ("0Gi", "0"),
        ("-0.25", "-250m"),
        (2, "2"),
        (0.25, "250m"),
    ],
)
def test_canonical_forms_are_those_of_the_api_server(text: str | float, form: str) -> None:
    assert quantity.canonical(text) == form


@pytest.mark.parametrize(
    "text", ["", " ", "Gi", "1 Gi", "1gi", "1K", "1.2.3", "one", "1e", ".", "--1", "1Gib", "1m2", "٣"]
)
def test_what_is_no_quantity_is_refused_with_an_example_of_one(text: str) -> None:
    with pytest.raises(ValueError, match=r"no quantity.*for example 500m"):
        quantity.parse(text)


def test_an_endless_quantity_is_refused_without_being_computed() -> None:
    for text in ("9" * 5000, "1e" + "9" * 60, "1." + "0" * 100):
        try:
            assert quantity.nanos(text) <= ((1 << 63) - 1) * quantity.NANOS
        except ValueError as error:
            assert "no quantity" in str(error)


def test_amounts_are_thousandths_for_cpu_and_whole_units_for_everything_else_rounded_up() -> None:
    assert quantity.amount("cpu", "1.0001") == 1001
    assert quantity.amount("memory", "1.5") == 2
    assert quantity.amount("memory", "1Gi") == 1 << 30
    assert quantity.amount("example.com/gpu", "8") == 8
    assert quantity.amount("cpu", "100u") == 1


def test_amounts_saturate_so_that_sums_over_a_node_stay_within_64_bits() -> None:
    assert quantity.amount("memory", "9E") == quantity.LARGEST
    assert 110 * quantity.amount("cpu", "9E") < 1 << 63


@given(st.integers(0, 1 << 50))
def test_amounts_survive_being_written_and_read(value: int) -> None:
    for resource in ("cpu", "memory", "example.com/gpu", "hugepages-2Mi"):
        assert quantity.amount(resource, quantity.format_amount(resource, value)) == value
