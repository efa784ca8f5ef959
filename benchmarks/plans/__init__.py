"""The table of accelerators: training steps compiled for TPUs, ours and KerasHub's."""
