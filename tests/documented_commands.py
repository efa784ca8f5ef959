r"""Run the commands of README and docs as they are printed.

    python tests/documented_commands.py [README.md how_to/serving.md ...]

The pages run in one folder and in the order of `ORDER`, because later pages use the
files of earlier ones. Their data is small (`stand_ins.py`), and the flags of `SMALL`,
appended to those of the page, shorten long work. `pip install` does nothing. Pages mark
commands that cannot run on a test machine, see `code_blocks.py`.
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
from code_blocks import PAGES, blocks_of, page_name
from places import ROOT

_STEPS = (
    "--train_batch_size=8 --eval_batch_size=8 --max_eval_steps=1 --num_train_steps=4 "
    "--num_warmup_steps=1 --save_checkpoints_steps=2 --iterations_per_loop=1"
)
_TINY = f"{_STEPS} --bert_config_file=configs/bert_tiny.json"
_EPOCH = "--num_train_epochs=1"
# (parts of a command line, flags). The first entry with a part that the command line
# contains appends its flags; the last value of a flag counts.
SMALL = (
    (("official_bert plan ",), ""),
    (("--pack",), f"{_TINY} --train_batch_size=4"),
    (("base_512.flags", "--flagfile=base_512 "), _TINY),
    (("base.flags", "--flagfile=base "), f"{_TINY} --stop_at_step=2"),
    (("run_pretraining.py", "official_bert pretrain "), _STEPS),
    (
        ("run_ablation.py", "official_bert ablation "),
        "--num_train_steps=10 --num_seeds=2 --rows=bert --tasks=sst-2",
    ),
    (("run_classifier.py", "official_bert classify "), _EPOCH),
    (("run_squad.py", "official_bert squad "), _EPOCH),
    (("run_ner.py", "official_bert ner "), _EPOCH),
    (
        ("run_embedding.py", "official_bert embed "),
        f"{_EPOCH} --train_batch_size=8",
    ),
    (("instance_creation.py",), "--dupe_factor=1"),
)
# Outputs of earlier pages that the first command of a page would refuse to overwrite.
IN_THE_WAY = {
    "tutorials/reviews.md": ["exports", "output/minilm", "output/reviews"],
    "tutorials/own_faq.md": ["exports", "output/minilm"],
    "how_to/serving.md": ["exports"],
    "how_to/phone.md": ["exports"],
    "from_paper_to_code.md": ["output/glue"],
    "how_to/classification.md": ["output/reviews", "output/glue"],
    "how_to/embeddings.md": ["output/faq"],
}
ORDER = [
    "README.md",
    "installation.md",
    "quickstart.md",
    "tutorials/reviews.md",
    "tutorials/own_faq.md",
    "concepts/input_and_masking.md",
    "reference/file_formats.md",
    "reference/python_api.md",
    "how_to/data.md",
    "how_to/clusters.md",
    "how_to/serving.md",
    "how_to/phone.md",
    "how_to/conversion.md",
    "how_to/new_vocabulary.md",
    "how_to/own_domain.md",
    "reference/tokenizer.md",
    "from_paper_to_code.md",
    "how_to/classification.md",
    "how_to/small_data.md",
    "how_to/long_texts.md",
    "how_to/squad.md",
    "how_to/ner.md",
    "how_to/multiple_choice.md",
    "how_to/embeddings.md",
    "migration/from_sentence_transformers.md",
    "ablations.md",
    # These read records that the first of them creates.
    "how_to/pretraining.md",
    "how_to/one_gpu.md",
    "how_to/eight_gpus.md",
    "concepts/padding_and_packing.md",
]
# A test of its own runs the first; the numbers of the second were made with its
# commands, which take hours.
ELSEWHERE = {"migration/from_tensorflow_1.md", "results.md"}
SECONDS = 1800


def main(names):
    """Run pages; return how many failed."""
    failed = []
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made, "checkout")
        prepare(folder)
        for name in names:
            began = time.monotonic()
            status, result = run_page(name, folder)
            print(f"{name}: {result} ({time.monotonic() - began:.0f} s)", flush=True)
            failed += [name] * bool(status)
    return len(failed)


def prepare(folder):
    """Create a folder like a checkout, with the data files of all pages."""
    folder.mkdir()
    for name in ("run_scripts", "configs", "tests", "benchmarks", "official_bert"):
        (folder / name).symlink_to(ROOT / name)
    stand_ins.write_all(folder)
    programs = folder / "programs"
    programs.mkdir()
    _write_program(programs / "pip", "exit 0")
    cases = [
        f'{_pattern(parts)}) exec {sys.executable} "$@" {flags} ;;'
        for parts, flags in SMALL
    ]
    python = ['case "$* " in', *cases, f'*) exec {sys.executable} "$@" ;;', "esac"]
    _write_program(programs / "python", "\n".join(python))
    _write_program(programs / "official-bert", 'exec python -m official_bert "$@"')
    patience = "--silent --show-error --fail --retry 120 --retry-delay 1"
    curl = f'{shutil.which("curl")} {patience} --retry-connrefused "$@"'
    _write_program(programs / "curl", f"exec {curl}")


def _pattern(parts):
    """Return the pattern of bash for texts that contain one of the parts."""
    return "|".join(f'*"{part}"*' for part in parts)


def _write_program(path, text):
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


def run_page(name, folder):
    """Run the blocks of a page; return (status, report)."""
    for path in IN_THE_WAY.get(name, []):
        shutil.rmtree(folder / path, ignore_errors=True)
    if name == "how_to/pretraining.md":
        stand_ins.large_vocabulary(folder)
    (page,) = [page for page in PAGES if page_name(page) == name]
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
    report = f"{text.count(_STARTED)} blocks ran, {len(marked)} are marked as not run"
    if done.returncode:
        report = f"FAILED in the last of these:\n{done.stdout[-6000:]}"
    return done.returncode, report


def _environment(folder):
    """Return the environment of the commands, with the README's variable `MODEL`."""
    return os.environ | {
        "PATH": f"{folder / 'programs'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "MODEL": str(folder / "MODEL"),
    }


_STARTED = "# A block\n"


def script_of(blocks):
    """Return the blocks as one program for bash.

    If the next block is a text that begins with "error: ", the commands must fail with
    that text.
    """
    # Background processes end with the page.
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
    """Return names of pages with commands that are in neither ORDER nor ELSEWHERE."""
    return {
        page_name(page)
        for page in PAGES
        if page_name(page) not in {*ORDER, *ELSEWHERE}
        and any(block.is_shell and not block.not_run for block in blocks_of(page))
    }


if __name__ == "__main__":
    assert not unknown_pages(), unknown_pages()
    names = sys.argv[1:] or ORDER
    assert all(re.fullmatch(r"[\w./]+\.md", name) for name in names), names
    sys.exit(main(names))
