"""Kill a run in the middle, so that it can be resumed."""

import pytest

from official_bert.training import loop


def killed_at(step, run, monkeypatch):
    """Run until a step is logged, and stop there.

    Args:
      step: step number in a log line.
      run: function without arguments.
      monkeypatch: pytest's fixture, or its class.
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
