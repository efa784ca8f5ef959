"""The columns of text and label are given, guessed, or listed in an error."""

import pytest

from official_bert.errors import UserError
from official_bert.tables.columns import Columns, choose_columns, find_column
from official_bert.tables.delimited import Row
from official_bert.tables.table_files import CSV, TSV, Table

TEXTS = ["A fine film.", "Not a good film.", "Dull.", "I slept.", "Lovely!", "Bad."]
OTHERS = ["The plot is thin.", "Who wrote it?", "So it goes.", "Hm.", "Yes.", "No."]
STARS = ["5", "2", "1", "2", "5", "1"]


def table_of(header=True, **columns):
    cells = zip(*columns.values(), strict=True)
    rows = [Row(line, row) for line, row in enumerate(cells, 2)]
    names = tuple(columns) if header else tuple(map(str, range(len(columns))))
    return Table("data.csv", CSV, names, header, rows)


def chosen(table, *given):
    columns, _ = choose_columns(table, *given)
    return columns.text, columns.text_b, columns.label


def message_of(table, *given):
    with pytest.raises(UserError) as caught:
        choose_columns(table, *given)
    message = str(caught.value)
    assert message.endswith(".") and "\n" not in message
    return message


@pytest.mark.parametrize("swap", [False, True])
def test_two_columns_need_no_flags_and_say_so(swap):
    columns = {"review": TEXTS, "stars": STARS}
    table = table_of(**dict(sorted(columns.items(), reverse=swap)))
    found, notes = choose_columns(table)
    assert found == Columns("review", None, "stars", True)
    assert notes == [
        "data.csv: column 'review' is used as the text. Choose another one "
        "with --text_column.",
        "data.csv: column 'stars' is used as the label. Choose another one "
        "with --label_column.",
    ]


def test_without_a_header_columns_have_numbers():
    table = table_of(header=False, review=TEXTS, stars=STARS)
    assert choose_columns(table)[0] == Columns("0", None, "1", False)
    assert chosen(table, "0", None, 1) == ("0", None, "1")
    assert "no column 'review' (the file was read without a header)" in message_of(
        table, "review"
    )


def test_given_columns_are_taken_without_a_note():
    table = table_of(a=TEXTS, b=OTHERS, c=STARS)
    assert choose_columns(table, "b", "a", "c") == (Columns("b", "a", "c", True), [])
    assert chosen(table, 1, "0", " c ") == ("b", "a", "c")


def test_a_name_wins_over_a_number():
    table = table_of(**{"1": TEXTS, "0": STARS})
    assert chosen(table, "1", None, "0") == ("1", None, "0")


def test_a_missing_column_is_named_with_those_there_are():
    table = table_of(review=TEXTS, stars=STARS)
    for given in [("txt",), ("2",), ("review", None, "-1")]:
        message = message_of(table, *given)
        assert f"has no column {given[-1]!r}" in message
        assert "Its columns are 0 'review', 1 'stars'" in message
    assert message_of(table, None, None, "x").startswith("--label_column: data.csv")
    assert message_of(table, None, "x").startswith("--text_b_column: data.csv")


def test_a_name_that_is_there_twice():
    rows = [Row(2, ("a b c", "d", "x"))]
    table = Table("data.csv", CSV, ("text", "text", "label"), True, rows)
    message = message_of(table, "text")
    assert "has 2 columns called 'text'. Give the number" in message
    assert "0 'text', 1 'text', 2 'label'" in message
    assert chosen(table, "0") == ("0", None, "label")
    assert find_column(table, "0", "--text_column") == 0


def test_a_column_given_twice():
    table = table_of(review=TEXTS, stars=STARS)
    assert "must be different" in message_of(table, "review", None, "review")
    assert "must be different" in message_of(table, "review", "review", "stars")


def test_the_common_names_decide():
    table = table_of(title=OTHERS, text=TEXTS, score=STARS, Label=STARS)
    assert chosen(table) == ("text", None, "Label")


def test_columns_that_number_the_rows_are_left_alone():
    twice = TEXTS * 2
    numbers = list(map(str, range(12)))
    table = table_of(**{"": numbers, "review": twice, "ID": twice, "stars": STARS * 2})
    assert chosen(table) == ("review", None, "stars")
    assert chosen(table_of(n=numbers, r=twice, s=STARS * 2)) == ("r", None, "s")
    assert "no column looks like a label" in message_of(table_of(n=numbers, r=twice))


def test_two_texts_are_not_guessed_but_asked_for():
    table = table_of(first=TEXTS, second=OTHERS, label=STARS)
    message = message_of(table)
    assert (
        "more than one column may be the text. Choose one with --text_column" in message
    )
    assert "0 'first', 1 'second', 2 'label'" in message
    assert chosen(table, "first", "second") == ("first", "second", "label")


def test_the_much_longer_column_is_the_text_beside_names():
    names = ["al", "bo", "cy", "di", "ed", "flo x"]
    assert chosen(table_of(author=names, body=TEXTS, stars=STARS)) == (
        "body",
        None,
        "stars",
    )
    longer = [name * 4 for name in names]
    assert "may be the text" in message_of(table_of(a=longer, b=TEXTS, stars=STARS))


def test_a_pair_of_unequal_lengths_is_asked_for():
    # Like RTE: without the second text, half of the task would be lost.
    premises = [text * 10 for text in OTHERS]
    hypotheses = ["It is so.", *["It is not so."] * 4, "It may be so."]
    hypotheses = [f"{text} {number}" for number, text in enumerate(hypotheses)]
    table = table_of(sentence1=premises, sentence2=hypotheses, label=STARS)
    assert "Choose one with --text_column" in message_of(table)


def test_two_columns_of_few_values_are_asked_for():
    table = table_of(review=TEXTS, stars=STARS, city=["Ulm", "Bonn"] * 3)
    message = message_of(table)
    assert (
        "more than one column may be the label. Choose one with --label_col" in message
    )


def test_a_text_is_no_number_and_no_list():
    message = message_of(table_of(a=STARS, b=[["x"]] * 6))
    assert "no column looks like a text" in message


def test_the_only_other_column_is_the_label_whatever_it_holds():
    amounts = [f"{number / 7:.3f}" for number in range(6)]
    assert chosen(table_of(review=TEXTS, amount=amounts)) == ("review", None, "amount")
    tags = [["a"], [], ["a", "b"], ["c"], ["d"], ["e"]]
    assert chosen(table_of(review=TEXTS, tags=tags)) == ("review", None, "tags")


def test_a_tsv_with_commas():
    """A single column is not a table of texts and labels. A `.tsv` file needs tabs."""
    rows = [Row(line, [f"{text},5"]) for line, text in enumerate(TEXTS, 1)]
    table = Table("data.tsv", TSV, ("0",), False, rows)
    assert "data.tsv has only one column" in message_of(table)
    assert ".csv" in message_of(table)
