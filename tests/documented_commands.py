r"""Run the commands of README and docs as they are printed.

    python tests/documented_commands.py [README.md pretraining.md ...]

The pages' commands run in one folder and in the order below, because later pages take
for granted what earlier ones made. Their files are small (`stand_ins.py`), and flags
of `SMALL` behind those of the page make long work short. `pip install` does nothing.
What no machine like this can run is marked in the pages, see `code_blocks.py`.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

import stand_ins
from code_blocks import PAGES, blocks_of
from places import ROOT

_UPDATES = (
    "--train_batch_size=8 --eval_batch_size=8 --max_eval_steps=1 --num_train_steps=4 "
    "--num_warmup_steps=1 --save_checkpoints_steps=2 --iterations_per_loop=1"
)
_TINY = f"{_UPDATES} --bert_config_file=configs/bert_tiny.json"
# What a command holds -> flags behind those of the page; the last of two counts.
SMALL = {
    "--pack": f"{_TINY} --train_batch_size=4",
    "configs/base_512.flags": _TINY,
    "configs/base.flags": f"{_TINY} --stop_at_step=2",
    "run_pretraining.py": _UPDATES,
    "run_ablation.py": "--num_train_steps=10 --num_seeds=2 --rows=bert --tasks=sst-2",
    "run_classifier.py": "--num_train_epochs=1",
    "run_squad.py": "--num_train_epochs=1",
    "run_ner.py": "--num_train_epochs=1",
    "run_embedding.py": "--num_train_epochs=1 --train_batch_size=8",
    "instance_creation.py": "--dupe_factor=1",
}
# What earlier pages made, and a page's first command would find in its way.
IN_THE_WAY = {
    "serving.md": ["exports"],
    "embeddings.md": ["exports"],
    "on_device.md": ["exports"],
    "from_paper_to_code.md": ["output/glue"],
    "finetuning.md": ["output/reviews", "output/glue", "output/mrpc"],
}
ORDER = [
    "README.md",
    "data.md",
    "clusters.md",
    "serving.md",
    "on_device.md",
    "checkpoints.md",
    "tokenizer.md",
    "from_paper_to_code.md",
    "finetuning.md",
    "embeddings.md",
    "sentence_transformers.md",
    "ablations.md",
    "pretraining.md",
]
# A test of its own runs the one; the figures of the other were made with its commands,
# which take hours.
ELSEWHERE = {"migrating.md", "results.md"}
SECONDS = 1800


def main(names):
    """Run pages; return how many failed."""
    failed = []
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made, "checkout")
        prepare(folder)
        for name in names:
            began = time.monotonic()
            status, told = run_page(name, folder)
            print(f"{name}: {told} ({time.monotonic() - began:.0f} s)", flush=True)
            failed += [name] * bool(status)
    return len(failed)


def prepare(folder):
    """Make the folder that looks like a checkout with everybody's files."""
    folder.mkdir()
    for name in ("run_scripts", "configs", "tests", "benchmarks", "official_bert"):
        (folder / name).symlink_to(ROOT / name)
    stand_ins.write_all(folder)
    programs = folder / "programs"
    programs.mkdir()
    _write_program(programs / "pip", "exit 0")
    cases = [
        f'*{part}*) exec {sys.executable} "$@" {flags} ;;'
        for part, flags in SMALL.items()
    ]
    python = ['case "$*" in', *cases, f'*) exec {sys.executable} "$@" ;;', "esac"]
    _write_program(programs / "python", "\n".join(python))
    patience = "--silent --show-error --fail --retry 120 --retry-delay 1"
    curl = f'{shutil.which("curl")} {patience} --retry-connrefused "$@"'
    _write_program(programs / "curl", f"exec {curl}")


def _write_program(path, text):
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


def run_page(name, folder):
    """Run the blocks of a page; return (status, what to tell)."""
    for path in IN_THE_WAY.get(name, []):
        shutil.rmtree(folder / path, ignore_errors=True)
    if name == "pretraining.md":
        stand_ins.records(folder)
    (page,) = [page for page in PAGES if page.name == name]
    blocks = blocks_of(page)
    text = script_of(blocks)
    done = subprocess.run(
        ["bash", "-c", text],
        cwd=folder,
        env=_environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    marked = [block for block in blocks if block.not_run]
    told = f"{text.count(_STARTED)} blocks ran, {len(marked)} are marked as not run"
    if done.returncode:
        told = f"FAILED in the last of these:\n{done.stdout[-6000:]}"
    return done.returncode, told


def _environment(folder):
    """Return the environment of the commands; a model like the README's is there."""
    return os.environ | {
        "PATH": f"{folder / 'programs'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "MODEL": str(folder / "MODEL"),
    }


_STARTED = "# A block\n"


def script_of(blocks):
    """Return the blocks as one program for bash.

    A block of commands before a text that begins with "error: " has to fail with that
    text.
    """
    # What was started in the background ends with the page.
    parts = ["set -euo pipefail", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"]
    for block, after in zip(blocks, [*blocks[1:], None], strict=True):
        if block.not_run:
            continue
        if block.language == "python":
            parts.append(f"{_STARTED}python - <<'END'\n{block.text}END")
        elif block.is_shell and after and after.text.startswith("error: "):
            wanted = shlex.quote(after.text.strip())
            failing = f"! {{ ( set -e; {block.text}\n) 2>&1; }} > failed"
            parts.append(f"{_STARTED}{failing}\ngrep -qF {wanted} failed")
        elif block.is_shell:
            shown = shlex.quote(f"\n$ {block.text.strip()}")
            parts.append(f"{_STARTED}echo {shown}\n{block.text}")
    return "\n".join(parts)


def unknown_pages():
    """Return names of pages with commands that are neither here nor elsewhere."""
    return {
        page.name
        for page in PAGES
        if page.name not in {*ORDER, *ELSEWHERE}
        and any(block.is_shell and not block.not_run for block in blocks_of(page))
    }


if __name__ == "__main__":
    assert not unknown_pages(), unknown_pages()
    given = sys.argv[1:] or ORDER
    assert all(re.fullmatch(r"[\w.]+\.md", name) for name in given), given
    sys.exit(main(given))
