"""The operations of a function after TensorFlow has optimized its graph."""

import tensorflow as tf
from tensorflow.python.eager import context


def operations(function, *inputs):
    """Return the operation types of a function of tensors, a set of str."""
    context.context().enable_graph_collection()
    try:
        tf.function(function, autograph=False)(*inputs)
        graphs = context.export_run_metadata().partition_graphs
    finally:
        context.context().disable_graph_collection()
    return {node.op for graph in graphs for node in graph.node}
