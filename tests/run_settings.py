"""What short runs of any kind are told, as arguments of `runs.RunSettings`."""

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
    "per_replica_update": False,
    "allow_changed_settings": False,
}
