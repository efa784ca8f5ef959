"""What every run script shares: flags, flag files, errors, `run.json`."""

import contextlib
import errno
import functools
import glob
import importlib.metadata
import io
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from logging import Formatter

from absl import flags, logging

import official_bert
from official_bert import files
from official_bert.errors import UserError

ROOT = pathlib.Path(__file__).resolve().parents[2]
# TensorFlow's start-up chatter is not for users; its errors are.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
VERSIONED = ("tensorflow", "keras", "numpy", "tokenizers", "absl-py")
HELP_WIDTH = 80
# The help of flags that do nothing begins with this.
OLD = "For old commands"
OLD_TITLE = "Accepted for old commands"
_FLAG_FILE = re.compile(r"--?flagfile(?:=(.*))?$")


def run(main):
    """Parse the command line, call `main()` and exit with its status.

    `main` may return a status; None is 0. A `UserError`, a missing package or a
    full disk becomes one line on stderr and status 1, an unusable flag one line and
    status 2. Ctrl-C ends with status 130 and a closed pipe (`| head`) with
    141, both without a traceback.
    """
    if any(re.fullmatch(r"-h|--?help(short|full)?", arg) for arg in sys.argv[1:]):
        sys.exit(_guarded(lambda: print(_help_text(main), end="")))
    _parse_flags(sys.argv)
    _own_flags()
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A label or a path may have letters that a terminal cannot show.
        sys.stdout.reconfigure(errors="backslashreplace")
    logging.use_absl_handler()
    logging.set_verbosity(logging.INFO)
    # What scripts log is meant for people: no time stamps, no line numbers.
    logging.get_absl_handler().setFormatter(Formatter("%(message)s"))
    sys.exit(_guarded(main))


def _guarded(main):
    """Call `main` and return the exit status; see `run`."""
    try:
        status = main()
        # Here, not at the interpreter's end, where it could not be caught.
        sys.stdout.flush()
        return status
    except UserError as error:
        return _complain(str(error), 1)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "official_bert"):
            raise
        return _complain(
            f"{package} is not installed: pip install -r requirements.txt, or run the "
            "script with the .venv/bin/python that make test makes; doctor.py tells "
            "what else is missing.",
            1,
        )
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 141
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        where = f" of {error.filename}" if error.filename else ""
        return _complain(
            f"No space left on the disk{where}: free some and run the command again.",
            1,
        )
    finally:
        _settle_stdout()


def _settle_stdout():
    """Drop what stdout cannot take, lest the interpreter's last flush complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message, status):
    """Print a message as one line on stderr and return the exit status."""
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    return status


# What Python says where a flag is no number, and what is said here.
_NO_INT = ("invalid literal for int() with base 10:", "not a whole number:")
_NO_FLOAT = ("could not convert string to float:", "not a number:")


def _parse_flags(argv):
    """Parse like absl, with flag files found from anywhere."""
    origins = {}
    try:
        rest = flags.FLAGS(argv[:1] + _expand_flag_files(argv[1:], origins))
    except UserError as error:
        sys.exit(_complain(str(error), 2))
    except flags.Error as error:
        names = re.findall(r"\w+", str(error))
        where = next((f"{origins[name]}: " for name in names if name in origins), "")
        told = str(error).replace(*_NO_INT).replace(*_NO_FLOAT)
        sys.exit(_complain(f"{where}{told} (--help shows the flags)", 2))
    if len(rest) > 1:
        message = f"{rest[1]!r} is not a flag; flags look like --name=value"
        if rest[1].lower() in ("true", "false"):
            message += ", such as --do_train=true"
        sys.exit(_complain(f"{message} (--help shows them)", 2))


def _expand_flag_files(arguments, origins, open_files=()):
    """Replace each `--flagfile=x` or `--flagfile x` by the flags in the file.

    absl can do that too, but looks for the file in the working directory
    only, and its errors do not name it.

    Args:
      arguments: list of str.
      origins: dict that is filled with flag name -> "file, line n".
      open_files: the flag files that this one was reached through.
    """
    expanded = []
    arguments = iter(arguments)
    for argument in arguments:
        match = _FLAG_FILE.match(argument)
        if not match:
            # A flag on the command line hides the same flag in a file.
            origins.pop(_name_of(argument), None)
            expanded.append(argument)
        else:
            name = match[1] if match[1] is not None else next(arguments, "")
            expanded += _read_flag_file(name.strip(), origins, open_files)
    return expanded


def _read_flag_file(name, origins, open_files):
    """Return the flags in a file: one a line, `#` or `//` starts a comment."""
    path = locate(os.path.expanduser(name))
    if not os.path.isfile(path):
        raise UserError(
            f"--flagfile: {name!r} is neither in {os.getcwd()} nor in {ROOT}."
        )
    if os.path.realpath(path) in open_files:
        raise UserError(f"--flagfile: {path} includes itself.")
    open_files += (os.path.realpath(path),)
    expanded = []
    text = files.read_text(path, "a flag file")
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip()
        if not line or line.startswith(("#", "//")):
            continue
        if not line.startswith("-"):
            raise UserError(
                f"{path}, line {number}: {line!r} is not a flag; write --name=value."
            )
        words = line.split(maxsplit=1) if _FLAG_FILE.match(line.split()[0]) else [line]
        expanded += _expand_flag_files(words, origins, open_files)
        origins[_name_of(line)] = f"{path}, line {number}"
    return expanded


def _name_of(argument):
    """Return `name` of `--name=value`."""
    return argument.lstrip("-").partition("=")[0]


def _help_text(main):
    """Return the script's docstring and its flags, in groups."""
    docstring = sys.modules[main.__module__].__doc__.strip()
    groups = {"Flags, with their defaults": []}
    for flag in _own_flags():
        module = sys.modules.get(flags.FLAGS.find_module_defining_flag(flag.name))
        title = getattr(module, "HELP_TITLE", "Flags, with their defaults")
        if flag.help.startswith(OLD):
            title = OLD_TITLE
        groups.setdefault(title, []).append(_describe_flag(flag))
    # A flag file may hold all of them, old ones come last.
    groups[next(iter(groups))].append(
        "  --flagfile\n      A file of flags, one a line; looked for in the working "
        "directory,\n      then in the project's root."
    )
    ordered = sorted(groups.items(), key=lambda group: group[0] == OLD_TITLE)
    texts = ["\n".join([f"{title}:", *lines]) for title, lines in ordered]
    return "\n\n".join([docstring, *texts]) + "\n"


def _describe_flag(flag):
    """Return `--name=default` and the wrapped help of one flag."""
    default = flag.default
    if isinstance(default, list):
        default = ",".join(map(str, default))
    default = "" if default in (None, "") else f"={default}"
    # Of flags that may be repeated absl tells that once more.
    text = re.sub(r";\s+repeat this option.*", "", " ".join(flag.help.split()))
    # So that the lines can be broken between the values of an enum, not in them.
    text = re.sub(r"^<\S*>:", lambda found: found[0].replace("|", " | "), text)
    lines = textwrap.wrap(text, HELP_WIDTH - 6, break_on_hyphens=False)
    return "\n      ".join([f"  --{flag.name}{default}", *lines])


@functools.cache
def _own_flags():
    """Return the flags that a script or its helpers defined, absl's left out.

    The script's own come first. All are as they are at the first call:
    libraries that are loaded later add theirs.
    """
    modules = flags.FLAGS.flags_by_module_dict()
    own = sorted(
        (module for module in modules if not module.startswith("absl.")),
        key=lambda module: not module.startswith("official_bert.commands."),
    )
    return [flag for module in own for flag in modules[module]]


def locate(path):
    """Return `path`, or what has that name or fits that glob under the root.

    So `configs/base.flags` and what it names work from any directory.
    """
    if path and not os.path.exists(path) and not glob.glob(path):
        from_root = str(ROOT / path)
        if os.path.exists(from_root) or glob.glob(from_root):
            return from_root
    return path


def start_tensorflow(use=None):
    """Import TensorFlow and find its devices, without its chatter.

    Args:
      use: function of no arguments to call as the first thing; by default the
        devices are listed.

    Returns:
      what `use` returns.

    TensorFlow's C++ side greets on stderr with lines that no setting turns
    off, among them errors about GPUs on machines that have none. They are
    shown only if the import fails. What this project logs is shown.
    """
    sys.stderr.flush()
    own = os.dup(2)
    with tempfile.TemporaryFile() as chatter, _logging_to(own):
        os.dup2(chatter.fileno(), 2)
        try:
            import tensorflow as tf

            tf.get_logger().setLevel("WARNING")
            return use() if use else tf.config.list_logical_devices()
        except UserError:
            raise
        except BaseException:
            chatter.seek(0)
            os.write(own, chatter.read())
            raise
        finally:
            os.dup2(own, 2)
            os.close(own)


@contextlib.contextmanager
def _logging_to(descriptor):
    """Let what would be logged to stderr be logged to a copy of a descriptor."""
    handler = logging.get_absl_handler().python_handler
    with os.fdopen(os.dup(descriptor), "w", encoding="utf-8") as stream:
        before = handler.setStream(stream) if handler.stream is sys.stderr else None
        try:
            yield
        finally:
            if before:
                handler.setStream(before)


def exit_at_sigterm():
    """Let SIGTERM end a command as an exception does.

    By itself it ends this process alone, and those that it started go on.
    """
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def run_script(name, arguments, **options):
    """Run another of the scripts; what ends this one lets that one save and end first.

    Args:
      name: its file in `run_scripts`.
      arguments: list of str.
      **options: for `subprocess.Popen`, such as where its output goes.

    Returns:
      (its exit status, what it printed if `stdout` is a pipe, else None).
    """
    command = [sys.executable, str(ROOT / "run_scripts" / name), *arguments]
    with subprocess.Popen(command, **options) as child:
        try:
            output, _ = child.communicate()
        except KeyboardInterrupt:
            # Ctrl-C has reached it as well.
            child.communicate()
            raise
        except SystemExit:
            # SIGTERM may have not.
            child.terminate()
            child.communicate()
            raise
    return child.returncode, output


def require(*names):
    """Raise `UserError` for the first of these flags that was not given."""
    for name in names:
        if not flags.FLAGS[name].value:
            raise UserError(f"Give --{name}: {flags.FLAGS[name].help}")


def write_run_json(path, inputs):
    """Write what it takes to repeat this run: command, flags, versions, hashes.

    Every byte that went in is hashed, about a second per gigabyte: a hash of
    a part would call two different inputs the same.

    Args:
      path: the file to write, by convention `run.json` in an output directory
        or `<output>.run.json` beside an output file.
      inputs: what went in: files, directories (their files are taken),
        checkpoint prefixes (`<prefix>.*` is taken). What is not on the disk,
        is recorded with null; None is left out.
    """
    hashes = {}
    for name in filter(None, inputs):
        found = _input_files(str(name))
        hashes |= {file: files.sha256_of(file) for file in found} or {str(name): None}
    files.write_json(
        path,
        {
            "command": [os.path.basename(sys.executable), *sys.argv],
            "directory": os.getcwd(),
            "flags": {flag.name: flag.value for flag in _own_flags()},
            "versions": _versions(),
            "inputs": hashes,
            "written": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        },
    )


def _input_files(name):
    """Return the files that a file, directory or checkpoint prefix stands for."""
    if os.path.isfile(name):
        return [name]
    pattern = f"{glob.escape(name)}{'/*' if os.path.isdir(name) else '.*'}"
    return [path for path in sorted(glob.glob(pattern)) if os.path.isfile(path)]


def _versions():
    """Return the versions that decide a result; None for what is absent."""
    found = {
        "official_bert": official_bert.__version__,
        "python": sys.version.split()[0],
    }
    for name in VERSIONED:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found
