"""Left-to-right pre-training, and pre-training without next-sentence prediction."""

import dataclasses

import pytest
import record_files
from marks import slow
from record_files import MINI_CONFIG
from test_pretraining import metrics, run, tensors

from official_bert.data.records.record_set import open_record_set
from official_bert.errors import UserError

CAUSAL = dataclasses.replace(MINI_CONFIG, causal_attention=True)
NO_NSP = {"next_sentence_prediction": False, "num_train_steps": 3}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    return record_files.write_unmasked(folder, next_sentence_prediction=False)


@pytest.mark.parametrize(
    "config", [slow(MINI_CONFIG), CAUSAL], ids=["masked", "causal"]
)
def test_a_run_minimises_the_loss_of_words_alone(path, tmp_path, config):
    records = open_record_set(path, config)
    directory = run(records, tmp_path / "run", config, **NO_NSP)
    rows = [row for row in metrics(directory) if "masked_lm_loss" in row]
    assert [row["step"] for row in rows] == [1, 2, 3]
    for row in rows:
        assert row["loss"] == pytest.approx(row["masked_lm_loss"], rel=1e-5)
    results = (directory / "eval_results.txt").read_text()
    assert "masked_lm_loss" in results and "next_sentence" not in results
    names = tensors(directory / "bert_model.ckpt")
    assert not any("seq_relationship" in name for name in names)
    # The order of the records, the weights and the dropout masks are equal.
    again = run(records, tmp_path / "again", config, **NO_NSP)
    assert metrics(again) == metrics(directory)


def test_records_without_random_sentences_are_for_that_alone(path, tmp_path):
    records = open_record_set(path, MINI_CONFIG)
    with pytest.raises(UserError, match="created with --nonext_sentence_prediction"):
        run(records, tmp_path / "run", num_train_steps=1)


@pytest.mark.slow
def test_a_run_does_not_go_on_with_another_task(path, tmp_path):
    records = open_record_set(path, MINI_CONFIG)
    directory = run(records, tmp_path / "run", **NO_NSP)
    with pytest.raises(UserError, match="causal_attention"):
        run(open_record_set(path, CAUSAL), directory, CAUSAL, **NO_NSP)
    unknown = dataclasses.replace(records, manifests={"a": {}})
    with pytest.raises(UserError, match="next_sentence_prediction"):
        run(unknown, directory, num_train_steps=3)
