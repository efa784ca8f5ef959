"""Runs `run_pretraining.py` and pauses it while it writes a file.

    python paused_run.py STAGE STEP MARKER --bert_config_file=… …

At STAGE (one of `STAGES`) of writing the checkpoint of STEP, it writes the file MARKER
and waits to be killed. The command's code is unchanged: the functions that write files
are replaced before it starts.
"""

import dataclasses
import functools
import os
import pathlib
import re
import runpy
import sys
import time

SCRIPT = pathlib.Path(__file__).parents[2] / "run_scripts" / "run_pretraining.py"


@dataclasses.dataclass(frozen=True)
class Stage:
    """The moment of a pause: before or after a call of a function.

    Attributes:
      function: "save" (`SaveV2`), "replace" (`os.replace`) or "remove".
      when: "before" or "after".
      path: pattern of the file's path, with `{step}` for the step.
      indexed: whether to wait until the step's checkpoint has its index.
    """

    function: str
    when: str
    path: str
    indexed: bool = False


STAGES = {
    "nothing written": Stage("save", "before", r"/model\.ckpt-{step}\.tmp\."),
    "SaveV2 done": Stage("save", "after", r"/model\.ckpt-{step}\.tmp\."),
    "data but no index": Stage("replace", "before", r"/model\.ckpt-{step}\.index$"),
    "data and index": Stage("replace", "after", r"/model\.ckpt-{step}\.index$"),
    "old one half deleted": Stage("remove", "before", r"/model\.ckpt-\d+\.data", True),
    "old `checkpoint`": Stage("replace", "before", r"/checkpoint$", True),
    "best one not noted": Stage("replace", "before", r"/best_checkpoint\.json$", True),
    "final model, no index": Stage("replace", "before", r"/bert_model\.ckpt\.index$"),
    "log of an earlier run": Stage("replace", "before", r"/metrics\.jsonl$"),
}


def stand_still(marker):
    """Report that the moment has come; wait for a kill, or for the parent's end."""
    parent = os.getppid()
    pathlib.Path(marker).touch()
    while os.getppid() == parent:
        time.sleep(0.1)
    os._exit(1)


def paused(function, path_of, stage, step, marker):
    """Return a function that does the same, but pauses at the stage.

    Args:
      function: the function to call.
      path_of: function of the same arguments that returns the relevant path.
      stage: a `Stage` of that function.
      step: step of the checkpoint.
      marker: the file that reports the pause.
    """
    pattern = re.compile(stage.path.replace("{step}", str(step)))

    def reached(path):
        index = os.path.join(os.path.dirname(path), f"model.ckpt-{step}.index")
        return pattern.search(path) and (os.path.exists(index) or not stage.indexed)

    @functools.wraps(function)
    def call(*args, **kwargs):
        here = reached(str(path_of(*args, **kwargs)))
        if here and stage.when == "before":
            stand_still(marker)
        result = function(*args, **kwargs)
        if here:
            stand_still(marker)
        return result

    return call


def arm(stage, step, marker):
    """Replace the function of the stage."""
    if stage.function == "save":
        import tensorflow as tf

        tf.raw_ops.SaveV2 = paused(
            tf.raw_ops.SaveV2, lambda prefix, **_: prefix, stage, step, marker
        )
    elif stage.function == "replace":
        os.replace = paused(
            os.replace, lambda source, target, **_: target, stage, step, marker
        )
    else:
        remove = paused(os.remove, lambda path, **_: path, stage, step, marker)
        os.remove = os.unlink = remove


def main():
    """Run the command with the remaining arguments."""
    name, step, marker, *flags = sys.argv[1:]
    arm(STAGES[name], int(step), marker)
    sys.argv = [str(SCRIPT), *flags]
    sys.path[0] = str(SCRIPT.parent)
    runpy.run_path(str(SCRIPT), run_name="__main__")


if __name__ == "__main__":
    main()
