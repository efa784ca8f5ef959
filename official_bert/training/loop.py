"""The training loop, and the evaluation that goes with it."""

import dataclasses
import time

import tensorflow as tf

from official_bert.errors import UserError
from official_bert.training import saving
from official_bert.training.logs import Meter, RunLog
from official_bert.training.reports import WEIGHT, weighted_means
from official_bert.training.step import make_eval_step, make_train_step


@dataclasses.dataclass(frozen=True)
class LoopSettings:
    """How long a run is and when it does what.

    Attributes:
      num_train_steps: the last update's number.
      save_checkpoints_steps: updates between two checkpoints.
      log_steps: updates between two log lines.
      batch_size: sequences per update, on all replicas together.
      seed: of dropout.
    """

    num_train_steps: int
    save_checkpoints_steps: int
    log_steps: int
    batch_size: int
    seed: int


def train(
    strategy, model, optimizer, objective, batches_from, settings, directory, evaluate
):
    """Train until `num_train_steps`, continuing what the directory holds.

    Args:
      strategy: a `tf.distribute` strategy; model and optimizer were made in
        its scope.
      model: a Keras model with Google's names.
      optimizer: a built `BertAdam`.
      objective: `step.Objective`.
      batches_from: function: k -> `tf.data.Dataset` of whole batches from
        batch k on.
      settings: `LoopSettings`.
      directory: where checkpoints and logs go.
      evaluate: function of no arguments that returns a row of held-out
        metrics, called at each checkpoint; or None.

    Returns:
      the last step.
    """
    step = saving.restore_state(directory, model, optimizer)
    if step:
        done = "is done" if step >= settings.num_train_steps else "goes on"
        print(f"The run in {directory} {done} at step {step}.", flush=True)
    if step >= settings.num_train_steps:
        return step
    train_step = make_train_step(strategy, model, optimizer, objective, settings.seed)
    batches = iter(batches_from(step))
    meter = Meter()
    with RunLog(directory, settings.num_train_steps, step) as log:
        while step < settings.num_train_steps:
            meter.add(train_step(split(strategy, next(batches))))
            step += 1
            log.step()
            last = step == settings.num_train_steps
            if step % settings.log_steps == 0 or last:
                log.training(step, meter.means(settings.batch_size))
            if step % settings.save_checkpoints_steps == 0 or last:
                pause = time.monotonic()
                saving.save_state(directory, model, optimizer)
                if evaluate is not None:
                    log.evaluation(step, evaluate())
                meter.leave_out(time.monotonic() - pause)
    return step


def make_evaluate(strategy, model, objective, batches):
    """Return a function that evaluates a model on a finite data set.

    Args:
      strategy: a `tf.distribute` strategy.
      model: a Keras model.
      objective: `step.Objective`.
      batches: `tf.data.Dataset` of whole batches.

    Returns:
      function of no arguments -> dict: the weighted mean of each term over
      all batches, and `loss`, the mean over batches of the batch's total
      loss, as the original reports it.
    """
    eval_step = make_eval_step(strategy, model, objective)

    def evaluate():
        reports = [
            {name: float(value) for name, value in report.items()}
            for report in (eval_step(split(strategy, batch)) for batch in batches)
        ]
        losses = [_total_loss(objective, report) for report in reports]
        return {"loss": sum(losses) / len(losses), **weighted_means(reports)}

    return evaluate


def _total_loss(objective, report):
    return sum(
        report[name] / (report[name + WEIGHT] + added)
        for name, added in objective.losses.items()
    )


def split(strategy, batch):
    """Give each replica its share of a batch's rows.

    The shares are as even as they can be; the update does not depend on how
    rows are shared, since all denominators are of the whole batch.

    Args:
      strategy: a `tf.distribute` strategy.
      batch: dict of tensors [B, ...].

    Returns:
      the same dict of per-replica tensors.
    """
    replicas = strategy.num_replicas_in_sync
    if replicas == 1:
        return batch

    def share(context):
        index = context.replica_id_in_sync_group
        return {
            name: value[
                len(value) * index // replicas : len(value) * (index + 1) // replicas
            ]
            for name, value in batch.items()
        }

    return strategy.experimental_distribute_values_from_function(share)


def one_or_all_devices(num_devices):
    """Return a strategy: one device, or `MirroredStrategy` over several GPUs.

    Args:
      num_devices: how many; 0 for all GPUs, or the CPU where there is none.
    """
    gpus = [device.name for device in tf.config.list_logical_devices("GPU")]
    cpus = [device.name for device in tf.config.list_logical_devices("CPU")]
    devices = gpus or cpus
    wanted = num_devices or max(len(gpus), 1)
    if wanted == 1:
        return tf.distribute.get_strategy()
    if wanted > len(devices):
        raise UserError(
            f"--num_devices is {wanted}, but TensorFlow sees {len(devices)}: "
            f"{', '.join(devices)}."
        )
    return tf.distribute.MirroredStrategy(devices[:wanted])
