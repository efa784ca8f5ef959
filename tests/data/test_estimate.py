import gzip

import pytest

from official_bert import machine
from official_bert.data import estimate
from official_bert.data.instances import InstanceSettings


def test_it_grows_with_text_and_passes(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"x" * 3_184_456)
    five = estimate.estimate([str(path)], InstanceSettings(dupe_factor=5))
    ten = estimate.estimate([str(path)] * 2, InstanceSettings(dupe_factor=5))
    assert five.text_bytes == 3_184_456
    # Measured on a text of this size: 33708 records of 831 bytes.
    assert five.disk_bytes == pytest.approx(28e6, rel=0.4)
    assert ten.disk_bytes == pytest.approx(2 * five.disk_bytes)
    assert ten.seconds == pytest.approx(2 * five.seconds)
    assert five.memory_bytes > five.disk_bytes


def test_compressed_text_counts_as_what_it_unpacks_to(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"x" * 1000))
    size = path.stat().st_size
    found = estimate.estimate([str(path)], InstanceSettings())
    assert found.text_bytes == estimate.COMPRESSION * size


def test_the_memory_is_that_of_a_container(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(machine, "total_memory", lambda: 999)
    estimate.announce(estimate.Estimate(1e6, 2e3, 1e3, 5), str(tmp_path / "out"))
    assert "This machine has 999 bytes of memory" in caplog.text


def test_too_small_a_disk_or_memory_is_a_warning(tmp_path, caplog):
    caplog.set_level("INFO", "absl")
    large = estimate.Estimate(3.2e12, 1e18, 1e18, 360000)
    estimate.announce(large, str(tmp_path / "out"))
    assert "3.2 TB of text" in caplog.text and "100.0 h" in caplog.text
    assert caplog.text.count("may not be enough") == 2
    caplog.clear()
    estimate.announce(estimate.Estimate(1e6, 2e3, 1e3, 5), str(tmp_path / "out"))
    assert "may not" not in caplog.text
