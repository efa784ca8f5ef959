"""The check of `make hosts` would notice a worker that does not stop as it should."""

import dataclasses

import hosts
import pytest

SENTENCE = "error: Worker 0 has lost another worker.\n"


@dataclasses.dataclass
class Ended:
    """A process that has ended, or None for one that still runs."""

    status: int | None

    def poll(self):
        return self.status


@pytest.mark.parametrize(
    ("status", "text", "words"),
    [
        (1, SENTENCE, None),
        (0, SENTENCE, "status 0"),
        (1, "", "status 1"),
        (1, SENTENCE * 2, "status 1"),
        (1, f"Traceback (most recent call last):\n{SENTENCE}", "status 1"),
        (-6, SENTENCE, "status -6"),
        (None, SENTENCE, "host0 still runs, and not within"),
    ],
)
def test_each_worker_has_to_end_with_one_sentence(
    tmp_path, monkeypatch, status, text, words
):
    monkeypatch.setattr(hosts, "MOST_SECONDS", 0.1)
    (tmp_path / "log").write_text(text)
    problems = hosts.wait_for_sentences([Ended(status)], [tmp_path / "log"])
    assert (problems == []) is (words is None)
    if words:
        assert words in problems[0]
