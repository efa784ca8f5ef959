"""Aliases of flags, and files of the project."""

import pytest
from absl import flags

from official_bert.command_line import flag_values
from official_bert.errors import UserError


@pytest.fixture
def own(monkeypatch):
    """Define the flag `--word` of a command, with two aliases."""
    values = flags.FlagValues()
    monkeypatch.setattr(flags, "FLAGS", values)
    flags.DEFINE_string("word", None, "What to say.", flag_values=values)
    original = flags.DEFINE_alias
    monkeypatch.setattr(
        flags,
        "DEFINE_alias",
        lambda *names, **options: original(*names, flag_values=values, **options),
    )
    flag_values.define_aliases("word", "text", "old_word")
    flag_values.own_flags.cache_clear()
    yield values
    flag_values.own_flags.cache_clear()


@pytest.mark.parametrize("given", ["--word=b", "--text=b", "--old_word=b"])
def test_any_name_sets_the_flag(own, given):
    own(["", "--text=a", given])
    assert own.word == own.text == own.old_word == "b"
    assert own["word"].present


def test_an_alias_is_recorded_once(own):
    own(["", "--text=a"])
    recorded = {flag.name: flag.value for flag in flag_values.own_flags()}
    assert recorded == {"word": "a"}
    assert flag_values.aliases_of("word") == ["text", "old_word"]
    assert flag_values.aliases_of("text") == []


def test_a_message_has_the_flags_own_name(own):
    own([""])
    with pytest.raises(UserError, match="^Give --word: What to say"):
        flag_values.require("word")


def test_an_installation_has_the_configs_only(monkeypatch, tmp_path):
    """Files next to the installed package are not found."""
    for path in ("configs/a.flags", "data/a.txt"):
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).touch()
    monkeypatch.setattr(flag_values, "ROOT", tmp_path)
    for is_checkout in (True, False):
        monkeypatch.setattr(flag_values, "IS_CHECKOUT", is_checkout)
        assert flag_values.locate("configs/a.flags") == f"{tmp_path}/configs/a.flags"
        found = flag_values.locate("data/a.txt")
        assert found == (f"{tmp_path}/data/a.txt" if is_checkout else "data/a.txt")
