"""Files that a run writes anew: unless a person has changed them."""

import pytest

from official_bert.generated_files import write_unless_edited


def test_written_anew_while_nobody_has_changed_it(tmp_path):
    path = tmp_path / "compose.yml"
    for text in ("né: 1\n", "two\n", ""):
        assert write_unless_edited(str(path), text, "# {}")
        first, _, rest = path.read_text(encoding="utf-8").partition("\n")
        assert first.startswith("# By official_bert; ") and rest == text
    assert [each.name for each in tmp_path.iterdir()] == ["compose.yml"]


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content + b"x",
        lambda content: content.replace(b"one", b"two"),
        lambda content: content.partition(b"\n")[2],
        lambda content: content.replace(b"\n", b"\r\n"),
        lambda content: b"<!-- " + content,
        lambda content: b"",
        lambda content: b"\xff\xfe",
    ],
)
def test_what_people_wrote_stays(tmp_path, change):
    path = tmp_path / "compose.yml"
    assert write_unless_edited(str(path), "one: 1\n", "# {}")
    changed = change(path.read_bytes())
    path.write_bytes(changed)
    assert not write_unless_edited(str(path), "three: 3\n", "# {}")
    assert path.read_bytes() == changed


def test_a_link_to_nothing_stays(tmp_path):
    path = tmp_path / "README.md"
    path.symlink_to("nowhere")
    assert not write_unless_edited(str(path), "one\n", "<!-- {} -->")
    assert path.is_symlink()
