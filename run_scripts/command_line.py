"""What every run script shares: flags, flag files, errors, `run.json`."""

import importlib.metadata
import os
import pathlib
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The scripts run from a checkout, installed or not.
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))
# TensorFlow's start-up chatter is not for users; its errors are.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from absl import app, flags, logging  # noqa: E402

from official_bert import files  # noqa: E402
from official_bert.errors import UserError  # noqa: E402

VERSIONED = ("tensorflow", "keras", "numpy", "tokenizers", "absl-py")


def run(main):
    """Parse the command line and call `main()`.

    A `UserError` becomes one line on stderr and exit status 1, an unusable
    flag one line and status 2. Ctrl-C ends with status 130 and no traceback.
    """
    app.run(lambda _: _guarded(main), flags_parser=_parse_flags)


def _guarded(main):
    logging.set_verbosity(logging.INFO)
    try:
        return main()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _parse_flags(argv):
    """Parse like absl, with flag files found from anywhere."""
    try:
        rest = flags.FLAGS([_locate_flag_file(arg) for arg in argv])
    except (flags.Error, UserError) as error:
        message = " ".join(str(error).split())
        print(f"error: {message} (--help shows the flags)", file=sys.stderr)
        sys.exit(2)
    if len(rest) > 1:
        print(
            f"error: {rest[1]!r} is not a flag; flags look like --name=value "
            "(--help shows them)",
            file=sys.stderr,
        )
        sys.exit(2)
    return rest


def _locate_flag_file(argument):
    """Resolve `--flagfile=x` against the working directory, then the root."""
    name, separator, value = argument.partition("=")
    if not separator or name.lstrip("-") != "flagfile":
        return argument
    path = locate(value)
    if not os.path.isfile(path):
        raise UserError(
            f"--flagfile: {value} is neither in {os.getcwd()} nor in {ROOT}."
        )
    return f"{name}={path}"


def locate(path):
    """Return `path`, or the file of that name under the project's root.

    So `configs/base.flags` and what it names work from any directory.
    """
    if path and not os.path.exists(path) and (ROOT / path).exists():
        return str(ROOT / path)
    return path


def require(*names):
    """Raise `UserError` for the first of these flags that was not given."""
    for name in names:
        if not flags.FLAGS[name].value:
            raise UserError(f"--{name} is missing: {flags.FLAGS[name].help}")


def write_run_json(path, inputs):
    """Write what it takes to repeat this run: command, flags, versions, hashes.

    Args:
      path: the file to write, by convention `run.json` beside the output or
        `<output>.run.json`.
      inputs: paths of the files that went in; their SHA-256 are recorded.
    """
    values = flags.FLAGS.flags_by_module_dict().get(sys.argv[0], [])
    files.write_json(
        path,
        {
            "command": [os.path.basename(sys.executable), *sys.argv],
            "flags": {flag.name: flag.value for flag in values},
            "versions": {"python": sys.version.split()[0], **_versions()},
            "inputs": {str(name): files.sha256_of(name) for name in inputs},
            "finished": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        },
    )


def _versions():
    found = {}
    for name in VERSIONED:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found
