"""The commands that an ablation runs, the ones it skips, and its output."""

import json
import math
import pathlib

import pytest
from places import ROOT

from official_bert.ablations import heldout_text, reports, steps
from official_bert.ablations.tables import TABLES, TASKS, find_table
from official_bert.errors import UserError

SCORES = (0.5, 0.6)
GLUE = {"sst-2": ["--data_dir=glue"], "sts-b": ["--data_dir=glue"]}


class Commands:
    """Fake commands that write their output files immediately."""

    def __init__(self, folder, checkpoints=(2, 4), stop_at=None, stopped=None):
        self.folder, self.checkpoints, self.stop_at = folder, checkpoints, stop_at
        # A step whose command is stopped early, without an error.
        self.stopped = stopped
        self.steps = {}

    def __call__(self, step):
        if step.name == self.stop_at:
            raise KeyboardInterrupt
        self.steps[step.name] = step
        kind, *_, last = step.name.split("/")
        place = pathlib.Path(self.folder, step.name)
        place.mkdir(parents=True)
        if kind == "models":
            for number in self.checkpoints:
                (place / f"model.ckpt-{number}.index").touch()
            (place / "run.json").write_text('{"flags": {"save_checkpoints_steps": 2}}')
            if step.name != self.stopped:
                (place / "bert_model.ckpt.index").touch()
        elif kind == "heldout":
            (place / "eval_results.txt").write_text(
                "global_step = 4\nmasked_lm_loss = 2.0\n"
            )
        elif kind == "fine_tuned":
            scores = SCORES[: 1 if step.name == self.stopped else None]
            rows = [{TASKS[last].metric: score, "seed": 1} for score in scores]
            if "--num_seeds=1" in step.arguments:
                if step.name != self.stopped:
                    text = f"eval_{TASKS[last].metric} = {SCORES[0]}\nloss = 9.0\n"
                    (place / "eval_results.txt").write_text(text)
                return
            (place / "runs.json").write_text(json.dumps(rows))


def run(folder, commands, table="table5", rows=(), data=GLUE, num_seeds=2):
    study = steps.Study(str(folder), "a.txt", "b.txt", "vocab.txt", 20, num_seeds, data)
    journal = steps.Journal(
        study, commands, lambda path: (ROOT / path).read_text("utf-8")
    )
    table = find_table(table, rows)
    return table, steps.run_table(table, study, journal)


def test_models_and_records_are_shared_within_a_table(tmp_path):
    commands = Commands(tmp_path)
    run(tmp_path, commands)
    names = list(commands.steps)
    assert [name for name in names if name.startswith("records/")] == [
        "records/heldout",
        "records/bert",
        "records/table5_no_nsp",
    ]
    models = [name for name in names if name.startswith("models/")]
    assert len(models) == 3 and "models/table5_ltr_no_nsp_bilstm" not in models
    assert sum(name.startswith("fine_tuned/") for name in names) == 8
    arguments = commands.steps["fine_tuned/table5_ltr_no_nsp_bilstm/sst-2"].arguments
    assert f"--init_checkpoint={tmp_path}/models/table5_ltr_no_nsp" in arguments
    assert "--flagfile=configs/ablations/table5_ltr_no_nsp_bilstm.flags" in arguments
    assert {"--num_seeds=2", "--data_dir=glue"} <= set(arguments)


def test_what_is_done_is_not_done_again(tmp_path):
    stopped = Commands(tmp_path, stop_at="heldout/table5_no_nsp")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, stopped)
    rest = Commands(tmp_path)
    table, found = run(tmp_path, rest)
    assert not stopped.steps.keys() & rest.steps.keys()
    assert next(iter(rest.steps)) == "heldout/table5_no_nsp"
    nothing = Commands(tmp_path)
    assert run(tmp_path, nothing) == (table, found)
    assert not nothing.steps


def test_one_seed_has_the_scores_of_a_single_run(tmp_path):
    table, found = run(tmp_path, Commands(tmp_path), num_seeds=1)
    assert found[0]["scores"]["sst-2"] == {4: [SCORES[0]]}
    row = reports.lines_of(table, found)[4].split(" | ")
    assert row[2:4] == ["50.0", "50.0"]


@pytest.mark.parametrize(
    ("step", "num_seeds"),
    [
        ("models/bert", 2),
        ("fine_tuned/table5_no_nsp/sst-2", 2),
        ("fine_tuned/table5_no_nsp/sst-2", 1),
    ],
    ids=["model", "seeds", "seed"],
)
def test_a_command_that_was_told_to_stop_is_not_done(tmp_path, step, num_seeds):
    with pytest.raises(UserError, match=f"{step} was stopped before its end. Run"):
        run(tmp_path, Commands(tmp_path, stopped=step), num_seeds=num_seeds)
    (tmp_path / step).rename(tmp_path / "stopped")
    rest = Commands(tmp_path)
    run(tmp_path, rest, num_seeds=num_seeds)
    assert next(iter(rest.steps)) == step


def test_a_checkpoint_at_which_a_run_was_stopped_is_no_point_of_a_figure(tmp_path):
    _, found = run(tmp_path, Commands(tmp_path, (2, 3, 4, 5)), "figure5")
    assert list(found[0]["scores"]["sst-2"]) == [2, 4, 5]


def test_tables_share_their_first_row(tmp_path):
    run(tmp_path, Commands(tmp_path))
    others = Commands(tmp_path)
    run(tmp_path, others, "whole_words")
    assert {name.split("/")[1] for name in others.steps} == {"whole_word_masking"}


def test_a_line_that_a_kill_cut_off_is_made_again(tmp_path):
    run(tmp_path, Commands(tmp_path))
    path = tmp_path / steps.RESULTS_FILE
    whole = path.read_text()
    path.write_text(whole[:-9])
    last = json.loads(whole.splitlines()[-1])["step"]
    again = Commands(tmp_path)
    (tmp_path / last).rename(tmp_path / "killed")
    run(tmp_path, again)
    assert list(again.steps) == [last]
    assert len(steps.read_results(path)) == len(whole.splitlines())


def test_other_flags_are_refused(tmp_path):
    run(tmp_path, Commands(tmp_path), rows=["bert"])
    with pytest.raises(UserError, match="fine_tuned/bert/sst-2 .*with other flags"):
        run(tmp_path, Commands(tmp_path), rows=["bert"], num_seeds=3)
    path = tmp_path / steps.RESULTS_FILE
    path.write_text(path.read_text().replace("--learning_rate=1e-3", ""))
    with pytest.raises(UserError, match="models/bert .*with other flags or flag files"):
        run(tmp_path, Commands(tmp_path), rows=["bert"])


def test_another_config_is_refused(tmp_path):
    """A config that changed counts, although its flag file names the same path."""
    run(tmp_path, Commands(tmp_path), rows=["bert"])
    path = tmp_path / steps.RESULTS_FILE
    old = path.read_text()
    path.write_text(
        old.replace('\\"num_hidden_layers\\": 2', '\\"num_hidden_layers\\": 3')
    )
    assert path.read_text() != old
    with pytest.raises(UserError, match="models/bert .*with other flags or flag files"):
        run(tmp_path, Commands(tmp_path), rows=["bert"])


def test_a_figure_starts_from_each_checkpoint(tmp_path):
    commands = Commands(tmp_path)
    table, found = run(tmp_path, commands, "figure5")
    scores = {2: list(SCORES), 4: list(SCORES)}
    assert [each["scores"]["sst-2"] for each in found] == [scores, scores]
    starts = {
        name: argument
        for name, step in commands.steps.items()
        for argument in step.arguments
        if argument.startswith("--init_checkpoint") and "/sst-2" in name
    }
    model = f"--init_checkpoint={tmp_path}/models/table5_no_nsp"
    assert starts["fine_tuned/table5_no_nsp/sst-2"] == model
    assert starts["fine_tuned/table5_no_nsp_at_2/sst-2"] == f"{model}/model.ckpt-2"
    lines = reports.lines_of(table, found)
    assert lines[4] == "| masked LM |  | 2 | 55.0 ± 7.1 | 55.0 ± 7.1 |"
    assert lines[5] == "| masked LM | 7.39 | 4 | 55.0 ± 7.1 | 55.0 ± 7.1 |"
    pytest.importorskip("matplotlib")
    picture = reports.draw(table, found, str(tmp_path / "figure.png"))
    assert pathlib.Path(picture).read_bytes().startswith(b"\x89PNG")


def test_a_figure_needs_a_task(tmp_path):
    with pytest.raises(UserError, match="needs data of a task"):
        run(tmp_path, Commands(tmp_path), "figure5", data={})


def test_the_papers_numbers_stand_beside_ours(tmp_path):
    lines = reports.lines_of(*run(tmp_path, Commands(tmp_path)))
    assert lines[2].startswith("| Table 5 | held-out perplexity | SST-2 accuracy |")
    assert lines[2].endswith("| paper: SST-2 | paper: SQuAD F1 |")
    perplexity = f"{math.exp(2):.2f}"
    ours = "55.0 ± 7.1 | 55.0 ± 7.1"
    paper = "84.4 | 88.4 | 86.7 | 92.7 | 88.5"
    assert lines[4] == f"| BERT | {perplexity} | {ours} | {paper} |"
    assert lines[6].startswith(f"| LTR & No NSP | {perplexity}* |")
    assert lines[-1].startswith(
        "*: perplexity of every token given the tokens before it"
    )


def test_without_tasks_there_is_the_perplexity(tmp_path):
    lines = reports.lines_of(*run(tmp_path, Commands(tmp_path), "table6", data={}))
    assert lines[4:8] == [
        f"| {row.label} | {math.exp(2):.2f} |  |  |  |  |"
        for row in TABLES["table6"].rows
    ]


def test_rows_of_the_paper_alone_stand_below_ours(tmp_path):
    lines = reports.lines_of(*run(tmp_path, Commands(tmp_path), "table6"))
    assert lines[2].endswith(
        "| STS-B Pearson | paper: perplexity | paper: MNLI-m | "
        "paper: MRPC | paper: SST-2 |"
    )
    paper = "5.84 | 77.9 | 79.8 | 88.4"
    assert lines[8] == f"| 3 layers, 768 wide, 12 heads |  |  |  | {paper} |"
    assert len(lines) == 14


def test_unknown_names(tmp_path):
    with pytest.raises(UserError, match="'table9' is not a table. Choose from table5"):
        find_table("table9")
    with pytest.raises(UserError, match="--rows: table5 has no row 'x'"):
        find_table("table5", ["x"])


def test_each_twentieth_document_is_held_out(tmp_path):
    path = tmp_path / "text.txt"
    documents = [f"document {n}\n\x0c second line\n" for n in range(1, 43)]
    path.write_text("\n \n".join(documents))
    train, heldout = heldout_text.split_off([str(path)], str(tmp_path))
    kept = pathlib.Path(heldout).read_text()
    assert kept == "\n".join(documents[n - 1] for n in (20, 40))
    rest = pathlib.Path(train).read_text()
    assert rest == "\n".join(d for n, d in enumerate(documents, 1) if n not in (20, 40))
    assert heldout_text.split_off([str(path)], str(tmp_path)) == (train, heldout)
    path.write_text("another text\n")
    with pytest.raises(UserError, match="was made from other files. Choose another"):
        heldout_text.split_off([str(path)], str(tmp_path))
    assert pathlib.Path(train).read_text() == rest
    (tmp_path / "few").mkdir()
    path.write_text("\n\n".join(documents[:19]))
    with pytest.raises(UserError, match="has only 19 documents, but one in 20 is held"):
        heldout_text.split_off([str(path)], str(tmp_path / "few"))


def test_what_each_command_reads(tmp_path):
    """The evaluation text is not the training text."""
    commands = Commands(tmp_path)
    run(tmp_path, commands)
    for name, path in {
        "records/heldout": "b.txt",
        "records/bert": "a.txt",
        "heldout/bert": f"{tmp_path}/records/heldout.tfrecord",
        "models/bert": f"{tmp_path}/records/bert.tfrecord",
    }.items():
        assert f"--input_file={path}" in commands.steps[name].arguments
