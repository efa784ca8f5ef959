"""A run that is killed in its middle, to be started again."""

import pytest

from official_bert.training import loop


def killed_at(step, run, monkeypatch):
    """Run until a step is logged, and no further.

    Args:
      step: of a log line.
      run: function without arguments.
      monkeypatch: pytest's, or the class.
    """
    log_row = loop.RunLog.training

    def log_and_die(self, at, row):
        log_row(self, at, row)
        if at == step:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(loop.RunLog, "training", log_and_die)
        with pytest.raises(KeyboardInterrupt):
            run()


def assert_same_bytes(found, expected):
    """Compare dicts of name -> array bit for bit."""
    assert set(found) == set(expected)
    for name, value in found.items():
        assert value.tobytes() == expected[name].tobytes(), name
