"""Names that several modules share; this module imports no TensorFlow.

Commands check their flags with these names before TensorFlow is loaded.
"""

# Every model reads these, int32 [batch, seq] each.
INPUTS = ("input_ids", "input_mask", "segment_ids")
# The label of a token that is not part of the loss: [CLS], [SEP], padding, and
# further WordPiece tokens of a word.
IGNORED = -1

# Names of tasks in `task.json`.
CLASSIFIER, SQUAD, NER = "classifier", "squad", "ner"
MULTIPLE_CHOICE = "multiple_choice"
EMBEDDING = "embedding"

# Losses of sentence embeddings.
INFO_NCE, COSINE, COSENT, SIMCSE = "info_nce", "cosine", "cosent", "simcse"
EMBEDDING_LOSSES = (INFO_NCE, COSINE, COSENT, SIMCSE)

# A text longer than a model reads is cut, or read through overlapping windows.
TRUNCATE, WINDOW = "truncate", "window"
LONG_TEXT = (TRUNCATE, WINDOW)
# How the vectors of a text's tokens become one vector.
POOLINGS = ("mean", "cls", "pooler")
# The rows of Table 7: the layers of a frozen encoder that a BiLSTM reads.
FEATURE_LAYERS = (
    "embeddings",
    "second_to_last",
    "last",
    "weighted_sum_last_four",
    "concat_last_four",
    "weighted_sum_all",
)

STRATEGIES = ("auto", "one_device", "mirrored", "multi_worker", "tpu")
PRECISIONS = ("float32", "bfloat16", "float16")

# Checkpoint formats that can be written.
GOOGLE, HUGGINGFACE, KERAS_HUB = "google", "huggingface", "keras_hub"
CHECKPOINT_FORMATS = (GOOGLE, HUGGINGFACE, KERAS_HUB)

# Number formats of the weights in a `.tflite`; `FULL_INT8` computes in int8, too.
FLOAT32, FLOAT16, INT8, FULL_INT8 = "float32", "float16", "int8", "full_int8"
QUANTIZATIONS = (FLOAT32, FLOAT16, INT8, FULL_INT8)
