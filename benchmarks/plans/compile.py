"""Compile the rows of the table of accelerators, and store the results for the docs.

    python -m benchmarks.plans.compile [words of the rows]

It needs the TPU's compiler (installed by `make accelerators`), and hours for
all rows. Each result is written at once. A row is compiled again only after a
change in the training step's code or in a package. With words, such as `tiny
v5e`, only the rows whose names contain all of them are compiled.
"""

import json
import subprocess
import sys
import time

from benchmarks.plans.cases import RESULTS, ROOT, all_cases, fingerprint
from official_bert import files


def main(words: list[str]) -> int:
    """Compile the missing rows; return the number of rows that failed."""
    code = fingerprint()
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    cases = [one for one in all_cases() if all(word in one.name for word in words)]
    missing = [one for one in cases if results.get(one.name, {}).get("code") != code]
    print(f"{len(cases)} rows, {len(missing)} to compile", flush=True)
    failed = 0
    for number, case in enumerate(missing, 1):
        print(f"[{number}/{len(missing)}] {case.name}", flush=True)
        began = time.monotonic()
        found = compile_case(case)
        if found is None:
            failed += 1
            continue
        seconds = round(time.monotonic() - began)
        results[case.name] = found | {"code": code}
        # In the order of the rows; rows of older tables are removed.
        known = [one.name for one in all_cases()]
        results = {name: results[name] for name in known if name in results}
        files.write_text(RESULTS, json.dumps(results, indent=1) + "\n")
        print(f"  {found['hbm_gb']:.2f} GB, {seconds} s", flush=True)
    return failed


def compile_case(case):
    """Return the plan of a `Case`, as a dict; None with a message if it failed."""
    if case.is_peer:
        command = ["-m", "benchmarks.plans.kerashub", *case.flags]
    else:
        topology = f"--topology={case.topology}"
        command = ["run_scripts/plan_training.py", "--json", topology, *case.flags]
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    if done.returncode:
        print(f"  failed with status {done.returncode}", flush=True)
        return None
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
