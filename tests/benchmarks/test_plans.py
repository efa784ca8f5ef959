"""The table of accelerators: its rows, the need to compile again, and its text."""

import json

import pytest

from benchmarks.plans import cases, compile, table
from official_bert.training.plans import plan
from official_bert.training.plans.chips import parse_topology


def result(case, **changes):
    slice_ = parse_topology(case.topology)
    made = plan.with_costs(
        plan.Plan(case.topology, slice_.num_chips, False, True),
        slice_,
        case.precision,
        **{
            "flops": 2e12,
            "bytes_accessed": 200e9,
            "main_memory_bytes": 61.5e9,
            "argument_gb": 1.3,
            "temp_gb": 2.1,
            "collectives": {},
        }
        | changes,
    )
    return made.to_dict() | {"remedy": "", "code": "a"}


@pytest.fixture
def results():
    return {case.name: result(case) for case in cases.all_cases()}


def test_rows():
    found = cases.all_cases()
    names = [case.name for case in found]
    assert len(set(names)) == len(names)
    kinds = {parse_topology(case.topology).chip.name for case in found}
    assert kinds == {"TPU v4", "TPU v5e", "TPU v5p", "TPU v6e"}
    steps = {
        (case.model, case.phase, case.precision, parse_topology(case.topology))
        for case in found
        if case.section == cases.PRETRAINING
    }
    # Two models, lengths, precisions, and 16 and 64 chips.
    assert len(steps) == 16
    assert {slice_.num_chips for *_, slice_ in steps} == {16, 64}
    for case in found:
        for flag in case.flags:
            if flag.startswith("--flagfile="):
                assert (cases.ROOT / flag.partition("=")[2]).exists()


def test_only_code_is_in_the_fingerprint(tmp_path):
    path = tmp_path / "module.py"
    codes = []
    for text in ('def f():\n    """Say."""\n    return 1', "# x\ndef f(): return 1"):
        path.write_text(text)
        codes.append(cases._code_of(path))
    path.write_text("def f(): return 2")
    assert codes[0] == codes[1] != cases._code_of(path)
    # The `__init__.py` modules contain only a docstring.
    modules = [path for path in cases._CODE if path.name != "__init__.py"]
    assert len({cases._code_of(path) for path in modules}) == len(modules)


def test_only_missing_rows_are_compiled(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(compile, "RESULTS", tmp_path / "results.json")
    codes, asked = ["1"], []
    monkeypatch.setattr(compile, "fingerprint", lambda: codes[-1])

    def compile_case(case):
        asked.append(case.name)
        return None if "v6e:8x8" in case.name and len(asked) < 5 else result(case)

    monkeypatch.setattr(compile, "compile_case", compile_case)
    assert compile.main(["every topology", "v6e"]) == 1
    assert len(asked) == 2
    # Failed rows, and rows with changed code, are compiled again.
    assert compile.main(["every topology", "v6e"]) == 1
    assert len(asked) == 3
    codes.append("2")
    assert compile.main(["every topology", "v6e"]) == 0
    assert len(asked) == 5
    found = json.loads((tmp_path / "results.json").read_text())
    assert list(found) == asked[-2:]
    assert {row["code"] for row in found.values()} == {"2"}
    assert "[1/2] every topology, v6e:2x2" in capsys.readouterr().out


def test_tables(results):
    found = table.tables(results)
    rows = found["plans"]
    assert len({line.count("|") for line in rows}) == 1
    assert len(rows) == 2 + sum(
        case.section != cases.ONE_CHIP for case in cases.all_cases()
    )
    (base,) = [
        line
        for line in rows
        if line.startswith("| v5e:4x4 | base | 256 x 128 | bfloat16 ")
    ]
    # 900,000 steps of 75 ms are 18.75 hours, on 16 chips.
    assert base.endswith(
        "| yes | 3.40 of 16.9 GB | 61.5 GB | 200 GB | 75 ms | memory | 19 hours "
        "| 300.0 |"
    )
    assert len(found["one chip"]) == 2 + 6
    ratios = "61.5 GB (1.00 x) | 200 GB (1.00 x) | 2.10 GB (1.00 x)"
    assert ratios in found["one chip"][2]
    assert [line.split(" | ")[0] for line in found["paper"][2:]] == [
        "| base",
        "| large",
    ]
    # 10^6 steps of 75 ms.
    assert found["paper"][2].endswith("| v5e:4x4 | 0.87 days |")
    assert found["missing"] == ["All rows are compiled."]


def test_rows_that_do_not_fit(results):
    case = next(one for one in cases.all_cases() if one.section == cases.PRETRAINING)
    refused = plan.Plan(case.topology, 16, False, False, "too large", argument_gb=20.0)
    results[case.name] = refused.to_dict() | {
        "remedy": "--recompute",
        "remedy_plan": result(case),
    }
    rows = table.tables(results)["plans"]
    number = next(n for n, line in enumerate(rows) if "no: too large" in line)
    assert "| with `--recompute` | yes |" in rows[number + 1]
    assert len({line.count("|") for line in rows}) == 1


def test_the_page_has_the_tables(monkeypatch, tmp_path, results):
    page = tmp_path / "page.md"
    page.write_text(table.PAGE.read_text("utf-8"))
    stored = tmp_path / "results.json"
    stored.write_text(json.dumps(results))
    monkeypatch.setattr(table, "PAGE", page)
    monkeypatch.setattr(cases, "RESULTS", stored)
    monkeypatch.setattr(cases, "ROOT", tmp_path)
    table.main()
    once = page.read_text()
    assert once.count("\n| v5e:4x4 | base |") == 4
    table.main()
    assert page.read_text() == once
