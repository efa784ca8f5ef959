"""Print the settings that fine-tuning flags give, for each line of standard input.

Reads JSON lists of flags. Writes the list of the trials' (settings, epochs), or the
message of a `UserError`. Nothing is trained.
"""

import dataclasses
import json
import sys

from absl import flags

from official_bert.command_line import fine_tuning_flags
from official_bert.errors import UserError


def trials(arguments, num_examples):
    flags.FLAGS.unparse_flags()
    for name in flags.FLAGS:
        flags.FLAGS[name].unparse()
    flags.FLAGS(["settings", "--output_dir=out", *arguments])
    try:
        return [
            (dataclasses.asdict(trial.settings), trial.num_train_epochs)
            for trial in fine_tuning_flags._trials(num_examples)
        ]
    except UserError as error:
        return str(error)


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(trials(*json.loads(line))))
