"""Java's properties files, as far as a `zoo.cfg` uses them."""

import pytest

from paddock.server.config.properties import Property, read_properties


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("key=value", "key", "value"),
        ("key = value", "key", "value"),
        ("key: value", "key", "value"),
        ("key:value", "key", "value"),
        ("key value", "key", "value"),
        ("key\tvalue", "key", "value"),
        ("   key=value   ", "key", "value"),
        ("key=", "key", ""),
        ("key", "key", ""),
        ("key==value", "key", "=value"),
        ("key=a=b:c d", "key", "a=b:c d"),
        ("key=# no comment", "key", "# no comment"),
        (r"a\ b\=c\:d=value", "a b=c:d", "value"),
        (r"key=C:\\data", "key", r"C:\data"),
        (r"key=\u00e9\t!", "key", "é\t!"),
        (r"key=\q", "key", "q"),
        ("key=one,\\\n    two,\\\n\tthree", "key", "one,two,three"),
        ("key\\\n=value", "key", "value"),
        ("\\\nkey=value", "key", "value"),
        ("key=a\\\n# b", "key", "a# b"),
        ("key=value\\", "key", "value"),
        ("key=a\\\\\n", "key", "a\\"),
        ("key=ä", "key", "ä"),
    ],
)
def test_one_property_is_read_as_java_reads_it(text: str, key: str, value: str) -> None:
    assert [(one.line, one.key, one.value) for one in read_properties(text)] == [(1, key, value)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_whatever_ends_them(end: str) -> None:
    text = end.join(["# comment", "", "a=1", "  ! comment", "b=2\\", "2", "c=3", ""])
    assert list(read_properties(text)) == [
        Property(3, "a", "1"),
        Property(5, "b", "22"),
        Property(7, "c", "3"),
    ]


@pytest.mark.parametrize("text", ["", "\n\n", "# a\\\n", "!", "   \n\t\n"])
def test_a_file_of_comments_and_blanks_has_no_properties(text: str) -> None:
    assert list(read_properties(text)) == []


def test_a_comment_cannot_be_continued() -> None:
    assert list(read_properties("# comment \\\nkey=value")) == [Property(2, "key", "value")]
