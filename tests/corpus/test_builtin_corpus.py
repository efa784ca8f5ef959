import pathlib

import pytest

from official_bert.corpus import builtin as builtin_corpus
from official_bert.corpus import readers
from official_bert.errors import UserError


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """Make a small environment of 40 modules with similar texts."""
    modules = {}
    for number in range(40):
        path = tmp_path / f"m{number}.py"
        path.write_text(
            '"""All modules begin with this very sentence.\n\n'
            f'This sentence is of the module with {"very " * number}long names."""\n'
            "class A:\n"
            f'    """Make the thing of {"large " * number}size and return it."""\n'
            "    def f(self):\n"
            f'        """Do something {"else " * number}and then do nothing."""\n'
            'raise RuntimeError("parsed, never imported")\n'
        )
        modules[f"m{number}"] = path
    modules["broken"] = tmp_path / "broken.py"
    modules["broken"].write_text("def (")
    monkeypatch.setattr(builtin_corpus, "_find_modules", lambda: modules)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return modules


def _documents(name):
    return list(readers.read_documents(readers.find_inputs(name)))


def test_training_and_held_out_share_no_line_and_have_none_twice(environment):
    training = _documents(builtin_corpus.TRAINING)
    held_out = _documents(builtin_corpus.HELD_OUT)
    assert held_out
    lines = [line for document in training + held_out for line in document]
    assert len(lines) == len(set(lines))
    assert sum("All modules begin" in line for line in lines) == 1
    for documents, wanted in ((training, False), (held_out, True)):
        found = {line for document in documents for line in document}
        for number in range(40):
            own = f"This sentence is of the module with {'very ' * number}long names."
            assert (own in found) == (
                builtin_corpus.is_held_out(f"m{number}") == wanted
            )


def test_the_language_reference_is_in_it(environment):
    text = "\n".join(sum(_documents(builtin_corpus.TRAINING), []))
    assert "context manager" in text and "expression" in text


def test_docstrings_come_from_top_to_bottom(environment):
    found = list(builtin_corpus._docstrings(environment["m3"]))
    starts = [docstring.split()[0] for docstring in found]
    assert starts == ["All", "Make", "Do"]


def test_the_corpus_is_made_once_and_again_the_same(environment, monkeypatch):
    path = pathlib.Path(builtin_corpus.corpus_file(builtin_corpus.TRAINING))
    first = path.read_bytes()
    path.unlink()
    builtin_corpus.corpus_file(builtin_corpus.TRAINING)
    assert path.read_bytes() == first and first.endswith(b"\n\n")
    monkeypatch.setattr(builtin_corpus, "_read_documents", None)
    builtin_corpus.corpus_file(builtin_corpus.HELD_OUT)


def test_another_environment_has_another_file(environment, monkeypatch):
    first = builtin_corpus.corpus_file(builtin_corpus.TRAINING)
    monkeypatch.setattr(builtin_corpus.importlib.metadata, "distributions", lambda: [])
    assert builtin_corpus.corpus_file(builtin_corpus.TRAINING) != first


def test_one_module_in_ten_is_held_out():
    held_out = [builtin_corpus.is_held_out(f"package.module{n}") for n in range(5000)]
    assert sum(held_out) == pytest.approx(500, abs=80)


def test_short_documents_drop_out_after_their_repetitions():
    names = [f"m{number}" for number in range(9)]
    first, second = [name for name in names if not builtin_corpus.is_held_out(name)][:2]
    documents = [(first, ["one", "two", "one"]), (second, ["two", "three"])]
    training, held_out = builtin_corpus.split_documents(documents)
    assert training == [["one", "two"]] and held_out == []


def test_tests_and_this_package_are_no_part_of_it():
    names = builtin_corpus._find_modules()
    assert "argparse" in names and "json.decoder" in names
    assert not any(
        {"tests", "site-packages", "official_bert"} & set(name.split("."))
        for name in names
    )


def test_an_unknown_corpus_is_named():
    with pytest.raises(
        UserError, match="--heldout_file: the corpus builtin:java does not"
    ):
        readers.find_inputs("builtin:java", "--heldout_file")
