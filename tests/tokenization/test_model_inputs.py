"""Rows of tokens as the arrays of a batch."""

import subprocess
import sys
import types

import numpy as np
import pytest

from official_bert.constants import INPUTS
from official_bert.errors import UserError
from official_bert.tokenization.model_inputs import check_length, pad_rows


def test_padding():
    rows = [
        types.SimpleNamespace(
            input_ids=np.array([5, 6, 7], np.int32), segment_ids=np.array([0, 0, 1])
        ),
        types.SimpleNamespace(input_ids=[9], segment_ids=[1]),
    ]
    batch = pad_rows(rows, 4)
    assert {name: array.tolist() for name, array in batch.items()} == {
        "input_ids": [[5, 6, 7, 0], [9, 0, 0, 0]],
        "input_mask": [[1, 1, 1, 0], [1, 0, 0, 0]],
        "segment_ids": [[0, 0, 1, 0], [1, 0, 0, 0]],
    }
    assert tuple(batch) == INPUTS
    assert {array.dtype for array in batch.values()} == {np.dtype(np.int32)}
    assert pad_rows([], 4)["input_ids"].shape == (0, 4)


def test_a_row_holds_a_token():
    check_length(3)
    with pytest.raises(UserError, match="max_seq_length is 2: it must be at least 3"):
        check_length(2)


def test_features_need_no_tensorflow():
    code = (
        "import sys; from official_bert.fine_tuning import tflite_model;"
        "from official_bert.tasks.classifier import features;"
        "from official_bert.tasks.ner import features;"
        "from official_bert.tasks.squad import features;"
        "assert 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
