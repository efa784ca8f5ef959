"""Start `many_runs.py`, and check the result of a refused command."""

import json
import pathlib

import warm_python

FOLDER = pathlib.Path(__file__).parent


def run_many(script, runs, cwd):
    """Return name -> result for a dict of name -> {"arguments", "stdin"}."""
    done = warm_python.run(
        [FOLDER / "many_runs.py", script],
        stdin=json.dumps(list(runs.values())),
        cwd=cwd,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    results = json.loads(done.stdout.splitlines()[-1])
    return dict(zip(runs, results, strict=True))


def first_runs(script, commands, folder):
    """Run each command in a folder with its name; return name -> result."""
    results = run_many(script, _into_folders(commands), folder)
    for name, result in results.items():
        assert result["status"] == 0, (name, result["stderr"])
    return results


def later_runs(script, commands, bad, folder):
    """Run commands like `first_runs`, then bad ones, each in a new folder.

    Args:
      script: name of the script.
      commands: dict of name -> flags; the result is named "later <name>".
      bad: iterable of flags; the flags are the name of the result.
      folder: working directory.

    Returns:
      (name -> result, name -> `contents` of each folder before).
    """
    before = {path.name: contents(path) for path in folder.iterdir() if path.is_dir()}
    runs = {f"later {n}": run for n, run in _into_folders(commands).items()}
    for number, flags in enumerate(bad):
        # If a flag is given twice, the last one counts.
        runs[flags] = {"arguments": [f"--output_dir=new-{number}", *flags.split()]}
    return run_many(script, runs, folder), before


def _into_folders(commands):
    return {
        name: {"arguments": [*flags.split(), f"--output_dir={name}"]}
        for name, flags in commands.items()
    }


def new_of(folder, bad, flags):
    """Return the new folder of a bad command of `later_runs`."""
    return folder / f"new-{list(bad).index(flags)}"


def said(later, name):
    """Return the output of a later command, which must have succeeded."""
    result = later[0][f"later {name}"]
    assert result["status"] == 0, result["stderr"]
    return result["stdout"]


def contents(directory):
    """Return the contents of a folder, except times of writing."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
        and path.name not in (".lock", "run.json", "eval_run.json")
        and path.parent.name != "events"
    }


def scores(directory):
    """Return name -> number of `eval_results.txt`."""
    lines = (directory / "eval_results.txt").read_text().splitlines()
    assert lines == sorted(lines)
    return {name: float(v) for name, v in (line.split(" = ") for line in lines)}


def json_lines(path):
    """Return the values in the lines of a JSON lines file."""
    return [json.loads(line) for line in path.open(encoding="utf-8")]


def assert_refused(result, words):
    """Assert one sentence on stderr with these words, status 1 or 2, within seconds."""
    assert "Traceback" not in result["stderr"], result["stderr"]
    assert result["status"] in (1, 2), result
    assert result["stderr"].startswith("error: "), result["stderr"]
    assert result["stderr"].count("\n") == 1, result["stderr"]
    for word in words:
        assert word in result["stderr"], result["stderr"]
    # It takes seconds on an idle machine.
    assert result["seconds"] < 60
