"""The comparisons of the yardstick: the work, its variants, and the targets."""

import dataclasses

from benchmarks import workload
from benchmarks.yardstick import preparation
from benchmarks.yardstick.processes import Variant
from benchmarks.yardstick.targets import (
    OURS,
    PRODUCT,
    Ceiling,
    Memory,
    Rate,
    Seconds,
    Speed,
)
from official_bert.config import BertConfig
from official_bert.parameter_count import encoder_flops, training_flops

KERAS_HUB, KERAS_HUB_JIT = "KerasHub", "KerasHub jit"
# TensorFlow's default on processors without AVX-512 VNNI.
KERAS_HUB_PLAIN = "KerasHub without oneDNN"
PYTORCH, PYTORCH_GATHERED = "PyTorch", "PyTorch gathered"
WITH_PADDING, PRODUCTS = "ours --noskip_padding", "its products alone"
ONNX, RUST = "ONNX Runtime", "Rust tokenizers"
KERAS_HUBS = (KERAS_HUB, KERAS_HUB_JIT)
# Modules of `benchmarks`.
PYTORCH_MODULE, ONNX_MODULE = "peers.pytorch.speed", "peers.onnx_runtime"
KERAS_HUB_MODULE, RUST_MODULE = "peers.kerashub", "peers.rust"
# Measured with the original's script, at 5 duplicates on two cores of a 2.5 GHz
# Xeon.
ORIGINAL_MB_PER_SECOND = 0.094
# Sequence lengths of most training steps.
MIXED = f"{workload.SHORTEST} to {workload.LENGTH}"
BATCHES = {"tiny": 32, "mini": 32, "base": 8}


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A row of the yardstick's table.

    Attributes:
      title: title for readers.
      unit: unit of a call's work, in the plural.
      units: number of units per call.
      variants: list of `Variant`, ours first.
      targets: list of the classes in `targets`.
      flops: operations of the matrix products in one of our calls, or None.
      calls: calls per turn; see `processes.take_turns`.
      is_drawn: whether the chart shows its ratios.
    """

    title: str
    unit: str
    units: float
    variants: list
    targets: list = dataclasses.field(default_factory=list)
    flops: float | None = None
    calls: int = 3
    is_drawn: bool = True


def _ours(function, arguments, name=OURS, flops=None):
    return Variant(name, "ours", function, arguments, flops=flops)


def _product():
    # Many short calls, because it stands for the best speed of the machine.
    return Variant(PRODUCT, "ours", "product", {}, calls=15)


def training(size):
    """Compare pre-training steps of a size."""
    work = _training_work(size)
    # Transformers' model computes the logits of all positions.
    pytorch = [
        Variant(
            name,
            PYTORCH_MODULE,
            "training",
            work | {"gathered": gathered},
            in_peer_env=True,
            flops=_training_flops(size, workload.LENGTH, predictions),
        )
        for name, gathered, predictions in (
            (PYTORCH, False, workload.LENGTH),
            (PYTORCH_GATHERED, True, workload.PREDICTIONS),
        )
    ]
    variants = [*_with_and_without_padding(work), *_keras_hubs(work), *pytorch]
    targets = [_than_keras_hub(size)]
    if size == "base":
        targets.append(Speed((PYTORCH,), 2, PYTORCH))
    return _training_comparison(
        size, f"training step, {BATCHES[size]} × {MIXED}", variants, targets
    )


def full_sequences(size):
    """Compare pre-training steps of a size on sequences without padding."""
    work = _training_work(size, shortest=workload.LENGTH)
    products = _ours("products", _training_work(size), PRODUCTS)
    variants = [*_with_and_without_padding(work), products, *_keras_hubs(work)]
    # The operations of everything that is computed, so the share is exact.
    targets = [Ceiling(0.8)] if size == "base" else []
    return _training_comparison(
        size,
        f"training step, {BATCHES[size]} × {workload.LENGTH}, no padding",
        variants,
        [*targets, _than_keras_hub(size)],
        shortest=workload.LENGTH,
    )


def short_sequences(size, shortest=16):
    """Compare pre-training steps of a size with many short sequences."""
    return _training_comparison(
        size,
        f"training step, {BATCHES[size]} × {shortest} to {workload.LENGTH}",
        _with_and_without_padding(_training_work(size, shortest=shortest)),
        shortest=shortest,
    )


def training_flags(size):
    """Compare pre-training steps of a size with flags of `run_pretraining.py`."""
    work = _training_work(size)
    micro_batch = BATCHES[size] // 4
    settings = {
        "--recompute": {"recompute": True},
        "--precision=bfloat16": {"precision": "bfloat16"},
        f"--micro_batch_size={micro_batch}": {"micro_batch_size": micro_batch},
    }
    xla = _ours("training", work | {"xla": True}, "--xla", _padded_flops(work))
    variants = [
        *_with_and_without_padding(work),
        xla,
        *(_ours("training", work | flags, name) for name, flags in settings.items()),
    ]
    title = f"training step with flags, {BATCHES[size]} × {MIXED}"
    return _training_comparison(size, title, variants, is_drawn=False)


def training_memory():
    """Compare the memory of base's pre-training steps."""
    work = _training_work("base")
    recompute = "ours --recompute"
    variants = [
        _ours("training", work),
        _ours("training", work | {"recompute": True}, recompute),
        _keras_hubs(work)[0],
    ]
    targets = [Memory(OURS, KERAS_HUB, 1), Memory(recompute, OURS, 0.6)]
    title = f"memory of a training step, {BATCHES['base']} × {MIXED}"
    return _training_comparison("base", title, variants, targets)


def _training_work(size, **changes):
    """Return the arguments for a variant's `training`."""
    return {"size": size, "batch": BATCHES[size], **changes}


def _training_flops(size, shortest=workload.SHORTEST, predictions=workload.PREDICTIONS):
    """Return the operations of a size's training step, without padding.

    Args:
      size: name of a released size.
      shortest: see `workload.pretraining_batch`; its length for no padding.
      predictions: number of predicted positions per sequence.
    """
    config = BertConfig.named(size)
    batch = workload.pretraining_batch(config.vocab_size, BATCHES[size], shortest)
    lengths = batch["input_mask"].sum(axis=1)
    return sum(training_flops(config, int(one), predictions) for one in lengths)


def _padded_flops(work):
    return _training_flops(work["size"], workload.LENGTH)


def _with_and_without_padding(work):
    with_padding = work | {"skip_padding": False}
    return [
        _ours("training", work),
        _ours("training", with_padding, WITH_PADDING, _padded_flops(work)),
    ]


def _keras_hubs(work, function="training", default="auto"):
    """Return KerasHub's variants, with its best settings first.

    Args:
      work: arguments of the function.
      function: of `peers.kerashub`.
      default: `jit_compile` where it is not True.
    """
    # All programs of a row are in memory together. With a third one of base, they would
    # need more than 24 GB.
    fits = function != "training" or work["size"] != "base"
    plain = [(KERAS_HUB_PLAIN, default, "0")] if fits else []
    return [
        Variant(
            name,
            KERAS_HUB_MODULE,
            function,
            work | {"jit_compile": jit_compile},
            flops=_padded_flops(work) if function == "training" else None,
            environment={"TF_ENABLE_ONEDNN_OPTS": onednn},
        )
        for name, jit_compile, onednn in (
            (KERAS_HUB, default, "1"),
            (KERAS_HUB_JIT, True, "1"),
            *plain,
        )
    ]


def _than_keras_hub(size):
    return Speed(KERAS_HUBS, 1.4 if size == "base" else 2, "KerasHub's best")


def _training_comparison(
    size, title, variants, targets=(), shortest=workload.SHORTEST, is_drawn=True
):
    return Comparison(
        f"{size}: {title}",
        "sequences",
        BATCHES[size],
        [*variants, _product()],
        list(targets),
        _training_flops(size, shortest),
        is_drawn=is_drawn,
    )


def encoding(batch=16):
    """Compare base's outputs in float32."""
    work = {"size": "base", "batch": batch}
    variants = [
        _ours("encoding", work),
        *_keras_hubs(work, "encoding", default=False),
        Variant(PYTORCH, PYTORCH_MODULE, "encoding", work, in_peer_env=True),
        Variant(ONNX, ONNX_MODULE, "encoding", work, in_peer_env=True),
        _product(),
    ]
    return Comparison(
        f"base: outputs in float32, {batch} × {workload.LENGTH}",
        "sequences",
        batch,
        variants,
        [Ceiling(0.9), Speed((ONNX,), 1, ONNX)],
        batch * encoder_flops(BertConfig.named("base"), workload.LENGTH),
    )


def int8(vocab_file):
    """Compare base in 8 bits, one sequence at a time."""
    work = {"size": "base", "vocab_file": vocab_file}
    plain, onnx = ".tflite float32", f"{ONNX} int8"
    onnx_work = {"size": "base", "batch": 1, "quantized": True}
    variants = [
        _ours("tflite", work | {"quantization": "int8"}),
        _ours("tflite", work | {"quantization": "float32"}, plain),
        Variant(onnx, ONNX_MODULE, "encoding", onnx_work, in_peer_env=True),
    ]
    targets = [Speed((plain,), 2, plain), Speed((onnx,), 1, onnx)]
    title = f"base: .tflite of 8 bits, 1 × {workload.LENGTH}"
    # Without operations, because the product uses float32.
    return Comparison(title, "sequences", 1, variants, targets)


def _encoder_flops_of(texts, length=None):
    """Return the operations of MiniLM's outputs for texts.

    Args:
      texts: path; see `workload.read_texts`.
      length: padded length; None for the texts' own lengths.
    """
    config = BertConfig.from_dict(preparation.MINILM)
    lengths = [length or len(ids) for ids, _, _ in workload.read_texts(texts)]
    return sum(encoder_flops(config, tokens) for tokens in lengths)


def fine_tuning(task_name, data_dir, vocab_file, folder, batch=32, num_batches=4):
    """Compare training steps on a task's own texts."""
    texts, num_outputs = preparation.glue_texts(
        task_name, data_dir, vocab_file, folder, batch * num_batches
    )
    work = {
        "config": preparation.MINILM,
        "texts": texts,
        "batch": batch,
        "num_outputs": num_outputs,
    }
    padded = f"padded to {workload.LENGTH}"
    padded_flops = 3 * _encoder_flops_of(texts, workload.LENGTH)
    variants = [
        _ours("fine_tuning", work),
        _ours("fine_tuning", work | {"padded": True}, padded, padded_flops),
        Variant(PYTORCH, PYTORCH_MODULE, "fine_tuning", work, in_peer_env=True),
        _product(),
    ]
    targets = [Speed((PYTORCH,), 1.5, PYTORCH)]
    if task_name in ("cola", "mrpc"):
        targets = [Speed((padded,), 2.5, padded), Speed((PYTORCH,), 2, PYTORCH)]
    return Comparison(
        f"{task_name.upper()}: fine-tuning MiniLM, {num_batches} batches of {batch}",
        "sequences",
        batch * num_batches,
        variants,
        targets,
        3 * _encoder_flops_of(texts),
        calls=1,
    )


def squad(squad_file, vocab_file, folder, num_questions=60, batch=16):
    """Compare predictions for SQuAD's windows."""
    texts, count = preparation.squad_windows(
        squad_file, vocab_file, folder, num_questions
    )
    work = {"config": preparation.MINILM, "texts": texts, "batch": batch}
    padded = f"padded to {preparation.WINDOW}"
    padded_flops = _encoder_flops_of(texts, preparation.WINDOW)
    to_window = work | {"padded_to": preparation.WINDOW}
    return Comparison(
        f"SQuAD: MiniLM on windows of {preparation.WINDOW}/{preparation.STRIDE}",
        "windows",
        count,
        [
            _ours("windows", work),
            _ours("windows", to_window, padded, padded_flops),
            _product(),
        ],
        [Speed((padded,), 1.3, padded)],
        _encoder_flops_of(texts),
        calls=1,
    )


def tokenization(text_file, vocab_file, folder):
    """Compare tokenizers."""
    path, megabytes = preparation.first_lines(text_file, folder, "tokens.txt", 12.0)
    work = {"lines_file": path, "vocab_file": vocab_file}
    variants = [
        _ours("tokenization", work | {"seen": False}),
        _ours("tokenization", work | {"seen": True}, "ours, again"),
        Variant(RUST, RUST_MODULE, "tokenization", work),
    ]
    targets = [Speed((RUST,), 2, RUST)]
    title = "tokenization, one thread, text not seen before"
    return Comparison(title, "MB", megabytes, variants, targets, calls=1)


def instances(text_file, vocab_file, folder, dupe_factor=5):
    """Measure instance creation in the exact mode."""
    path, megabytes = preparation.first_lines(text_file, folder, "instances.txt", 2.0)
    work = {"lines_file": path, "vocab_file": vocab_file, "dupe_factor": dupe_factor}
    title = f"instances, one process, exact mode, {dupe_factor} duplicates"
    targets = [Rate(8 * ORIGINAL_MB_PER_SECOND, "MB")]
    variants = [_ours("instances", work)]
    return Comparison(title, "MB", megabytes, variants, targets, calls=1)


def input_pipeline(text_file, vocab_file, folder, batch=32, count=20):
    """Compare reading batches with the training steps that use them."""
    records = preparation.records(text_file, vocab_file, folder)
    work = {"records": records, "batch": batch, "count": count}
    updates = "tiny's updates"
    return Comparison(
        f"input pipeline, {count} batches of {batch} × {workload.LENGTH}",
        "sequences",
        batch * count,
        [_ours("batches", work), _ours("updates", work, updates)],
        [Speed((updates,), 10, updates)],
        calls=1,
        is_drawn=False,
    )


def help_texts():
    """Measure the time of run scripts to print their `--help`."""
    scripts = ["run_pretraining.py", "run_classifier.py", "run_squad.py", "predict.py"]
    variants = [
        _ours("help_text", {"script": script}, name)
        for name, script in zip([OURS, *scripts[1:]], scripts, strict=True)
    ]
    title = f"to --help: {', '.join(scripts)}"
    return Comparison(title, "scripts", 1, variants, [Seconds(1.5)], is_drawn=False)
