"""Where the recordings are: those we ship, and the large ones if present."""

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

# What removes the temporary files at the end.
_REMOVALS = []

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Before any test imports TensorFlow, and before the processes of `warm_python` do.
# They inherit the variable, so that all of them compute with the same kernels.
importlib.import_module("official_bert")
# A shell lets what it starts in the background ignore Ctrl-C, and the tests'
# processes would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# The files that take longest, the longest first. They begin, so that of several
# processes (`-n`) none is at work alone in the end.
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
    """Keep pytest-xdist from beginning with the files of most tests.

    The process that was called makes a folder for whatever is temporary, also of
    processes that tests kill.
    """
    config.option.loadscopereorder = False
    if not hasattr(config, "workerinput"):
        os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="tests-")
        # Of the lowest priority, it comes after what removes its own files there.
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
    """Put the tests of the longest files first."""
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.name, len(place)))


def pytest_collection_finish():
    """Let the garbage collector skip what the imports have made.

    It would look at TensorFlow's objects again and again, 9 % of the tests' time.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def mini_folder():
    """The same as `mini`, for fixtures of any scope."""
    return MINI


@pytest.fixture(scope="session")
def mini_tokenizer():
    """The tokenizer of these recordings."""
    # Imported late: most tests have no use for it.
    from official_bert.tokenization.full import FullTokenizer

    return FullTokenizer(str(MINI / "vocab.txt"))


@pytest.fixture
def mini():
    """The original's recordings on the text written for this project."""
    return MINI


@pytest.fixture
def shared():
    """The large recordings, kept beside the project where it is developed."""
    if not SHARED.is_dir():
        pytest.skip("the large recordings (../shared) are not on this machine")
    return SHARED


def pytest_terminal_summary(terminalreporter):
    """List what was compared with the original and with KerasHub.

    After a failure the temporary files are kept.
    """
    stats = terminalreporter.stats
    # With -x the status is that of an interruption.
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
