"""Tests how CSV files are read that nobody described."""

import pytest

from services.tool.csv_text import broken_line, decode, distinct_names, shape_of
from services.tool.errors import DataSourceError


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter: str) -> None:
    text = f"a{delimiter}b\n1{delimiter}x\n2{delimiter}y\n"

    found = shape_of("f.csv", text.encode())

    assert found.delimiter == delimiter
    assert found.column_names == ("a", "b")


def test_commas_within_quotes_do_not_count_as_delimiters() -> None:
    found = shape_of("f.csv", b'name;note\nx;"a, b, c"\ny;"d, e, f"\n')

    assert found.delimiter == ";"


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "gb18030", "utf-16", "utf-16-le", "utf-16-be"]
)
def test_chinese_text_is_decoded_from_the_encodings_of_spreadsheets(encoding: str) -> None:
    text = "订单号,地区\n1,华东\n"
    mark = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}.get(encoding, b"")

    decoded = decode("f.csv", mark + text.encode(encoding))

    assert decoded.removeprefix("\ufeff") == text


def test_western_text_is_not_taken_for_chinese() -> None:
    assert decode("f.csv", "région,prix\nÎle-de-France,3\n".encode("cp1252")).startswith("région")


def test_every_line_end_becomes_a_newline() -> None:
    assert decode("f.csv", b"a\r\nb\rc\n") == "a\nb\nc\n"


def test_binary_data_is_refused_with_what_to_give_instead() -> None:
    with pytest.raises(DataSourceError, match="not a text file; give a CSV"):
        decode("f.bin", bytes(range(256)))


@pytest.mark.parametrize("content", [b"", b"\n\n", b"  \n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(content: bytes) -> None:
    with pytest.raises(DataSourceError, match="empty"):
        shape_of("f.csv", content)


def test_a_first_row_of_values_is_no_header() -> None:
    found = shape_of("f.csv", b"2025-01-01,East,10\n2025-01-02,West,20\n")

    assert not found.has_header
    assert found.column_names == ("column_1", "column_2", "column_3")
    assert any("column_1" in note for note in found.notes)


def test_years_are_fair_column_names() -> None:
    found = shape_of("f.csv", b"region,2024,2025\nEast,1,2\n")

    assert found.column_names == ("region", "2024", "2025")


def test_lines_above_the_header_are_left_out_and_mentioned() -> None:
    found = shape_of("f.csv", b"Sales 2026,,\n,,\nregion,m1,m2\nEast,1,2\nWest,3,4\n")

    assert found.column_names == ("region", "m1", "m2")
    assert found.text.startswith("region")
    assert found.notes == ("2 lines above the header were left out",)


def test_names_become_distinct_in_any_case_and_none_is_empty() -> None:
    assert distinct_names(["A", "a", " ", "B  C", "a_2"]) == (
        "A",
        "a_2",
        "column_3",
        "B C",
        "a_2_2",
    )


def test_a_line_with_too_many_values_is_named() -> None:
    found = shape_of("f.csv", b"a,b\n1,2\n3,4,5\n")

    assert broken_line(found).startswith("line 3 has 3 values but there are 2 columns")


def test_a_quotation_mark_without_its_pair_is_named() -> None:
    found = shape_of("f.csv", b'a,b\n1,"2\n3,4\n')

    assert "quotation mark" in broken_line(found)


def test_a_sound_file_has_no_broken_line() -> None:
    assert broken_line(shape_of("f.csv", b'a,b\n1,"x\ny"\n2,z\n')) == ""
