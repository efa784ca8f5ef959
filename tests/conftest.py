"""Locate the recordings: those in this repository, and the large ones if present."""

import collections
import gc
import importlib
import os
import shutil
import signal
import tempfile
from multiprocessing import util

import pytest
from places import MINI, SHARED

# Removers of the temporary files, called at the end.
_REMOVALS = []

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Import before any test imports TensorFlow, and before `warm_python` starts its
# processes. They inherit the variable, so all of them use the same kernels.
importlib.import_module("official_bert")
# A shell makes its background processes ignore Ctrl-C, and the tests' processes would
# inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# The slowest files, the slowest first. They start first, so that with `-n` no process
# works alone at the end.
LONGEST = (
    "test_torture.py",
    "test_workers.py",
    "test_served_models.py",
    "test_saved_model.py",
    "test_lanes.py",
    "test_input_pipeline.py",
    "test_writer.py",
    "test_keras_hub.py",
    "test_step.py",
    "test_pretraining.py",
    "test_run_classifier.py",
    "test_devices.py",
    "test_feature_based.py",
    "test_feature_extraction.py",
    "test_graph.py",
    "test_run_swag.py",
    "test_saving.py",
    "test_dynamic_batches.py",
    "test_choice.py",
)


def pytest_configure(config):
    """Stop pytest-xdist from starting with the files that have the most tests.

    The main process creates a folder for all temporary files, including those of
    processes that tests kill.
    """
    config.option.loadscopereorder = False
    if not hasattr(config, "workerinput"):
        os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="tests-")
        # With the lowest priority, it runs after the removal of its own files there.
        _REMOVALS.append(
            util.Finalize(
                None,
                shutil.rmtree,
                args=(tempfile.tempdir,),
                kwargs={"ignore_errors": True},
                exitpriority=-1000,
            )
        )


def pytest_collection_modifyitems(items):
    """Put the tests of the slowest files first."""
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.name, len(place)))


def pytest_collection_finish():
    """Make the garbage collector skip the objects that the imports created.

    It would scan TensorFlow's objects repeatedly, which takes 9 % of the tests' time.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def mini_folder():
    """Return the same as `mini`, for fixtures of any scope."""
    return MINI


@pytest.fixture(scope="session")
def mini_tokenizer():
    """Return the tokenizer of these recordings."""
    # Import late: most tests do not need it.
    from official_bert.tokenization.full import FullTokenizer

    return FullTokenizer(str(MINI / "vocab.txt"))


@pytest.fixture
def mini():
    """Return the original's recordings on the text written for this project."""
    return MINI


@pytest.fixture
def shared():
    """Return the large recordings, which exist only where the project is developed."""
    if not SHARED.is_dir():
        pytest.skip("the large recordings (../shared) are not on this machine")
    return SHARED


def pytest_terminal_summary(terminalreporter):
    """List the comparisons with the original and with KerasHub.

    After a failure, the temporary files are kept.
    """
    stats = terminalreporter.stats
    # With -x the exit status is that of an interruption.
    if stats.get("failed") or stats.get("error"):
        for removal in _REMOVALS:
            removal.cancel()
        terminalreporter.write_line(f"Temporary files are in {tempfile.tempdir}")
    outcomes = collections.Counter(
        (report.nodeid.partition("[")[0], outcome)
        for outcome in ("passed", "failed", "skipped")
        for report in stats.get(outcome, [])
        if "comparison" in getattr(report, "keywords", ())
    )
    if outcomes:
        terminalreporter.section("comparisons with the original and with KerasHub")
    for (test, outcome), count in sorted(outcomes.items()):
        terminalreporter.write_line(f"{outcome} {count:4}  {test}")
