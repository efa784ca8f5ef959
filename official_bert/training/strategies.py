"""Which devices train: the `tf.distribute` strategy, and who does what in it."""

import contextlib
import json
import os
from typing import Any

import tensorflow as tf
from absl import logging

from official_bert.constants import STRATEGIES
from official_bert.errors import UserError

# Of a device in one update, see `step.MICRO_BATCH`.
MOST_MICRO_BATCHES = 2**10


def make_strategy(
    name: str = "auto",
    num_devices: int = 0,
    tpu_name: str | None = None,
    tpu_zone: str | None = None,
    gcp_project: str | None = None,
) -> tf.distribute.Strategy:
    """Return the strategy of that name.

    Call it before TensorFlow does anything else: several workers, and a CPU
    that is split into several devices, have to be known when it starts.

    Args:
      name: one of `STRATEGIES`. `auto` is several workers where `TF_CONFIG`
        names them, else all GPUs of this machine, else one device.
      num_devices: of this machine; 0 for all GPUs, or else the CPU. A machine
        without GPUs is split into so many logical devices of its CPU, which
        makes nothing faster, but shows what several devices do.
      tpu_name: name or address of a Cloud TPU; None for that of this machine.
      tpu_zone: its zone, where it is not that of this machine.
      gcp_project: its project likewise.

    Raises:
      UserError: there is no such strategy, or there are no such devices.
    """
    if name not in STRATEGIES:
        raise UserError(f"--strategy is {name!r}: give one of {', '.join(STRATEGIES)}.")
    if name == "auto":
        gpus = len(tf.config.list_physical_devices("GPU"))
        name = "mirrored" if (num_devices or gpus) > 1 else "one_device"
        if len(_workers(os.environ.get("TF_CONFIG"))) > 1:
            name = "multi_worker"
    if name == "tpu":
        return _tpu_strategy(tpu_name, tpu_zone, gcp_project)
    if name == "multi_worker":
        return _multi_worker_strategy(num_devices)
    if name == "one_device":
        if num_devices > 1:
            raise UserError(
                f"--num_devices is {num_devices}, but --strategy=one_device; "
                "give --strategy=mirrored."
            )
        return tf.distribute.get_strategy()
    return tf.distribute.MirroredStrategy(_local_devices(num_devices))


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process writes the run's files: only one of all workers."""
    return worker_number(strategy) == 0


def is_multi_worker(strategy: tf.distribute.Strategy) -> bool:
    """Whether several processes train together."""
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


def is_tpu(strategy: tf.distribute.Strategy) -> bool:
    """Whether the strategy trains on TPUs, for which XLA compiles every step."""
    return isinstance(strategy, tf.distribute.TPUStrategy)


def worker_number(strategy: tf.distribute.Strategy) -> int:
    """Return this process' number among the workers, the chief's being 0."""
    if not is_multi_worker(strategy):
        return 0
    resolver = strategy.cluster_resolver
    chiefs = len(resolver.cluster_spec().as_dict().get("chief", []))
    is_worker = resolver.task_type == "worker"
    return resolver.task_id + (chiefs if is_worker else 0)


def local_replicas(strategy: tf.distribute.Strategy) -> list[int]:
    """Return the numbers of the replicas that this process feeds."""
    if strategy.num_replicas_in_sync == 1:
        return [0]
    numbers: list[int] = []

    def note(context):
        numbers.append(context.replica_id_in_sync_group)
        return tf.constant(0)

    strategy.experimental_distribute_values_from_function(note)
    return numbers


def share_of(rows: int, replica: int, replicas: int) -> tuple[int, int]:
    """Return (start, stop) of a replica's rows of a batch, as even as can be."""
    return rows * replica // replicas, rows * (replica + 1) // replicas


def local_rows(strategy: tf.distribute.Strategy, batch_size: int) -> tuple[int, int]:
    """Return (start, stop) of the rows of each batch that this process needs."""
    numbers, replicas = local_replicas(strategy), strategy.num_replicas_in_sync
    start, _ = share_of(batch_size, numbers[0], replicas)
    _, stop = share_of(batch_size, numbers[-1], replicas)
    return start, stop


def distribute(
    strategy: tf.distribute.Strategy,
    batch: dict[str, tf.Tensor],
    batch_size: int | None = None,
    first_row: int = 0,
    rows_axis: int = 0,
    copies: bool = False,
) -> dict[str, Any]:
    """Give each replica its share of a batch's rows.

    Args:
      strategy: a `tf.distribute` strategy.
      batch: dict of tensors: scalars, which every replica gets, and [rows, …].
      batch_size: rows of the whole batch, where `batch` holds only those that
        this process needs.
      first_row: the whole batch's row that `batch` starts with.
      rows_axis: the axis of the rows; 1 for several batches [K, rows, …].
      copies: whether each share is copied to its replica's device now. If not, the
        step copies it. Integers on a GPU are int64, since TensorFlow takes int32
        arguments of a function from the host's memory (`step` narrows them).

    Returns:
      the same dict of per-replica tensors.
    """
    replicas = strategy.num_replicas_in_sync
    devices = replica_devices(strategy) if copies else None
    if replicas == 1:
        return copied(batch, devices[0]) if devices else batch
    if batch_size is None:
        batch_size = len(next(value for value in batch.values() if value.shape.rank))
    before = (slice(None),) * rows_axis

    def share(context):
        number = context.replica_id_in_sync_group
        start, stop = share_of(batch_size, number, replicas)
        rows = (*before, slice(start - first_row, stop - first_row))
        own = {
            name: value[rows] if value.shape.rank else value
            for name, value in batch.items()
        }
        return copied(own, devices[number - first]) if devices else own

    first = local_replicas(strategy)[0] if devices else 0
    return strategy.experimental_distribute_values_from_function(share)


def replica_devices(strategy: tf.distribute.Strategy) -> list[str]:
    """Return the names of the devices of the replicas that this process feeds."""
    if strategy is tf.distribute.get_strategy() and not is_tpu(strategy):
        gpus = tf.config.list_logical_devices("GPU")
        return [gpus[0].name if gpus else "/device:CPU:0"]
    return list(strategy.extended.worker_devices)


def copied(tensors: dict[str, tf.Tensor], device: str) -> dict[str, tf.Tensor]:
    """Return copies of a batch's tensors on a device; see `distribute`."""
    is_gpu = "GPU" in device.upper()

    def copy(value):
        if is_gpu and value.dtype == tf.int32:
            with tf.device("/device:CPU:0"):
                value = tf.cast(value, tf.int64)
        with tf.device(device):
            return tf.identity(value)

    return {name: copy(value) for name, value in tensors.items()}


def check_shares(
    strategy: tf.distribute.Strategy, batch_size: int, micro_batch_size: int = 0
) -> None:
    """Raise `UserError` if a batch cannot be shared out as it should be.

    Args:
      strategy: a `tf.distribute` strategy.
      batch_size: sequences per update, over all replicas.
      micro_batch_size: sequences that a replica handles at once; 0 for all.
    """
    check_split(
        strategy.num_replicas_in_sync, batch_size, micro_batch_size, is_tpu(strategy)
    )


def check_split(
    replicas: int, batch_size: int, micro_batch_size: int, must_be_even: bool
) -> None:
    """Raise `UserError` if a batch cannot be shared out among N replicas.

    Args:
      replicas: N.
      batch_size: see `check_shares`.
      micro_batch_size: see `check_shares`.
      must_be_even: whether all shares must be equal, as on TPUs.
    """
    share, rest = divmod(batch_size, replicas)
    if batch_size < replicas:
        raise UserError(
            f"--train_batch_size={batch_size} is less than one sequence for each of "
            f"{replicas} devices; give a larger one."
        )
    if rest and (micro_batch_size or must_be_even):
        raise UserError(
            f"--train_batch_size={batch_size} is no multiple of the {replicas} "
            f"devices; give {batch_size - rest} or {batch_size - rest + replicas}."
        )
    if micro_batch_size and share % micro_batch_size:
        raise UserError(
            f"--micro_batch_size={micro_batch_size} does not divide the {share} "
            "sequences that each device has in an update "
            f"(--train_batch_size={batch_size} on {replicas} device(s))."
        )
    if micro_batch_size and share // micro_batch_size > MOST_MICRO_BATCHES:
        raise UserError(
            f"--micro_batch_size={micro_batch_size} makes {share // micro_batch_size} "
            f"parts of each device's {share} sequences, and dropout tells "
            f"{MOST_MICRO_BATCHES} apart; give a larger one."
        )


def from_chief(strategy: tf.distribute.Strategy, number: int) -> int:
    """Return the chief's number (int) on every worker; all have to call it."""
    if not is_multi_worker(strategy):
        return number
    mine = local_replicas(strategy)[0] == 0

    def of_replica(context):
        is_first = mine and context.replica_id_in_sync_group == 0
        return tf.constant(number if is_first else 0, tf.int64)

    @tf.function
    def total(values):
        return strategy.reduce("SUM", strategy.run(tf.identity, (values,)), axis=None)

    return int(total(strategy.experimental_distribute_values_from_function(of_replica)))


def end_together(strategy: tf.distribute.Strategy) -> None:
    """Wait for all workers a last time, lest one leaves while another still waits.

    The second time some may be gone; but then all have left the first.
    """
    from_chief(strategy, 0)
    with contextlib.suppress(tf.errors.OpError):
        from_chief(strategy, 0)


def _local_devices(num_devices):
    """Return the names of the devices to use, GPUs if there are any."""
    gpus = tf.config.list_physical_devices("GPU")
    if gpus and num_devices > len(gpus):
        raise UserError(
            f"--num_devices is {num_devices}, but this machine has {len(gpus)} GPUs."
        )
    if gpus:
        return [f"GPU:{number}" for number in range(num_devices or len(gpus))]
    count = num_devices or 1
    logging.warning(
        "TensorFlow sees no GPU: this is %s, which makes nothing faster; "
        "run_scripts/doctor.py tells what is here.",
        f"the CPU as {count} devices" if count > 1 else "the CPU",
    )
    if count > 1:
        cpu = tf.config.list_physical_devices("CPU")[0]
        logical = [tf.config.LogicalDeviceConfiguration() for _ in range(count)]
        try:
            tf.config.set_logical_device_configuration(cpu, logical)
        except RuntimeError as error:
            started = len(tf.config.list_logical_devices("CPU"))
            if started < count:
                raise UserError(
                    f"--num_devices is {count}, but TensorFlow has already started "
                    f"with {started} CPU device(s)."
                ) from error
    return [f"CPU:{number}" for number in range(count)]


EXAMPLE = (
    '\'{"cluster": {"worker": ["host0:2222", "host1:2222"]}, '
    '"task": {"type": "worker", "index": 0}}\''
)


def _workers(tf_config):
    """Return the addresses of the workers that `TF_CONFIG` names."""
    if not tf_config:
        return []
    try:
        config = json.loads(tf_config)
        cluster, task = config.get("cluster", {}), config.get("task", {})
        addresses = [*cluster.get("chief", []), *cluster.get("worker", [])]
        if addresses and int(task["index"]) not in range(len(cluster[task["type"]])):
            raise IndexError(f"no {task['type']} {task['index']}")
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserError(
            f"TF_CONFIG is {tf_config!r}, which names no worker of a cluster "
            f"({type(error).__name__}: {error}); it looks like {EXAMPLE}."
        ) from error
    return addresses


def _multi_worker_strategy(num_devices):
    workers = _workers(os.environ.get("TF_CONFIG"))
    if not workers:
        raise UserError(
            "--strategy=multi_worker needs the environment variable TF_CONFIG on "
            f"each worker, for example {EXAMPLE} on the first."
        )
    gpus = tf.config.list_physical_devices("GPU")
    if num_devices > max(len(gpus), 1):
        raise UserError(
            f"--num_devices is {num_devices}, but this worker has {len(gpus)} GPUs; "
            "several workers do not split their CPUs."
        )
    if gpus and num_devices:
        tf.config.set_visible_devices(gpus[:num_devices], "GPU")
    print(f"Waiting for all {len(workers)} workers: {', '.join(workers)}.", flush=True)
    return tf.distribute.MultiWorkerMirroredStrategy()


def _tpu_strategy(tpu_name, tpu_zone, gcp_project):
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
            tpu_name or "local", zone=tpu_zone, project=gcp_project
        )
        if tpu_name not in (None, "local"):
            tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        return tf.distribute.TPUStrategy(resolver)
    except (tf.errors.OpError, ValueError, RuntimeError, OSError, ImportError) as error:
        # TensorFlow's reason names operations and devices that no user knows.
        if tpu_name in (None, "local"):
            raise UserError(
                "--use_tpu, or --strategy=tpu: TensorFlow finds no free TPU on this "
                "machine. Leave the flag out to use a GPU or the CPU, name another "
                "TPU with --tpu_name, or install tensorflow-tpu on a TPU VM "
                "(docs/pretraining.md)."
            ) from error
        raise UserError(
            f"--tpu_name: no TPU answers as {tpu_name}. Check the name, --tpu_zone and "
            "--gcp_project, and that cloud-tpu-client is installed "
            "(docs/pretraining.md)."
        ) from error
