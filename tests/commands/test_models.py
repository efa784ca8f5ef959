"""The list of models with names."""

import pytest
import warm_python
from places import ROOT

from official_bert.checkpoints.hub import names

PROGRAM = (
    "from official_bert.command_line.start import run_command; run_command('models')"
)


def models(*arguments):
    done = warm_python.run(["-c", PROGRAM, *arguments], cwd=ROOT)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def table():
    status, output, errors = models()
    assert (status, errors) == (0, "")
    return output.splitlines()


def test_all_names_are_listed_below_their_source(table):
    listed, source = {}, None
    for line in filter(None, table):
        if line in (names.GOOGLE, names.HUGGING_FACE, names.KAGGLE):
            source = line
        elif not line.startswith("name "):
            listed[line.split()[0]] = source
    assert listed == {model.name: model.source for model in names.MODELS}


def test_a_row_has_sizes_and_memory(table):
    (row,) = (
        line for line in table if line.startswith("bert-base-multilingual-cased ")
    )
    # 177,853,440 parameters of 4 bytes.
    assert " 177.9 M  cased    104 languages  0.71 GB" in row
    to_fine_tune = float(row.split()[-2])
    # Weights, gradients and two moments are 2.85 GB; the rest are activations.
    assert 2.85 < to_fine_tune < 16
    assert len({len(line) for line in table if line.startswith("name ")}) == 1


def test_one_source():
    status, output, _ = models("--source=Google")
    assert status == 0
    assert "wwm_cased_L-24_H-1024_A-16" in output
    assert names.KAGGLE not in output
    status, _, errors = models("--source=Other")
    assert status == 2 and "--source" in errors
