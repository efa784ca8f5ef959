"""The shipped configs are the released sizes, and every flag in them exists."""

import dataclasses
import fnmatch
import json
import math
import re
import subprocess
import sys

import pytest
from places import ROOT

from official_bert.ablations.tables import TABLES, TASKS
from official_bert.config import SIZES, BertConfig
from official_bert.tasks.glue.tasks import find_task

CONFIGS = ROOT / "configs"
PHASE_1, PHASE_2 = list(SIZES), ["base_512", "large_512"]

GLUE_TASKS = ["cola", "sst-2", "mrpc", "sts-b", "qqp", "mnli", "qnli", "rte"]
GRIDS = {"grid_appendix": 18, "grid_small_models": 20}

# Prints the flags of a script under each flag file.
PRINT_FLAGS = """
import importlib, json, sys
script = importlib.import_module(f"official_bert.commands.{sys.argv[1]}")
FLAGS, found = script.FLAGS, {}
for name in sys.argv[2:]:
    FLAGS.unparse_flags()
    for flag in FLAGS:
        FLAGS[flag].unparse()
    FLAGS(["x", f"--flagfile=configs/{name}.flags"])
    base = "official_bert.command_line."
    helpers = base + "training_flags", base + "fine_tuning_flags"
    modules = script.__name__, *(name for name in helpers if name in sys.modules)
    ours = [flag for module in modules for flag in FLAGS.get_flags_for_module(module)]
    named = {flag.name: flag for flag in ours if "Alias for" not in flag.help}
    found[name] = {name: flag.value for name, flag in named.items()}
print(json.dumps(found))
"""


def flags_under(script, names):
    done = subprocess.run(
        [sys.executable, "-c", PRINT_FLAGS, script, *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def flag_files():
    return flags_under("run_pretraining", [*PHASE_1, *PHASE_2])


@pytest.fixture(scope="module")
def glue_flag_files():
    names = [*GLUE_TASKS, "xnli", *GRIDS]
    found = flags_under("run_classifier", [f"glue/{name}" for name in names])
    return {name.removeprefix("glue/"): flags for name, flags in found.items()}


@pytest.mark.parametrize("name", GLUE_TASKS)
def test_the_papers_fine_tuning(glue_flag_files, name):
    """Sec. 4.1: batch size 32, 3 epochs, the best of four learning rates on dev."""
    flags = glue_flag_files[name]
    assert find_task(flags["task_name"]).name == name
    assert flags["do_train"] and flags["do_eval"] and flags["grid"]
    assert (flags["train_batch_size"], flags["num_train_epochs"]) == (32, 3)
    rates = sorted(map(float, flags["grid_learning_rates"]))
    assert rates == [2e-5, 3e-5, 4e-5, 5e-5]
    assert not flags["grid_batch_sizes"] and not flags["grid_epochs"]
    assert (flags["max_seq_length"], flags["warmup_proportion"]) == (128, 0.1)
    assert (flags["optimizer"], flags["bias_correction"]) == ("adam", False)
    assert flags["output_dir"] == f"output/glue/{name}"


def test_the_grid_by_default(glue_flag_files):
    """Without a grid in its flag file, a task uses the learning rates of Sec. 4.1."""
    assert "grid_" not in (CONFIGS / "glue/xnli.flags").read_text()
    flags = glue_flag_files["xnli"]
    assert flags["grid_learning_rates"] == ["5e-5", "4e-5", "3e-5", "2e-5"]
    assert flags["grid_batch_sizes"] == flags["grid_epochs"] == []


@pytest.mark.parametrize(
    ("name", "batch_size", "epochs"), [("squad1", 32, 3), ("squad2", 48, 2)]
)
def test_the_papers_squad(name, batch_size, epochs):
    """Sec. 4.2, 4.3; lengths and warm-up are the original's."""
    flags = flags_under("run_squad", [name])[name]
    assert flags["train_batch_size"] == batch_size
    assert (flags["learning_rate"], flags["num_train_epochs"]) == (5e-5, epochs)
    lengths = ("max_seq_length", "doc_stride", "max_query_length")
    assert [flags[each] for each in lengths] == [384, 128, 64]
    assert flags["warmup_proportion"] == 0.1
    is_2 = name == "squad2"
    assert bool(flags["version_2_with_negative"]) == flags["do_eval"] == is_2
    assert flags["do_train"] and flags["do_predict"]
    assert flags["output_dir"] == f"output/{name}"


def test_conll_by_fine_tuning():
    """The settings are in the ranges of App. A.3."""
    flags = flags_under("run_ner", ["conll"])["conll"]
    assert flags["do_train"] and flags["do_eval"] and flags["do_predict"]
    assert flags["train_batch_size"] in (16, 32)
    assert flags["learning_rate"] in (5e-5, 3e-5, 2e-5)
    assert flags["num_train_epochs"] in (2, 3, 4)
    for name in ("feature_based", "bilstm", "one_sentence", "label_all_pieces"):
        assert not flags[name]


@pytest.mark.parametrize("name", GRIDS)
def test_a_grid_has_as_many_runs_as_it_says(glue_flag_files, name):
    flags = glue_flag_files[name]
    lists = "grid_learning_rates", "grid_batch_sizes", "grid_epochs"
    assert math.prod(len(flags[each]) for each in lists) == GRIDS[name]
    assert f"{GRIDS[name]} runs" in (CONFIGS / "glue" / f"{name}.flags").read_text()


@pytest.mark.parametrize("size", list(SIZES))
def test_the_json_is_that_of_the_released_size(size):
    text = (CONFIGS / f"bert_{size}.json").read_text()
    assert text == BertConfig.named(size).to_json_string()


@pytest.mark.parametrize("name", [*PHASE_1, *PHASE_2])
def test_a_flag_file_says_all_that_a_run_needs(flag_files, name):
    flags = flag_files[name]
    size = name.split("_")[0]
    assert flags["bert_config_file"] == f"configs/bert_{size}.json"
    assert flags["do_train"] and flags["do_eval"]
    length = 512 if name in PHASE_2 else 128
    assert flags["max_seq_length"] == length
    assert flags["max_predictions_per_seq"] == math.ceil(0.15 * length)
    assert f"pretraining_{length}/" in flags["input_file"]
    assert f"pretraining_{length}_heldout/" in flags["dev_file"]
    assert flags["output_dir"] == f"output/{size}_{length}"
    assert flags["num_warmup_steps"] < flags["num_train_steps"]


@pytest.mark.parametrize("name", ["base", "large"])
def test_the_papers_two_phases(flag_files, name):
    first, second = flag_files[name], flag_files[f"{name}_512"]
    assert first["train_batch_size"] == second["train_batch_size"] == 256
    assert (first["stop_at_step"], second["stop_at_step"]) == (900_000, None)
    for phase in (first, second):
        assert phase["num_train_steps"] == 1_000_000
        assert (phase["learning_rate"], phase["num_warmup_steps"]) == (1e-4, 10_000)
    assert second["continue_from"] == first["output_dir"]


RECIPES = ["base_8gpu", "large_8gpu", "base_tpu_v5e_16", "large_tpu_v4_64"]


@pytest.fixture(scope="module")
def recipes():
    names = [name + suffix for name in RECIPES for suffix in ("", "_512")]
    return flags_under("run_pretraining", names)


@pytest.mark.parametrize("name", RECIPES)
def test_recipes_are_the_papers_runs(flag_files, recipes, name):
    size, is_tpu = name.split("_")[0], "tpu" in name
    own = {
        *("output_dir", "continue_from", "precision", "xla", "use_tpu"),
        *("eval_batch_size", "max_eval_steps"),
    }
    for suffix, length in (("", 128), ("_512", 512)):
        flags, usual = recipes[name + suffix], flag_files[size + suffix]
        assert {key for key in flags if flags[key] != usual[key]} <= own
        assert flags["precision"] == "bfloat16"
        assert (flags["use_tpu"], flags["xla"]) == (is_tpu, not is_tpu)
        assert flags["output_dir"] == f"output/{name}_{length}"
        chips = 8 if not is_tpu else int(name.rpartition("_")[2])
        assert flags["train_batch_size"] % chips == 0
        assert not is_tpu or flags["eval_batch_size"] % chips == 0
        assert flags["eval_batch_size"] * flags["max_eval_steps"] == 3200
    assert recipes[f"{name}_512"]["continue_from"] == recipes[name]["output_dir"]


@pytest.mark.parametrize("name", ["base", "large", *RECIPES])
def test_the_page_writes_the_records_that_flag_files_read(flag_files, recipes, name):
    page = (ROOT / "docs/how_to/pretraining.md").read_text("utf-8")
    written = re.findall(r"--output_file=(data/pretraining\S+\.tfrecord)", page)
    files = flag_files | recipes
    for suffix in ("", "_512"):
        for flag in ("input_file", "dev_file"):
            pattern = files[name + suffix][flag]
            assert fnmatch.filter(written, pattern), pattern


@pytest.mark.parametrize("path", sorted(CONFIGS.rglob("*.flags")), ids=lambda p: p.stem)
def test_a_flag_file_explains_itself(path):
    """It starts with a comment that names the one script for its --flagfile."""
    lines = path.read_text().splitlines()
    assert lines[0].startswith("# ")
    assert all(line == "" or line.startswith(("#", "--")) for line in lines)
    given = [line.split("=")[0] for line in lines if line.startswith("--")]
    assert len(given) == len(set(given))
    # An ablation is made of several files.
    assert "--train_batch_size" in given or path.parent.name == "ablations"


ROWS = sorted({row.flags for table in TABLES.values() for row in table.rows})
# Only the row flags that a command has; it ignores others.
ROW_FLAGS = {
    "create_pretraining_data": (
        "next_sentence_prediction",
        "masking_mix",
        "do_whole_word_mask",
    ),
    "run_pretraining": ("next_sentence_prediction", "bert_config_file"),
    "run_classifier": ("bilstm", "bert_config_file"),
    "run_ner": ("bilstm", "bert_config_file"),
}


@pytest.fixture(scope="module")
def ablation_flags():
    """Return row -> the settings that all commands together get from its flag file."""
    found = {name: {} for name in ROWS}
    for script, names in ROW_FLAGS.items():
        files = ["ablations/bert", *(f"ablations/{name}" for name in ROWS)]
        given = flags_under(script, files)
        usual = given["ablations/bert"]
        for row in ROWS:
            own = given[f"ablations/{row}"]
            changed = {name: own[name] for name in own if own[name] != usual[name]}
            assert set(changed) <= set(names)
            found[row] |= changed
    return found


def test_the_rows_of_the_ablations(ablation_flags):
    """Each row differs from the paper's BERT only in its table's subject."""
    folder = "configs/ablations"
    no_nsp = {"next_sentence_prediction": False}
    config = f"{folder}/bert_tiny_left_to_right.json"
    expected = {
        "bert": {},
        "table5_no_nsp": no_nsp,
        "table5_ltr_no_nsp": {**no_nsp, "bert_config_file": config},
        "table5_ltr_no_nsp_bilstm": {"bilstm": True},
        "whole_word_masking": {"do_whole_word_mask": True},
    }
    for size in ("micro", "deep", "mini"):
        path = f"{folder}/bert_{size}.json"
        expected[f"table6_{size}"] = {"bert_config_file": path}
    for row in TABLES["table8"].rows[1:]:
        expected[row.flags] = {"masking_mix": row.label}
    assert ablation_flags == expected


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("ablations/*.json")))
def test_the_models_of_the_ablations(path):
    config = BertConfig.from_json_file(path)
    assert config.to_json_string() == path.read_text()
    assert config.initializer_range == round(config.hidden_size**-0.5, 2)
    tiny = BertConfig.from_json_file(CONFIGS / "ablations" / "bert_tiny.json")
    sizes = ("hidden_size", "num_hidden_layers", "num_attention_heads")
    same = dataclasses.replace(
        tiny,
        **{name: getattr(config, name) for name in sizes},
        intermediate_size=4 * config.hidden_size,
        initializer_range=config.initializer_range,
        causal_attention="left_to_right" in path.stem,
    )
    assert config == same


@pytest.mark.parametrize(
    "script, name",
    [
        ("create_pretraining_data", "records"),
        ("create_pretraining_data", "heldout"),
        ("run_pretraining", "pretraining"),
        ("run_pretraining", "evaluation"),
        *((task.script.removesuffix(".py"), name) for name, task in TASKS.items()),
    ],
)
def test_what_all_rows_have_in_common_is_for_one_command(script, name):
    assert flags_under(script, [f"ablations/{name}"])
