"""The real texts for the rows, as files for all variants."""

import os
import random
import subprocess
import sys

from benchmarks import workload

# The shape of all-MiniLM-L6-v2; the values of its weights do not matter here.
MINILM = {
    "vocab_size": 30522,
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
}
WINDOW, STRIDE, QUERY = 384, 128, 64


def _tokenizer(vocab_file):
    from official_bert.tokenization.full import FullTokenizer

    return FullTokenizer(vocab_file, True)


def glue_texts(task_name, data_dir, vocab_file, folder, count):
    """Write randomly drawn texts of a task's training set.

    Returns:
      (path, see `workload.read_texts`; outputs of the task's model: its labels, or 1).
    """
    from official_bert.tasks.classifier import features as classifier_features
    from official_bert.tasks.glue import files as glue_files
    from official_bert.tasks.glue import tasks as glue_tasks

    task = glue_tasks.find_task(task_name)
    examples = glue_files.read_examples(task, data_dir, "train")
    chosen = random.Random(1).sample(examples, count)
    features = classifier_features.convert_examples(
        chosen, _tokenizer(vocab_file), workload.LENGTH, task.labels
    )
    path = os.path.join(folder, f"{task_name}.npz")
    workload.write_texts(
        path, [(one.input_ids, one.segment_ids, one.label_id) for one in features]
    )
    return path, len(task.labels) or 1


def squad_windows(squad_file, vocab_file, folder, num_questions):
    """Write the windows of randomly drawn questions.

    Returns:
      (path, see `workload.read_texts`; number of windows).
    """
    from official_bert.tasks.squad import features as squad_features
    from official_bert.tasks.squad import files as squad_files

    examples = squad_files.read_examples(squad_file, False, False)
    chosen = random.Random(1).sample(examples, num_questions)
    features = squad_features.convert_examples(
        chosen, _tokenizer(vocab_file), WINDOW, STRIDE, QUERY
    )
    path = os.path.join(folder, "squad.npz")
    workload.write_texts(
        path, [(one.input_ids, one.segment_ids, 0) for one in features]
    )
    return path, len(features)


def first_lines(text_file, folder, name, megabytes):
    """Write the first lines of a text; return their path and size in megabytes."""
    with open(text_file, "rb") as text:
        content = text.read(int(megabytes * 1e6))
    content = content[: content.rfind(b"\n") + 1]
    path = os.path.join(folder, name)
    with open(path, "wb") as written:
        written.write(content)
    return path, len(content) / 1e6


def records(text_file, vocab_file, folder):
    """Write the pre-training records of a text's first lines; return their path."""
    lines, _ = first_lines(text_file, folder, "records.txt", 1.0)
    path = os.path.join(folder, "records.tfrecord")
    script = workload.ROOT / "run_scripts" / "create_pretraining_data.py"
    command = [sys.executable, str(script), f"--input_file={lines}"]
    command += [f"--output_file={path}", f"--vocab_file={vocab_file}"]
    subprocess.run(command, check=True, capture_output=True)
    return path
