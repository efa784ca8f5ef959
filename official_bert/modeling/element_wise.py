"""Element-wise work of training in few passes over memory.

TensorFlow's CPU runtime makes a pass of its own for each operation of GELU, dropout
or LayerNorm; XLA makes one or two of all. Matrix products stay outside: oneDNN's are
faster than XLA's. What XLA compiles is for one shape, so each new one costs a moment.
"""

import contextlib
import contextvars
import functools

import tensorflow as tf

# A run of this many tokens x layers x hidden size saves more than compiling takes.
LEAST_WORK = 10**9

_IS_ON = contextvars.ContextVar("element_wise_work_is_compiled", default=False)


def pays_off(config, precision, num_tokens):
    """Return whether a training run gains from `compiled`.

    Args:
      config: `BertConfig`.
      precision: name, see `training.precision`.
      num_tokens: of all updates of the run.
    """
    work = num_tokens * config.num_hidden_layers * config.hidden_size
    devices = {device.device_type for device in tf.config.list_logical_devices()}
    return work >= LEAST_WORK and precision == "float32" and devices == {"CPU"}


@contextlib.contextmanager
def compiled(is_on=True):
    """Let XLA compile the `in_one_pass` functions that are traced meanwhile.

    Args:
      is_on: False lets TensorFlow run their operations one by one again.
    """
    token = _IS_ON.set(is_on)
    try:
        yield
    finally:
        _IS_ON.reset(token)


def is_compiled():
    """Return whether `in_one_pass` functions are compiled now."""
    return _IS_ON.get()


def in_one_pass(function):
    """Decorate a function whose work is element-wise; see `compiled`.

    Compiled, it is computed a second time for its gradient, from its arguments:
    that takes less than writing and reading what lies between.

    Args:
      function: (float32 or integer tensors, keyword settings) -> tensors.

    Returns:
      the function, with a gradient for its float32 tensors.
    """

    @functools.wraps(function)
    def call(*tensors, **settings):
        if not _IS_ON.get():
            return function(*tensors, **settings)
        return _compiled(function, **settings)(*tensors)

    return call


@functools.cache
def _compiled(function, **settings):
    """Return the compiled function: the same for all layers, which share its code."""
    compile_ = functools.partial(tf.function, jit_compile=True, autograph=False)

    def once(*tensors):
        # What it calls is compiled with it.
        with compiled(False):
            return function(*tensors, **settings)

    forward = compile_(once)

    @compile_
    def backward(tensors, upstream):
        floats = [one for one in tensors if one.dtype.is_floating]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(floats)
            outputs = tf.nest.flatten(once(*tensors))
        return tape.gradient(outputs, floats, output_gradients=upstream)

    @tf.custom_gradient
    def compute(*tensors):
        def gradient(*upstream):
            found = iter(backward(tensors, upstream))
            return [next(found) if one.dtype.is_floating else None for one in tensors]

        return forward(*tensors), gradient

    return compute
