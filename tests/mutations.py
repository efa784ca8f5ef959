"""Break the code on purpose, one change at a time, and check that tests fail.

    python tests/mutations.py [NUMBER ...]

Each change is made in a copy of the checkout. Only the tests named with the change run
there. The script prints the first test that failed. The exit status is the number of
changes that no test detected.
"""

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from places import ROOT

COPIED = (
    "official_bert",
    "ports",
    "run_scripts",
    "configs",
    "tests",
    "benchmarks",
    "docs",
)
COPIED_FILES = (
    "LICENSE",
    "pyproject.toml",
    "README.md",
    "requirements.txt",
    "Makefile",
)


@dataclasses.dataclass(frozen=True)
class Break:
    """A change that makes the code wrong, and the tests that must detect it.

    Attributes:
      what: description for people.
      file: path below `official_bert`.
      right: the correct code, which occurs once.
      wrong: the replacement.
      tests: files or folders in `tests`.
    """

    what: str
    file: str
    right: str
    wrong: str
    tests: str


BREAKS = [
    Break(
        "the rest of a different zip file is appended to an old part",
        "checkpoints/hub/links.py",
        'f"bytes={size}-", "If-Range": before}',
        'f"bytes={size}-"}',
        "checkpoints/hub/test_links.py",
    ),
    Break(
        "a run's fingerprint contains the name of a cache folder",
        "training/runs.py",
        "if name := name_in_cache(path):",
        "if name := name_in_cache(path) and None:",
        "training/test_run_manifest.py",
    ),
    Break(
        "attention reads padding",
        "modeling/transformer.py",
        "return (1.0 - visible) * masked_score",
        "return 0.0 * (1.0 - visible) * masked_score",
        "modeling/test_encoder.py modeling/test_original_activations.py",
    ),
    Break(
        "scores are not divided by the root of the head size",
        "modeling/transformer.py",
        "return 1.0 / math.sqrt(query.shape[-1])",
        "return 1.0 / query.shape[-1]",
        "modeling/test_original_activations.py",
    ),
    Break(
        "a left-to-right model sees the next token",
        "modeling/transformer.py",
        "before = positions[tf.newaxis, :] <= positions[:, tf.newaxis]",
        "before = positions[tf.newaxis, :] <= positions[:, tf.newaxis] + 1",
        "modeling/test_left_to_right.py",
    ),
    Break(
        "packed sequences see each other",
        "modeling/transformer.py",
        "visible = tf.cast(queries == keys, tf.float32)",
        "visible = tf.cast((queries > 0) == (keys > 0), tf.float32)",
        "modeling/test_packed_batches.py",
    ),
    Break(
        "packed sequences have the positions of their row",
        "modeling/encoder.py",
        'position_ids=inputs.get("position_ids")',
        "position_ids=None",
        "modeling/test_packed_batches.py",
    ),
    Break(
        "an empty slot of a packed row counts as a sequence",
        "modeling/pretraining.py",
        "losses, hits = weights * losses, weights * hits",
        "hits = weights * hits",
        "modeling/test_packed_batches.py",
    ),
    Break(
        "rows are packed with too many masked words",
        "data/packed_rows.py",
        "if masked[free[at][1]] + words <= self.max_predictions:",
        "if words <= self.max_predictions:",
        "data/test_packed_rows.py",
    ),
    Break(
        "masked positions of packed sequences are not shifted to the row",
        "data/packed_rows.py",
        "tf.boolean_mask(starts, held)[:, tf.newaxis]",
        "0",
        "data/test_packed_rows.py",
    ),
    Break(
        "a run without --pack resumes with --pack",
        "training/pretraining.py",
        "if records.packing:",
        "if False:",
        "training/test_packed_runs.py",
    ),
    Break(
        "positions begin at 1",
        "modeling/embeddings.py",
        "tf.convert_to_tensor(self.position_embeddings)[:length]",
        "tf.roll(tf.convert_to_tensor(self.position_embeddings), -1, 0)[:length]",
        "modeling/test_original_activations.py",
    ),
    Break(
        "the pooler reads the second token",
        "modeling/encoder.py",
        "return x[:, 0]",
        "return x[:, 1]",
        "modeling/test_original_activations.py",
    ),
    Break(
        "the gradient of LayerNorm omits the mean",
        "modeling/kernels/gradients.py",
        "d_x = d_normal - tf.reduce_mean(d_normal, axis=-1, keepdims=True)",
        "d_x = d_normal",
        "modeling/test_layers.py",
    ),
    Break(
        "all segment ids of a pair are 0",
        "tokenization/model_inputs.py",
        "[0] * len(first) + [1] * len(second)",
        "[0] * len(first) + [0] * len(second)",
        "tasks/classifier/test_classifier_features.py",
    ),
    Break(
        "the shorter text of a pair is cut",
        "tokenization/model_inputs.py",
        "if length_a > length_b:",
        "if length_a < length_b:",
        "fine_tuning/test_windows.py",
    ),
    Break(
        "15 % is rounded up",
        "data/masking.py",
        "int(round(num_tokens * masked_lm_prob))",
        "int(num_tokens * masked_lm_prob + 0.5)",
        "data/test_masking.py",
    ),
    Break(
        "random tokens never include the last token of the vocabulary",
        "data/masking.py",
        "pick = rng.randint(0, len(vocab.vocab_ids) - 1)",
        "pick = rng.randint(0, len(vocab.vocab_ids) - 2)",
        "data/test_masking.py data/test_instances.py",
    ),
    Break(
        "sentences that a random B left unused are lost",
        "data/instances.py",
        "        start = a_end if is_random_next else end\n",
        "        start = end\n",
        "data/test_instances.py",
    ),
    Break(
        "the next-sentence label is inverted",
        "data/instances.py",
        "TrainingInstance(tokens, num_segment_a, positions, labels, is_random_next)",
        "TrainingInstance(\n"
        "        tokens, num_segment_a, positions, labels, not is_random_next\n    )",
        "data/test_instances.py",
    ),
    Break(
        "pairs are cut only at their ends",
        "data/instances.py",
        "        if rng.random() < 0.5:\n            starts[longer] += 1",
        "        if rng.random() < 0:\n            starts[longer] += 1",
        "data/test_instances.py",
    ),
    Break(
        "the decay starts after the warm-up",
        "training/schedule.py",
        "done = tf.minimum(step, self.num_train_steps) / self.num_train_steps",
        "late = tf.maximum(step - self.num_warmup_steps, 0)\n"
        "        done = late / (self.num_train_steps - self.num_warmup_steps)",
        "training/test_schedule.py",
    ),
    Break(
        "weight decay applies to biases",
        "training/optimizer.py",
        'EXCLUDE_FROM_WEIGHT_DECAY = ("LayerNorm", "layer_norm", "bias")',
        'EXCLUDE_FROM_WEIGHT_DECAY = ("LayerNorm", "layer_norm")',
        "training/test_optimizer.py",
    ),
    Break(
        "Adam's bias correction is on",
        "training/optimizer.py",
        "if self.bias_correction:",
        "if not self.bias_correction:",
        "training/test_optimizer.py",
    ),
    Break(
        "each replica clips separately",
        "training/step.py",
        "    if settings.per_replica_update:\n        gradients, _ = tf.clip_by",
        "    if True:\n        gradients, _ = tf.clip_by",
        "training/test_devices.py",
    ),
    Break(
        "micro-batches have the same dropout masks",
        "training/step.py",
        "own = seed + tf.stack([tf.constant(0, tf.int64), offset])",
        "own = seed + 0 * offset",
        "training/test_split_updates.py",
    ),
    Break(
        "replicas have the same dropout masks",
        "training/step.py",
        "tf.cast(replica, tf.int64) * REPLICA",
        "tf.cast(replica, tf.int64) * 0",
        "training/test_step.py",
    ),
    Break(
        "in a tie, the last window has maximal context",
        "fine_tuning/windows.py",
        "better = score > best_score[inside]",
        "better = score >= best_score[inside]",
        "fine_tuning/test_windows.py",
    ),
    Break(
        "an answer may be one token too long",
        "tasks/squad/answers.py",
        "(lengths >= 1) & (lengths <= decoding.max_answer_length)",
        "(lengths >= 1) & (lengths <= decoding.max_answer_length + 1)",
        "tasks/squad/test_squad_answers.py",
    ),
    Break(
        "the null score is the highest of the windows",
        "tasks/squad/answers.py",
        "null = min(pairs, key=sum, default=(0.0, 0.0))",
        "null = max(pairs, key=sum, default=(0.0, 0.0))",
        "tasks/squad/test_squad_answers.py",
    ),
    Break(
        "an answer partly outside a window counts as inside",
        "tasks/squad/features.py",
        "if start < span.start or end >= span.start + span.length:",
        "if start < span.start or end > span.start + span.length:",
        "tasks/squad/test_squad_features.py",
    ),
    Break(
        "the last of several answers inside a word is used",
        "tasks/squad/features.py",
        "for first in range(start, end - length + 2):",
        "for first in range(end - length + 1, start - 1, -1):",
        "tasks/squad/test_squad_features.py",
    ),
    Break(
        "an answer is not searched for at the end of a word",
        "tasks/squad/features.py",
        "for first in range(start, end - length + 2):",
        "for first in range(start, end - length + 1):",
        "tasks/squad/test_squad_features.py",
    ),
    Break(
        "an answer may start where another window has more context",
        "tasks/squad/answers.py",
        "    starts = starts[feature.token_is_max_context[starts]]\n",
        "    starts = starts[feature.token_to_orig_map[starts] >= 0]\n",
        "tasks/squad/test_squad_answers.py",
    ),
    Break(
        "a threshold of 0 is kept although no answer scores best",
        "metrics/squad.py",
        "best_score, best_threshold = score, na_probs[ids[0]] - 1.0",
        "best_score, best_threshold = score, 0.0",
        "tasks/squad/test_squad.py metrics/test_squad_metrics.py",
    ),
    Break(
        "questions with equal null odds are treated differently",
        "metrics/squad.py",
        "for threshold, of_equal in itertools.groupby(ids, key=na_probs.__getitem__):",
        "for threshold, of_equal in [(na_probs[one], [one]) for one in ids]:",
        "tasks/squad/test_squad.py",
    ),
    Break(
        "IOB1 is read as if it were IOB2",
        "tasks/ner/conll.py",
        "entities.convert_tags([cells[-1] for _, cells in rows], IOB2)",
        "[cells[-1] for _, cells in rows]",
        "tasks/ner/test_ner_files.py",
    ),
    Break(
        "the last WordPiece token of a word has the label",
        "tasks/ner/features.py",
        "firsts.append(len(ids))",
        "firsts.append(len(ids) + len(word_ids) - 1)",
        "tasks/ner/test_ner_features.py",
    ),
    Break(
        "SWAG's endings lack the second sentence",
        "tasks/choice/files.py",
        'tuple(f"{start} {text}" for _, text in endings)',
        "tuple(text for _, text in endings)",
        "tasks/choice/test_choice_files.py",
    ),
    Break(
        "texts with the same meaning are negatives",
        "modeling/embedding/losses.py",
        "counts = tf.concat([own | ~same, is_negative], 1)",
        "counts = tf.concat([own | True, is_negative], 1)",
        "modeling/embedding/test_embedding_losses.py",
    ),
    Break(
        "a device reads other devices' vectors at its own rows",
        "training/gradients/joint.py",
        "around = [[before, after]]",
        "around = [[after, before]]",
        "training/test_joint_gradients.py",
    ),
    Break(
        "the second pass has different dropout masks",
        "training/gradients/joint.py",
        "part_of(features, number), seed_of(number), lambda _: (own, None)",
        "part_of(features, number), seed_of(number + 1), lambda _: (own, None)",
        "training/test_joint_gradients.py",
    ),
    Break(
        "missing choices take part",
        "modeling/multiple_choice.py",
        "tf.where(is_there, logits, NO_CHOICE)",
        "logits",
        "tasks/choice/test_choice.py modeling/test_multiple_choice.py",
    ),
    Break(
        "articles count in SQuAD's scores",
        "metrics/squad.py",
        r'_ARTICLES = re.compile(r"\b(a|an|the)\b")',
        r'_ARTICLES = re.compile(r"\b(a|an)\b")',
        "metrics/test_squad_metrics.py",
    ),
    Break(
        "an entity continues although its type changes",
        "metrics/entities.py",
        'letter in "BS" or before in "OES" or label != label_before',
        'letter in "BS" or before in "OES"',
        "metrics/test_entities.py",
    ),
    Break(
        "F1 is computed for class 0",
        "metrics/glue.py",
        "hits = np.sum((labels == 1) & (predictions == 1))",
        "hits = np.sum((labels == 0) & (predictions == 0))",
        "metrics/test_glue_metrics.py",
    ),
    Break(
        "rows of GLUE in TFDS are not put in GLUE's order",
        "tasks/glue/tfds.py",
        'key=lambda row: row["idx"]',
        'key=lambda row: -row["idx"]',
        "tasks/glue/test_glue_tfds.py",
    ),
    Break(
        "a hidden label of a dataset becomes its last class",
        "tables/dataset_tables.py",
        'feature.names[value] if value >= 0 else ""',
        "feature.names[value]",
        "tables/test_dataset_tables.py",
    ),
    Break(
        "a continuation token is looked up without ##",
        "tokenization/wordpiece.py",
        "            if start:\n                piece = CONTINUATION + piece\n",
        "",
        "tokenization/test_wordpiece.py",
    ),
    Break(
        "words of 200 characters are too long",
        "tokenization/wordpiece.py",
        "if len(word) > self.max_input_chars_per_word:",
        "if len(word) >= self.max_input_chars_per_word:",
        "tokenization/test_wordpiece.py",
    ),
    Break(
        "sequences per second include evaluations",
        "training/loop.py",
        "meter.leave_out(time.monotonic() - pause)",
        "meter.leave_out(0.0)",
        "training/test_patience.py",
    ),
    Break(
        "an infinite score is the best",
        "training/saving.py",
        "if value is None or not math.isfinite(value):",
        "if value is None:",
        "training/test_saving.py",
    ),
    Break(
        "a key similar to a known one is rejected",
        "config.py",
        "if close and close[0] not in values:",
        "if close:",
        "test_config.py",
    ),
    Break(
        "fine-tuning has no warm-up",
        "command_line/fine_tuning_flags.py",
        "num_warmup_steps=int(num_train_steps * FLAGS.warmup_proportion),",
        "num_warmup_steps=0,",
        "commands/test_run_classifier.py",
    ),
    Break(
        "run.json records a flag under all of its names",
        "command_line/flag_values.py",
        "return [flag for flag in found if not flag.help.startswith(_ALIAS_HELP)]",
        "return found",
        "commands/test_flag_values.py",
    ),
    Break(
        "an installed package looks for data next to itself",
        "command_line/flag_values.py",
        "is_ours = IS_CHECKOUT or ",
        "is_ours = True or ",
        "commands/test_flag_values.py",
    ),
    Break(
        "clipping is forgotten",
        "training/step.py",
        "return CLIP_NORM * tf.minimum(1.0 / norm, 1.0 / CLIP_NORM)",
        "return tf.ones([])",
        "training/test_step.py",
    ),
    Break(
        "a tar file may write outside of its folder",
        "checkpoints/archive.py",
        '= {} if path.endswith(".zip") else {"filter": "data"}',
        "= {}",
        "checkpoints/test_any_format.py",
    ),
    Break(
        "a checkpoint's name reaches the disk before its contents",
        "checkpoints/google.py",
        "os.fsync(written.fileno())",
        "written.flush()",
        "checkpoints/test_google.py",
    ),
    Break(
        "ablations evaluate on the training text",
        "ablations/steps.py",
        "study.eval_input_file",
        "study.input_file",
        "ablations/test_ablation_steps.py",
    ),
    Break(
        "encoded text is reused with a different vocabulary",
        "engines/corpus_encoding.py",
        'del made_with["vocab_file"]',
        'del made_with["vocab_file"], made_with["vocab_sha256"]',
        "engines/test_parallel_data.py",
    ),
    Break(
        "a grid rejects its own different numbers of training steps",
        "fine_tuning/sweep.py",
        'if known.get("num_train_steps") == fixed["num_train_steps"]:',
        "if True:",
        "fine_tuning/test_sweep.py",
    ),
    Break(
        "a moved model is left next to old weights",
        "fine_tuning/sweep.py",
        "google.delete_checkpoint(os.path.join(target, names.MODEL_PREFIX))",
        "pass",
        "fine_tuning/test_sweep.py",
    ),
    Break(
        "corrected labels do not change the run's fingerprint",
        "tasks/classifier/training.py",
        "(one.input_ids, one.segment_ids, np.array(one.label_id))",
        "(one.input_ids, one.segment_ids)",
        "tasks/classifier/test_classifier.py",
    ),
    Break(
        "an incomplete version is not tried again",
        "serving/model_versions.py",
        "states.add((path, status.st_size, status.st_mtime_ns))",
        "states.add(path)",
        "serving/test_model_versions.py",
    ),
    Break(
        "a worker stops an evaluation that others continue",
        "training/loop.py",
        "lambda: bool(self.request) and not together",
        "lambda: bool(self.request)",
        "training/test_patience.py",
    ),
    Break(
        "a model for pairs is exported for single texts",
        "export/saved_model/exports.py",
        "return task.columns.text_b is not None",
        "return False",
        "export/saved_model/test_saved_model.py",
    ),
    Break(
        "shapes on a TPU depend on the data",
        "training/runs.py",
        "return settings.step.xla or strategies.is_tpu(strategy)",
        "return settings.step.xla",
        "training/test_runs.py",
    ),
    Break(
        "the gradient of GELU has a wrong constant",
        "modeling/kernels/gradients.py",
        "1.0 + 3.0 * 0.044715 * square",
        "1.0 + 2.0 * 0.044715 * square",
        "modeling/kernels/test_gradients.py",
    ),
    Break(
        "the gradient of erf GELU has a wrong width",
        "modeling/kernels/gradients.py",
        "tf.exp(-0.5 * (x * x))",
        "tf.exp(-(x * x))",
        "modeling/kernels/test_gradients.py",
    ),
    Break(
        "the gradient of LayerNorm omits the scale",
        "modeling/kernels/gradients.py",
        "scale * (d_x - normal * along)",
        "scale * d_x",
        "modeling/kernels/test_gradients.py",
    ),
    Break(
        "hashed dropout does not scale the kept values",
        "modeling/kernels/hashed_dropout.py",
        "scale = 2**32 / (2**32 - threshold)",
        "scale = 1.0",
        "modeling/test_dropout.py",
    ),
    Break(
        "hashed dropout ignores half of its key",
        "modeling/kernels/hashed_dropout.py",
        "h = tf.bitwise.bitwise_xor(h, key[1])",
        "h = tf.bitwise.bitwise_xor(h, key[0])",
        "modeling/test_dropout.py",
    ),
    Break(
        "groups of texts share their dropout masks",
        "modeling/kernels/packing.py",
        "index = dropout_index + number * GROUP_INDICES",
        "index = dropout_index",
        "modeling/kernels/test_packing.py",
    ),
    Break(
        "padding is packed although shapes must not vary",
        "modeling/kernels/choose.py",
        "pack=pack if skip_padding else None",
        "pack=pack",
        "training/test_pretraining.py",
    ),
    Break(
        "the head has no dropout in Keras's fit",
        "modeling/classification.py",
        "dropout_seed = self.bert.draw_dropout_seed(training, dropout_seed)",
        "pass",
        "test_public_api.py",
    ),
    Break(
        "JSON records take values of any type",
        "json_records.py",
        "if kind is float or type(value) is not kind:",
        "if kind is float:",
        "test_json_records.py",
    ),
    Break(
        "a batch of pairs is one token too long",
        "tokenization/full.py",
        "room = max_seq_length - (3 if ids_b else 2)",
        "room = max_seq_length - 2",
        "test_public_api.py",
    ),
    Break(
        "records have the checksum without its mask",
        "data/records/tfrecord.py",
        "(rotated + _MASK_DELTA) % 2**32",
        "rotated % 2**32",
        "data/records/test_tfrecord.py",
    ),
    Break(
        "the unigram entropy is in bits",
        "data/records/manifest.py",
        "np.log(shares)",
        "np.log2(shares)",
        "data/records/test_manifest.py data/records/test_record_set.py",
    ),
    Break(
        "an exported model cuts the longer text at the wrong token",
        "export/saved_model/rows.py",
        "(room + 1) // 2",
        "room // 2",
        "export/saved_model/test_rows.py",
    ),
    Break(
        "REST accepts integers that float32 cannot represent",
        "serving/json_tensors.py",
        "2 ** (info.nmant + 1) - 1",
        "2 ** (info.nmant + 9) - 1",
        "serving/test_rest.py",
    ),
    Break(
        "'U.S.' is two words",
        "tasks/ner/words.py",
        "return within | ends_initial | goes_on",
        "return within | goes_on",
        "tasks/ner/test_ner_words.py",
    ),
    Break(
        "empty cells at the end of a CSV row are not dropped",
        "tables/delimited.py",
        "if not any(cells[width:]):",
        "if False:",
        "tables/test_table_files.py",
    ),
    Break(
        "a column with mostly unique values becomes the label",
        "tables/columns.py",
        "2 <= distinct <= len(cells) / 2",
        "2 <= distinct <= len(cells)",
        "tables",
    ),
    Break(
        "the loss of an evaluation is a sum",
        "training/evaluation.py",
        "sum(losses) / len(losses)",
        "sum(losses)",
        "training/test_pretraining.py",
    ),
    Break(
        "outputs are ordered by length",
        "fine_tuning/outputs.py",
        "rows[number] = {",
        "rows[index] = {",
        "tasks/classifier/test_classifier.py",
    ),
    Break(
        "an older model is used instead of the one just trained",
        "fine_tuning/job.py",
        'and task.get("global_step") == step',
        "",
        "fine_tuning/test_job.py",
    ),
    Break(
        "a TFLite model with a vocabulary names a too old schema",
        "export/tflite/flatbuffer.py",
        '7: "1.1.0" if description.vocabulary else "1.0.0"',
        '7: "1.0.0"',
        "export/tflite/test_flatbuffer.py",
    ),
    Break(
        "padding counts although the step skips it",
        "training/loop.py",
        "kernels.pack is not None",
        "False",
        "training/throughput/test_feed.py",
    ),
    Break(
        "a call of several steps goes beyond a checkpoint",
        "training/loop.py",
        "every = loop.iterations_per_loop, loop.save_checkpoints_steps",
        "every = (loop.iterations_per_loop,)",
        "training/throughput/test_feed.py",
    ),
    Break(
        "each step of a call reads the first batch",
        "training/throughput/train_loop.py",
        "replica_step({name: value[number] for",
        "replica_step({name: value[0 * number] for",
        "training/throughput/test_train_loop.py",
    ),
    Break(
        "the next batch is not fetched ahead",
        "training/throughput/feed.py",
        "coming = thread.submit(next, elements, end)\n                yield element",
        "yield element\n                coming = thread.submit(next, elements, end)",
        "training/throughput/test_feed.py",
    ),
    Break(
        "layer weights count for half of a pass",
        "parameter_count.py",
        "4 * tokens * h * i",
        "2 * tokens * h * i",
        "training/throughput/test_model_flops.py",
    ),
    Break(
        "a plan counts the micro-batches of a step once",
        "training/plans/compiled.py",
        'costs["flops"] * parts',
        'costs["flops"]',
        "training/plans/test_compiled.py",
    ),
    Break(
        "a plan omits results that need separate memory",
        "training/plans/compiled.py",
        'costs["output_bytes"]',
        '0 * costs["output_bytes"]',
        "training/plans/test_compiled.py",
    ),
    Break(
        "the search for flags changes the precision first",
        "training/plans/remedy.py",
        "return changed.precision != work.precision, seconds",
        "return changed.precision == work.precision, seconds",
        "training/plans/test_remedy.py",
    ),
    Break(
        "estimates leave out Adam's moments",
        "training/plans/estimate.py",
        "(WEIGHT_BYTES + MOMENT_BYTES) * work.num_weights",
        "WEIGHT_BYTES * work.num_weights",
        "training/plans/test_plan_estimate.py",
    ),
]


def main(numbers):
    """Make the changes with these numbers; return how many no test detected."""
    unnoticed = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder, "checkout")
        _copy(copy)
        for number in numbers:
            failed = _first_failure(copy, BREAKS[number - 1])
            unnoticed += failed is None
            told = failed or "NO TEST FAILED"
            print(f"{number:2} {BREAKS[number - 1].what}: {told}", flush=True)
    return unnoticed


def _copy(copy):
    copy.mkdir()
    for name in COPIED:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, copy / name, ignore=ignored)
    for name in COPIED_FILES:
        shutil.copy(ROOT / name, copy / name)
    if (ROOT.parent / "shared").exists():
        (copy.parent / "shared").symlink_to(ROOT.parent / "shared")


def _first_failure(copy, one):
    """Return the first test that fails with a change, or None."""
    path = copy / "official_bert" / one.file
    text = path.read_text("utf-8")
    if text.count(one.right) != 1:
        raise SystemExit(f"{one.file} must contain this exactly once: {one.right}")
    path.write_text(text.replace(one.right, one.wrong), "utf-8")
    tests = [f"tests/{name}" for name in one.tests.split()]
    command = [sys.executable, "-m", "pytest", "-xq", "-p", "no:cacheprovider"]
    command += ["-m", "not slow"]
    done = subprocess.run(
        [*command, *tests],
        cwd=copy,
        env={**os.environ, "TMPDIR": str(copy.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    path.write_text(text, "utf-8")
    if not done.returncode:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (.*?)(?: - |$)", done.stdout, re.MULTILINE)
    if not failed:
        raise SystemExit(f"pytest failed otherwise:\n{done.stdout[-3000:]}")
    return failed.group(1)


if __name__ == "__main__":
    sys.exit(main([int(a) for a in sys.argv[1:]] or range(1, len(BREAKS) + 1)))
