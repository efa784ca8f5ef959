"""Settings of short runs: of any run, and of a tiny model's fine-tuning."""

import dataclasses

import tiny_model

from official_bert.fine_tuning.job import FineTuningSettings, Start
from official_bert.tokenization.full import FullTokenizer

# Flags of every run.
RUN = {
    "output_dir": "",
    "init_checkpoint": None,
    "continue_from": None,
    "train_batch_size": 16,
    "micro_batch_size": 0,
    "optimizer": "adam",
    "bias_correction": False,
    "early_stopping_patience": None,
    "stop_at_step": None,
    "max_skipped_updates": 3,
    "precision": "float32",
    "xla": False,
    "recompute": False,
    "deterministic": False,
    "per_replica_update": False,
    "allow_changed_settings": False,
}

# Flags of `FineTuningSettings`.
FINE_TUNING = {
    **RUN,
    "learning_rate": 3e-3,
    "num_train_steps": 60,
    "num_warmup_steps": 6,
    "save_checkpoints_steps": 20,
    "keep_checkpoint_max": 1,
    "iterations_per_loop": 10,
    "seed": 3,
    "eval_batch_size": 8,
    "pad_to_max_seq_length": False,
}


def make(settings_class, **flags):
    """Return settings with these flags, each in its group."""
    values, rest = {}, dict(flags)
    _fill(settings_class, values, rest)
    assert not rest, f"no settings: {sorted(rest)}"
    return settings_class(**values)


def _fill(settings_class, values, rest):
    for field in dataclasses.fields(settings_class):
        if dataclasses.is_dataclass(field.type):
            group = {}
            _fill(field.type, group, rest)
            values[field.name] = field.type(**group)
        elif field.name in rest:
            values[field.name] = rest.pop(field.name)


def fine_tuning_settings(**changes):
    """Return `FineTuningSettings`: those of `FINE_TUNING`, with changes."""
    return make(FineTuningSettings, **{**FINE_TUNING, **changes})


def changed(settings, **changes):
    """Return the same settings with other flags, in any group."""
    return make(type(settings), **{**flat(settings), **changes})


def flat(settings):
    """Return settings as a dict of flags."""
    values = {}
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        is_group = dataclasses.is_dataclass(value)
        values |= flat(value) if is_group else {field.name: value}
    return values


def start_of(config=tiny_model.MINI_CONFIG):
    """Return the initial state of a fine-tuning of the tiny model."""
    return Start(config, FullTokenizer(tiny_model.VOCAB, True), str(tiny_model.VOCAB))
