"""What short runs are told: any, and those that fine-tune a tiny model."""

import tiny_model

# Arguments of `runs.RunSettings`.
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

# Those of `fine_tuning.FineTuningSettings`.
FINE_TUNING = {
    **RUN,
    "learning_rate": 3e-3,
    "num_train_steps": 60,
    "num_warmup_steps": 6,
    "save_checkpoints_steps": 20,
    "keep_checkpoint_max": 1,
    "iterations_per_loop": 10,
    "seed": 3,
    "vocab_file": str(tiny_model.VOCAB),
    "do_lower_case": True,
    "eval_batch_size": 8,
    "pad_to_max_seq_length": False,
}
