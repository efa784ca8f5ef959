"""Workloads and slices for several tests of plans."""

from official_bert.config import BertConfig
from official_bert.training.plans.chips import parse_topology
from official_bert.training.plans.workload import Workload

SLICE = parse_topology("v5e:2x2")
LARGE = BertConfig.named("large")
# Weights and moments of 4 GB, and activations of tens of GB.
TOO_LARGE = Workload(LARGE, 64, 512, 77, "float32")
TINY = Workload(BertConfig.named("tiny"), 8, 32, 4, "bfloat16")
