"""Define names that several modules share, without importing TensorFlow.

Commands check their flags with these names before TensorFlow is loaded.
"""

# Inputs of every model, each int32 [batch, seq].
INPUTS = ("input_ids", "input_mask", "segment_ids")
# Label of a token that is excluded from the loss: [CLS], [SEP], padding, and all but
# the first WordPiece token of a word.
IGNORED = -1

# Names of tasks in `task.json`.
CLASSIFIER, SQUAD, NER = "classifier", "squad", "ner"
MULTIPLE_CHOICE = "multiple_choice"
EMBEDDING = "embedding"

# Losses of sentence embeddings.
INFO_NCE, COSINE, COSENT, SIMCSE = "info_nce", "cosine", "cosent", "simcse"
EMBEDDING_LOSSES = (INFO_NCE, COSINE, COSENT, SIMCSE)

# Texts longer than the model's maximum are cut, or read in overlapping windows.
TRUNCATE, WINDOW = "truncate", "window"
LONG_TEXT = (TRUNCATE, WINDOW)
# Feature of a training batch: the share of each window in each text's vector.
WINDOW_WEIGHTS = "window_weights"
# Ways to combine the token vectors of a text into one vector.
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

# Operations of the tokenizer in a SavedModel: TensorFlow's own, or also TensorFlow
# Text's for the texts that they split exactly.
CORE_OPS, TF_TEXT_OPS = "core", "tf_text"
TOKENIZER_OPS = (CORE_OPS, TF_TEXT_OPS)

# Number formats of the weights in a `.tflite`. `FULL_INT8` also computes in int8.
FLOAT32, FLOAT16, INT8, FULL_INT8 = "float32", "float16", "int8", "full_int8"
QUANTIZATIONS = (FLOAT32, FLOAT16, INT8, FULL_INT8)
