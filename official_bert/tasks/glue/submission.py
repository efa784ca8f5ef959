"""Write predictions: the original's `test_results.tsv`, and the GLUE server's files.

The server accepts only one zip archive with the files of all 11 test sets, even if
only one score is of interest.
"""

import os
import zipfile

import numpy as np

from official_bert import files
from official_bert.errors import UserError
from official_bert.tasks.glue.tasks import TASKS, GlueTask

ARCHIVE = "submission.zip"
_SERVER_FILES = [task.submission for task in TASKS.values() if task.submission]


def write_test_results(path: str | os.PathLike[str], outputs: np.ndarray) -> None:
    """Write a row per example and a column per class, as `run_classifier.py` does.

    Args:
      path: the file, `test_results.tsv` in the original.
      outputs: float32 [N, C], probabilities of the classes; for regression the
        numbers, [N, 1] or [N].
    """
    outputs = np.asarray(outputs, np.float32)
    rows = outputs[:, None] if outputs.ndim == 1 else outputs
    files.write_text(path, "".join("\t".join(map(str, row)) + "\n" for row in rows))


def write_submission(
    directory: str | os.PathLike[str], task: GlueTask, predictions: np.ndarray
) -> str:
    """Write one task's file for the GLUE server.

    Args:
      directory: existing folder for the file.
      task: `GlueTask` with a `submission`.
      predictions: for each row of the test set, in order, the number of a class,
        int [N], or for regression the number, float [N].

    Returns:
      path of the file. Each row has `index` and `prediction`: the class name, or a
      number with three decimal places, limited to the task's range.

    Raises:
      ValueError: a number is nan.
    """
    assert task.submission is not None
    path = os.path.join(directory, task.submission)
    if not task.label_range:
        answers = [task.labels[number] for number in predictions]
    elif np.isnan(predictions).any():
        raise ValueError(f"A predicted score of {task.name} is nan.")
    else:
        scores = np.clip(predictions, *task.label_range)
        answers = [f"{score:.3f}" for score in scores]
    rows = [f"{index}\t{answer}\n" for index, answer in enumerate(answers)]
    files.write_text(path, "index\tprediction\n" + "".join(rows))
    return path


def missing_submissions(directory: str | os.PathLike[str]) -> list[str]:
    """Return the names of the server's files that a folder does not contain yet."""
    paths = {name: os.path.join(directory, name) for name in _SERVER_FILES}
    return [name for name, path in paths.items() if not files.is_file(path)]


def zip_submission(directory: str | os.PathLike[str]) -> str:
    """Put the files of all tasks, and no others, into one archive.

    Args:
      directory: the folder with the files of `write_submission`.

    Returns:
      path of the archive, `ARCHIVE` in the folder.

    Raises:
      UserError: files of tasks are missing. The message lists them.
    """
    missing = missing_submissions(directory)
    if missing:
        raise UserError(
            f"{directory} lacks {', '.join(missing)}. The server scores only complete "
            "submissions, so predict these tasks too."
        )
    path = os.path.join(directory, ARCHIVE)
    with (
        files.atomic_path(path) as temporary,
        zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name in _SERVER_FILES:
            with files.opened(os.path.join(directory, name)) as source:
                archive.writestr(name, source.read())
    return path
