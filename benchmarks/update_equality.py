r"""Compare training steps of a fine-tuning with PyTorch's.

    python benchmarks/update_equality.py --model=all-MiniLM-L6-v2 \
        --data_dir=glue_data --draws=400
    python benchmarks/update_equality.py --model=all-MiniLM-L6-v2 \
        --squad_file=train-v1.1.json --train_batch_size=12
    python benchmarks/update_equality.py --model=all-MiniLM-L6-v2 --ner_file=train.txt

Both sides get the same weights, including those of a new head, and the same
batches of MRPC (or of SQuAD, or of tagged words). They run training steps with
bias correction and without dropout, because two libraries cannot share random
numbers. Everything is then equal except float32 rounding, which grows from step
to step. A third run, except for SQuAD, shows the size of this growth: ours with
all batches padded to 128, which rounds differently. The command prints the
losses, and the final distance of the weights.

SQuAD's loss reads the logits of padding, so the embedding of [PAD] has a
gradient. Transformers drops it (`padding_idx`); the comparison ignores this,
unless --keep_padding_idx is given.

With --draws, dropout is compared by its effect: the loss and the gradient's
norm of the first batch, with the weights after our steps, for this number of
masks on each side.
"""

import dataclasses
import json
import pathlib
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
from absl import flags  # noqa: E402

from benchmarks.peers import environment  # noqa: E402
from official_bert.command_line.flag_values import locate, require  # noqa: E402
from official_bert.command_line.program import run  # noqa: E402
from official_bert.command_line.tensorflow_start import start_tensorflow  # noqa: E402
from official_bert.errors import UserError  # noqa: E402

FLAGS = flags.FLAGS

flags.DEFINE_string("model", None, "Hugging Face directory of the weights.")
flags.DEFINE_string(
    "data_dir", None, "Folder that contains the folders of the GLUE tasks."
)
flags.DEFINE_string("task_name", "MRPC", "GLUE task.")
flags.DEFINE_string("squad_file", None, "SQuAD 1.1 file, instead of GLUE.")
flags.DEFINE_string("ner_file", None, "File of tagged words, instead of GLUE.")
flags.DEFINE_bool(
    "keep_padding_idx", False, "Keep [PAD] without a gradient on PyTorch's side."
)
flags.DEFINE_integer("updates", 50, "Training steps to run.", lower_bound=1)
flags.DEFINE_integer(
    "num_train_steps", 343, "Training steps planned in the learning rate schedule."
)
flags.DEFINE_integer("train_batch_size", 32, "Rows per training step.", lower_bound=1)
flags.DEFINE_float("learning_rate", 5e-5, "The peak learning rate.")
flags.DEFINE_integer(
    "draws", 0, "Dropout masks to draw on each side; 0 for none.", lower_bound=0
)
flags.DEFINE_integer("seed", 1, "Seed of the head, the order of rows and the masks.")
flags.DEFINE_string("peer_env", "build/peers", "Folder of PyTorch's environment.")

MAX_SEQ_LENGTH = 128  # Length for GLUE and for tagged words.
SHOWN = (1, 2, 5, 10, 20, 50, 100, 200, 343)


def main():
    """Run the training steps on both sides, and compare them."""
    require("model")
    if sum(map(bool, (FLAGS.data_dir, FLAGS.squad_file, FLAGS.ner_file))) != 1:
        raise UserError("Give exactly one of --data_dir, --squad_file and --ner_file.")
    if FLAGS.draws == 1:
        raise UserError("--draws=1 gives no standard deviation. Use 2 or more, or 0.")
    start_tensorflow()
    from official_bert.checkpoints import any_format

    with (
        tempfile.TemporaryDirectory() as folder,
        any_format.opened(locate(FLAGS.model)) as checkpoint,
    ):
        folder = pathlib.Path(folder)
        job_of = _reader()(checkpoint)
        start, (losses, ours), *padded = _updates(folder, checkpoint, job_of)
        drawn = _draws(folder, checkpoint, job_of(checkpoint.config), ours)
        *theirs, drawn_there = _theirs(folder)
    others = {"PyTorch": theirs}
    if padded:
        others["ours, padded"] = padded[0]
    for number, loss in enumerate(losses, 1):
        if number in SHOWN:
            told = [
                f"{who} {found[number - 1]:.6f}" for who, (found, _) in others.items()
            ]
            print(f"update {number}: loss {loss:.6f}, {', '.join(told)}")
    moved = _distance(ours, start)
    for who, (_, weights) in others.items():
        apart = _distance(ours, weights)
        print(f"after {len(losses)}, {who}: {apart:.1e} apart, moved by {moved:.1e}")
    if FLAGS.draws:
        for who, found in {**drawn, "PyTorch": drawn_there}.items():
            losses, norms = np.transpose(found)
            print(f"dropout, {who}: loss {_told(losses)}, gradient {_told(norms)}")


def _reader():
    """Return the function that reads the data selected by the flags."""
    if FLAGS.squad_file:
        return _squad
    return _ner if FLAGS.ner_file else _glue


def _told(drawn):
    """Return a mean, its standard error and the standard deviation as text."""
    deviation = drawn.std(ddof=1)
    error = deviation / len(drawn) ** 0.5
    return f"{drawn.mean():.5f} ± {error:.5f} (deviation {deviation:.5f})"


def _distance(ones, others):
    """Return the root of the mean square of the differences of all weights.

    Transformers' SQuAD model has no pooler, which would have no gradient there.
    """
    names = ones.keys() & others.keys()
    squares = sum(np.square(ones[name] - others[name]).sum() for name in names)
    return (squares / sum(ones[name].size for name in names)) ** 0.5


def _updates(folder, checkpoint, job_of):
    """Run our training steps without dropout; write start and batches to `folder`.

    Returns:
      name -> weights before; (list of losses, weights after); the same with all
      batches padded to the longest, unless the loss reads padding.
    """
    from official_bert.checkpoints import initialize
    from official_bert.modeling import encoder_model

    before_head = encoder_model.DROPOUT
    encoder_model.DROPOUT = 0.0  # The rate before the head, which no config contains.
    config = dataclasses.replace(
        checkpoint.config, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    )
    job = job_of(config)
    state = _state(job, FLAGS.learning_rate)
    initialize.load_opened(state.model, checkpoint)
    _write(state.model, job, checkpoint, folder / "start")
    start, batches = _weights(state), _batches(job.train_set)
    np.savez(folder / "batches.npz", **_flat(batches))
    runs = [batches]
    if not job.reads_padding:
        runs.append(_batches(job.train_set.of_one_length()))
    found = []
    for each in runs:
        for name, variable in state.weights_and_slots().items():
            variable.assign(start.get(name, np.zeros(variable.shape)))
        state.optimizer.iterations.assign(0)
        reports = _reports(state, job, each)
        found.append(([loss for loss, _ in reports], _weights(state)))
    encoder_model.DROPOUT = before_head
    return start, *found


def _draws(folder, checkpoint, job, weights):
    """Draw --draws masks for the first batch; write `weights` to `folder`.

    Returns:
      who -> list of (loss, gradient's norm).
    """
    # With learning rate 0, the steps do not change the weights.
    state = _state(job, learning_rate=0.0)
    for name, variable in state.weights().items():
        variable.assign(weights[name])
    _write(state.model, job, checkpoint, folder / "trained")
    batches = _batches(job.train_set)[:1] * FLAGS.draws
    found = {}
    for who, is_compiled in (("ours", False), ("ours, compiled", True)):
        # Masks depend on the seed and the step.
        state.optimizer.iterations.assign(0)
        found[who] = _reports(state, job, batches, is_compiled)
    return found


def _write(model, job, checkpoint, directory):
    """Write a model for PyTorch, with the vocabulary of `checkpoint`."""
    from official_bert.checkpoints import model_directory
    from official_bert.checkpoints.huggingface import transformers_model

    directory.mkdir()
    both = model_directory.checkpoint_of(
        model, checkpoint.vocab_file, _tokenizer(checkpoint).do_lower_case
    )
    both = dataclasses.replace(both, config=job.written_config)
    transformers_model.write_model(str(directory), both)


def _tokenizer(checkpoint):
    from official_bert.checkpoints import model_directory

    return model_directory.tokenizer_of(checkpoint, None, None)


def _batches(train_set):
    """Return a dict of arrays for each training step."""
    found = train_set.training_batches(FLAGS.train_batch_size, FLAGS.seed, 0)
    return list(found.take(FLAGS.updates).as_numpy_iterator())


def _glue(checkpoint):
    """Return a function: `BertConfig` -> `FineTuningJob` on --task_name."""
    from official_bert.constants import TRUNCATE
    from official_bert.tasks.classifier import data as classifier_data
    from official_bert.tasks.classifier import features as classifier_features
    from official_bert.tasks.classifier import training as classifier
    from official_bert.tasks.glue.tasks import find_task

    glue_task = find_task(FLAGS.task_name)
    data = classifier_data.read_glue(
        glue_task, FLAGS.data_dir, MAX_SEQ_LENGTH, TRUNCATE, ["train"]
    )
    tokenizer = _tokenizer(checkpoint)
    windows = classifier_features.encode(data.task, data.train, tokenizer)
    features = [one for (one,) in windows]
    start = _start(checkpoint, tokenizer)
    return lambda config: classifier.make_job(start(config), data.task, features)


def _squad(checkpoint):
    """Return a function: `BertConfig` -> `FineTuningJob` on --squad_file."""
    from official_bert.tasks.squad import features as squad_features
    from official_bert.tasks.squad import files as squad_files
    from official_bert.tasks.squad import training as squad

    task, tokenizer = squad.SquadTask(), _tokenizer(checkpoint)
    examples = squad_files.read_examples(
        locate(FLAGS.squad_file), True, flag="--squad_file"
    )
    features = squad_features.convert_examples(examples, tokenizer, *task.lengths)
    start = _start(checkpoint, tokenizer)
    return lambda config: squad.make_job(start(config), task, features)


def _ner(checkpoint):
    """Return a function: `BertConfig` -> `FineTuningJob` on --ner_file."""
    from official_bert.tasks.ner import features as ner_features
    from official_bert.tasks.ner import files as ner_files
    from official_bert.tasks.ner import training as ner

    data = ner_files.read_ner_file(locate(FLAGS.ner_file), flag="--ner_file")
    task = ner.NerTask(ner_features.tag_names(data.labels), MAX_SEQ_LENGTH)
    tokenizer = _tokenizer(checkpoint)
    features = ner.convert(task, data.documents, tokenizer)
    start = _start(checkpoint, tokenizer)
    return lambda config: ner.make_job(start(config), task, features)


def _start(checkpoint, tokenizer):
    """Return a function: `BertConfig` -> initial state of a fine-tuning."""
    from official_bert.fine_tuning.job import Start

    return lambda config: Start(config, tokenizer, checkpoint.vocab_file)


def _flat(batches):
    return {
        f"{number}/{name}": value
        for number, batch in enumerate(batches)
        for name, value in batch.items()
    }


def _state(job, learning_rate):
    """Return a new `saving.State`."""
    import keras

    from official_bert.training.guard import Guard
    from official_bert.training.optimizer import BertAdam
    from official_bert.training.saving import State
    from official_bert.training.schedule import WarmupLinearDecay

    keras.utils.set_random_seed(FLAGS.seed)
    model = job.make_model(False)
    schedule = WarmupLinearDecay(
        learning_rate, FLAGS.num_train_steps, _num_warmup_steps()
    )
    optimizer = BertAdam(schedule, bias_correction=True)
    optimizer.build(model.trainable_variables)
    return State(model, optimizer, Guard())


def _num_warmup_steps():
    return FLAGS.num_train_steps // 10


def _weights(state):
    return {name: weight.numpy() for name, weight in state.weights().items()}


def _reports(state, job, batches, is_compiled=False):
    """Run a training step on each batch; return losses and gradients' norms."""
    import tensorflow as tf

    from official_bert.modeling.kernels.choose import training_kernels
    from official_bert.training.step import StepSettings, make_train_step

    # Like our commands when they skip padding.
    kernels = training_kernels(is_compiled, skip_padding=not job.reads_padding)
    step = make_train_step(
        tf.distribute.get_strategy(),
        state.model,
        state.optimizer,
        state.guard,
        job.objective,
        StepSettings(FLAGS.seed),
        kernels,
    )
    (name,) = job.objective.losses
    found = []
    for batch in batches:
        report = step({key: tf.constant(value) for key, value in batch.items()})
        loss = float(report[name] / report[f"{name}/weight"])
        found.append((loss, float(report["gradient_norm"])))
    return found


def _theirs(folder):
    """Run the same training steps with PyTorch.

    Returns:
      list of losses, name -> weights after, (loss, gradient's norm) of each mask.
    """
    from official_bert.checkpoints import any_format

    schedule = {
        "num_train_steps": FLAGS.num_train_steps,
        "num_warmup_steps": _num_warmup_steps(),
        "learning_rate": FLAGS.learning_rate,
    }
    settings = {
        "schedule": schedule,
        "draws": FLAGS.draws,
        "seed": FLAGS.seed,
        "keep_padding_idx": FLAGS.keep_padding_idx,
    }
    (folder / "settings.json").write_text(json.dumps(settings))
    output = environment.run(FLAGS.peer_env, "pytorch.updates", [folder])
    found = json.loads(output.splitlines()[-1])
    with any_format.opened(str(folder / "end")) as checkpoint:
        return found["losses"], checkpoint.tensors(), found["drawn"]


if __name__ == "__main__":
    run(main)
