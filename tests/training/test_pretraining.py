"""Whole runs on the small records: killed and resumed, evaluated, refused."""

import dataclasses
import json
import math
import shutil

import numpy as np
import pytest
import record_files
import tensorflow as tf
from killed_run import assert_same_bytes, killed_at
from marks import slow
from record_files import MINI, MINI_CONFIG, mini_records, stacked
from run_settings import RUN, changed, make

import official_bert
from official_bert.data.records.record_set import open_record_set
from official_bert.errors import UserError
from official_bert.modeling.kernels import choose, element_wise
from official_bert.training import pretraining, saving
from official_bert.training.logs.run_log import RATES

STEPS = 6
STRATEGY = tf.distribute.get_strategy()
SETTINGS = make(
    pretraining.PretrainingSettings,
    **RUN,
    vocab_file=str(MINI / "vocab.txt"),
    do_train=True,
    do_eval=True,
    eval_batch_size=16,
    learning_rate=5e-3,
    num_train_steps=STEPS,
    num_warmup_steps=2,
    save_checkpoints_steps=2,
    keep_checkpoint_max=5,
    iterations_per_loop=1,
    max_eval_steps=100,
    seed=11,
)


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    return open_record_set(record_files.write_mini(folder, manifest=True), MINI_CONFIG)


def run(records, directory, config=MINI_CONFIG, eval_set=None, **changes):
    settings = changed(SETTINGS, output_dir=str(directory), **changes)
    pretraining.run(STRATEGY, config, records, eval_set or records, settings)
    return directory


@pytest.fixture(scope="module")
def whole(records, tmp_path_factory):
    """The output directory of an undisturbed run."""
    return run(records, tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def continued(records, tmp_path_factory):
    """The output directory of the same run, killed after step 5 and resumed."""
    directory = tmp_path_factory.mktemp("continued")
    killed_at(5, lambda: run(records, directory), pytest.MonkeyPatch)
    assert (directory / "model.ckpt-4.index").exists()
    assert not (directory / "bert_model.ckpt.index").exists()
    assert [row["step"] for row in metrics(directory)][-1] == 5
    return run(records, directory)


def tensors(prefix):
    reader = tf.train.load_checkpoint(str(prefix))
    names = set(reader.get_variable_to_shape_map()) - {saving.RUN_ID}
    return {name: reader.get_tensor(name) for name in names}


def metrics(directory):
    lines = (directory / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    for row in rows:
        for name in RATES:
            row.pop(name, None)
    return rows


@pytest.mark.parametrize("prefix", [f"model.ckpt-{STEPS}", "bert_model.ckpt"])
def test_continued_is_bit_for_bit_the_whole_run(whole, continued, prefix):
    ours, theirs = tensors(continued / prefix), tensors(whole / prefix)
    assert set(ours) == set(theirs)
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name], value, err_msg=name)
    assert MINI_CONFIG.hidden_dropout_prob == 0.1


@pytest.fixture
def compiled(monkeypatch):
    """The names of the functions that XLA compiled."""
    names, compiled = set(), element_wise.compiled

    def noted(function, **settings):
        names.add(function.__name__)
        return compiled(function, **settings)

    monkeypatch.setattr(element_wise, "compiled", noted)
    return names


@pytest.mark.slow
def test_so_is_one_whose_element_wise_work_is_compiled(
    records, tmp_path, compiled, monkeypatch
):
    settings = {"do_eval": False}
    tokens = STEPS * SETTINGS.loop.train_batch_size * records.max_seq_length
    work = tokens * MINI_CONFIG.num_hidden_layers * MINI_CONFIG.hidden_size
    monkeypatch.setattr(choose, "LEAST_WORK", work + 1)
    run(records, tmp_path / "small", **settings)
    assert not compiled
    monkeypatch.setattr(choose, "LEAST_WORK", work)
    whole = run(records, tmp_path / "whole", **settings)
    assert compiled == {
        "gelu",
        "gelu_erf",
        "normalize_dropped_sum",
        "hashed_dropout",
        "score_gradient",
        "cross_entropy",
    }
    killed = tmp_path / "killed"
    killed_at(5, lambda: run(records, killed, **settings), pytest.MonkeyPatch)
    run(records, killed, **settings)
    last = f"model.ckpt-{STEPS}"
    assert_same_bytes(tensors(killed / last), tensors(whole / last))


@pytest.mark.slow
def test_xla_compiles_the_whole_step_or_element_wise_work(
    records, tmp_path, compiled, monkeypatch
):
    monkeypatch.setattr(choose, "compiling_pays_off", lambda *_: True)
    run(records, tmp_path, do_eval=False, xla=True, num_train_steps=1)
    assert not compiled


def test_weights_moved_between_checkpoints(whole):
    before, after = tensors(whole / "model.ckpt-4"), tensors(whole / "model.ckpt-6")
    for name, value in after.items():
        if not name.startswith("training/"):
            assert not np.array_equal(before[name], value), name


def test_metrics_of_a_continued_run_have_each_row_once(whole, continued):
    rows = metrics(whole)
    steps = [(row["step"], "eval_loss" in row) for row in rows]
    training = [(step, False) for step in range(1, STEPS + 1)]
    assert sorted(steps) == sorted([*training, (2, True), (4, True), (6, True)])
    assert metrics(continued) == rows


def test_rows_tell_losses_accuracies_rate_and_norm(whole):
    row = metrics(whole)[0]
    names = {"loss", "gradient_norm", "learning_rate", "step"}
    names |= {"skipped_updates", "skipped_in_row"}
    names |= {
        f"{task}_{kind}"
        for task in ("masked_lm", "next_sentence")
        for kind in ("loss", "accuracy")
    }
    assert set(row) == names
    assert row["learning_rate"] == 0.0
    rates = [row["learning_rate"] for row in metrics(whole) if "loss" in row]
    # The original's schedule: warm-up over 2 steps, then decay to 0 over all 6.
    expected = [0, 1 / 2, 4 / 6, 3 / 6, 2 / 6, 1 / 6]
    np.testing.assert_allclose(rates, [5e-3 * share for share in expected], rtol=1e-6)


def test_output_is_a_model_directory(whole):
    names = {path.name for path in whole.iterdir()}
    assert {
        "bert_config.json",
        "bert_model.ckpt.index",
        "bert_model.ckpt.data-00000-of-00001",
        "vocab.txt",
        "tokenizer_config.json",
        "eval_results.txt",
        "metrics.jsonl",
        "checkpoint",
    } <= names
    assert not [name for name in names if ".tmp" in name]
    last = tensors(whole / f"model.ckpt-{STEPS}")
    for name, value in tensors(whole / "bert_model.ckpt").items():
        assert not name.startswith("training/")
        assert not name.endswith(("adam_m", "adam_v", "global_step"))
        np.testing.assert_array_equal(value, last[name])
    bert = official_bert.load(str(whole))
    assert bert.config == MINI_CONFIG
    assert json.loads((whole / "tokenizer_config.json").read_text()) == {
        "do_lower_case": True
    }


def results(directory):
    lines = (directory / "eval_results.txt").read_text().splitlines()
    return {key: float(value) for key, value in (line.split(" = ") for line in lines)}


def by_hand(model, batch_size, most=None):
    """Return the original's metrics over the first or all mini records, in numpy."""
    records = (mini_records(0) + mini_records(1))[:most]
    totals, batch_losses = np.zeros(4), []
    for start in range(0, len(records), batch_size):
        features = stacked(records[start : start + batch_size])
        outputs = {k: np.float64(v) for k, v in model(features).items()}
        terms = []
        for logits, labels, weights in (
            (
                outputs["masked_lm_logits"].reshape(-1, MINI_CONFIG.vocab_size),
                features["masked_lm_ids"].reshape(-1),
                features["masked_lm_weights"].reshape(-1),
            ),
            (
                outputs["next_sentence_logits"],
                features["next_sentence_labels"].reshape(-1),
                np.ones(len(features["input_ids"])),
            ),
        ):
            log_sums = np.log(np.exp(logits).sum(-1))
            losses = log_sums - logits[np.arange(len(labels)), labels]
            hits = logits.argmax(-1) == labels
            terms.append(
                [(weights * losses).sum(), (weights * hits).sum(), weights.sum()]
            )
        (mlm, mlm_hits, words), (nsp, nsp_hits, rows) = terms
        batch_losses.append(mlm / (words + 1e-5) + nsp / rows)
        totals += [mlm, mlm_hits, nsp, nsp_hits]
    words = sum(sum(record["masked_lm_weights"]) for record in records)
    return {
        "global_step": STEPS,
        "loss": np.mean(batch_losses),
        "masked_lm_accuracy": totals[1] / words,
        "masked_lm_loss": totals[0] / words,
        "next_sentence_accuracy": totals[3] / len(records),
        "next_sentence_loss": totals[2] / len(records),
    }


def test_eval_results_by_hand(whole):
    """41 records in batches of 16: the last batch has 9."""
    expected = by_hand(official_bert.load(str(whole)).model, 16)
    found = results(whole)
    assert list(found) == sorted(expected)
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-5), name
    assert metrics(whole)[-1]["eval_masked_lm_loss"] == found["masked_lm_loss"]


def test_so_many_batches_are_evaluated_at_most(whole, records, tmp_path):
    run(
        records,
        tmp_path / "new",
        do_train=False,
        init_checkpoint=str(whole),
        max_eval_steps=2,
    )
    expected = by_hand(official_bert.load(str(whole)).model, 16, 32)
    found = results(tmp_path / "new")
    assert found["loss"] == pytest.approx(expected["loss"], rel=1e-5)
    assert found["loss"] != pytest.approx(results(whole)["loss"], rel=1e-5)


def test_evaluating_alone(whole, records, tmp_path):
    """It works with the run's directory, and with the finished model."""
    shutil.copytree(whole, tmp_path / "copy")
    before = results(whole)
    assert results(run(records, tmp_path / "copy", do_train=False)) == before
    found = run(records, tmp_path / "new", do_train=False, init_checkpoint=str(whole))
    assert results(found) == {**before, "global_step": 0}
    names = {path.name for path in found.iterdir()}
    assert names == {"eval_results.txt"}


def test_evaluating_nothing_is_refused(records, tmp_path):
    with pytest.raises(UserError, match="no checkpoint to evaluate"):
        run(records, tmp_path / "new", do_train=False)


def test_a_finished_run_started_again_changes_nothing(whole, records, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(whole, copy)
    run(records, copy)
    assert metrics(copy) == metrics(whole)
    assert results(copy) == results(whole)
    ours, theirs = tensors(copy / "bert_model.ckpt"), tensors(whole / "bert_model.ckpt")
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name], value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 12}, "seed 11, and now it is 12"),
        ({"learning_rate": 1e-4}, "learning_rate 0.005, and now it is 0.0001"),
        ({"num_train_steps": 20}, "num_train_steps 6, and now it is 20"),
        ({"train_batch_size": 8}, "train_batch_size 16, and now it is 8"),
        (
            {"config": dataclasses.replace(MINI_CONFIG, num_attention_heads=4)},
            "bert_config: num_attention_heads 2, and now it is 4",
        ),
    ],
)
def test_continuing_with_other_settings_is_refused(whole, records, change, words):
    before = {path.name: path.stat().st_mtime_ns for path in whole.iterdir()}
    with pytest.raises(UserError) as caught:
        run(records, whole, **change)
    assert words in str(caught.value) and "--output_dir" in str(caught.value)
    assert {path.name: path.stat().st_mtime_ns for path in whole.iterdir()} == before


def test_batch_larger_than_the_data(records, tmp_path):
    with pytest.raises(UserError, match="batch size 42 is larger .* has 41 records"):
        run(records, tmp_path / "new", train_batch_size=42)
    assert not list((tmp_path / "new").glob("model.ckpt*"))


@pytest.mark.parametrize("eval_only", [slow(True), False])
def test_bad_ids_are_found_in_either_set(records, tmp_path, eval_only):
    values = mini_records()
    values[17]["masked_lm_ids"][0] = 128
    path = record_files.write(tmp_path / "bad.tfrecord", values)
    bad = open_record_set(path, MINI_CONFIG)
    sets = {"records": records, "eval_set": bad} if eval_only else {"records": bad}
    with pytest.raises(UserError) as caught:
        run(directory=tmp_path / "out", **sets)
    words = f"{path} record 17: masked_lm_ids is 128"
    assert words in str(caught.value)
    assert "vocab_size is 128" in str(caught.value)


def test_a_damaged_record_is_found_while_training(tmp_path):
    path = record_files.write(tmp_path / "a.tfrecord", mini_records())
    data = bytearray((tmp_path / "a.tfrecord").read_bytes())
    data[len(data) - 20] ^= 0xFF
    (tmp_path / "a.tfrecord").write_bytes(data)
    with pytest.raises(UserError, match="a.tfrecord: record 20 is damaged"):
        run(open_record_set(path, MINI_CONFIG), tmp_path / "out")


@pytest.mark.slow
def test_the_loss_falls_below_what_no_context_gives(records, tmp_path):
    config = dataclasses.replace(MINI_CONFIG, hidden_size=32, intermediate_size=64)
    entropy, share = records.label_statistics()
    directory = run(
        records,
        tmp_path / "out",
        config,
        num_train_steps=150,
        num_warmup_steps=15,
        save_checkpoints_steps=150,
        iterations_per_loop=50,
        train_batch_size=32,
        learning_rate=1e-2,
    )
    found = results(directory)
    assert found["masked_lm_loss"] < entropy - 1
    assert found["masked_lm_accuracy"] > 2 * share
    first = metrics(directory)[0]["masked_lm_loss"]
    assert found["masked_lm_loss"] < first < math.log(128) + 0.2
    assert metrics(directory)[-1]["eval_unigram_entropy"] == entropy


@pytest.mark.slow
def test_what_no_context_gives_is_told_of_the_right_data(records, tmp_path):
    """The entropy is that of training tokens, the share that of held-out tokens."""
    held_out = record_files.write(tmp_path / "held_out.tfrecord", mini_records()[:5])
    eval_set = open_record_set(str(held_out), MINI_CONFIG)
    directory = run(records, tmp_path / "run", eval_set=eval_set, num_train_steps=2)
    row = metrics(directory)[-1]
    assert row["eval_unigram_entropy"] == records.label_statistics()[0]
    assert row["eval_most_frequent_share"] == eval_set.label_statistics()[1]
    assert records.label_statistics() != eval_set.label_statistics()


@pytest.mark.slow
def test_without_padding_the_loss_is_the_same(records, tmp_path):
    """All steps are compared, because each begins with the result of the one before."""
    config = dataclasses.replace(
        MINI_CONFIG, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    losses = {}
    for skip_padding in (False, True):
        directory = tmp_path / str(skip_padding)
        run(records, directory, config, do_eval=False, skip_padding=skip_padding)
        rows = map(json.loads, (directory / "metrics.jsonl").open())
        losses[skip_padding] = [row["loss"] for row in rows if "learning_rate" in row]
    assert len(losses[True]) == STEPS
    np.testing.assert_allclose(losses[True], losses[False], rtol=1e-5)


def test_padding_is_skipped_where_shapes_may_vary(records, tmp_path, monkeypatch):
    seen = []

    def train(*args, request):
        seen.append(args[-1].pack is not None)

    monkeypatch.setattr(pretraining.loop, "train", train)
    run(records, tmp_path / "as it comes", do_eval=False)
    run(records, tmp_path / "asked for", do_eval=False, skip_padding=True)
    run(records, tmp_path / "not wanted", do_eval=False, skip_padding=False)
    run(records, tmp_path / "compiled", do_eval=False, xla=True)
    assert seen == [True, True, False, False]


def test_xla_cannot_skip_padding(records, tmp_path):
    with pytest.raises(UserError, match="--skip_padding .* XLA"):
        run(records, tmp_path, skip_padding=True, xla=True)


@pytest.mark.slow
def test_a_run_goes_on_with_the_padding_it_began_with(records, tmp_path):
    run(records, tmp_path, do_eval=False, stop_at_step=2)
    with pytest.raises(UserError, match="skip_padding"):
        run(records, tmp_path, do_eval=False, skip_padding=False)
