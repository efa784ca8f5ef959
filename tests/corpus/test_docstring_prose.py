import inspect

import pytest

from official_bert.corpus.builtin import is_prose, prose_sentences

DOCSTRING = """Open a file and return a stream of its lines.

    The file is closed when the stream *ends*. See the :func:`~io.open` function
    for what `mode` may be, and [the guide](https://example.org) for more of it.

    >>> Open the door and look at it.
    Something that a doctest printed on its own.

    ```
    This is code in a fence although it reads well.
    ```

    Heading of some words here
    --------------------------

    Args:
      path: Name of the file that will be opened.
      mode (str): The letters are those of the standard library
        and may be combined in any order.
      * A bullet point that is a sentence of its own.
      x: int.

    .. note:: A directive is left out of the text.

    x = compute(the, answer, of, everything) and then some.
    return the value of the last expression.
    """


def test_prose_of_a_docstring():
    assert prose_sentences(inspect.cleandoc(DOCSTRING)) == [
        "Open a file and return a stream of its lines.",
        "The file is closed when the stream ends.",
        "See the open function for what mode may be, and the guide for more of it.",
        "Name of the file that will be opened.",
        "The letters are those of the standard library and may be combined in any "
        "order.",
        "A bullet point that is a sentence of its own.",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Return the number of items in the list.", True),
        ('The "with" statement wraps the execution of a block.', True),
        ("Too short to keep.", False),
        ("return a name that has no capital letter.", False),
        ("A sentence that does not end with a stop", False),
        ("Set the value a = b in the given table.", False),
        ("Call foo(x, y) before the others are called.", False),
        ("A_b c_d e_f g_h i_j k_l m_n o_p q_r s_t.", False),
        ("It has " + "very " * 60 + "many words.", False),
    ],
)
def test_is_prose(text, expected):
    assert is_prose(text) == expected
