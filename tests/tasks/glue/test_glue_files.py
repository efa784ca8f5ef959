"""GLUE's distributed files are read, and damaged ones are rejected."""

import logging
import shutil
import zlib

import pytest

from official_bert.errors import UserError
from official_bert.tables.examples import Example
from official_bert.tasks.glue.files import read_examples, read_file
from official_bert.tasks.glue.tasks import TASKS

RTE_HEADER = "index\tsentence1\tsentence2\tlabel\n"


def write(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def texts(examples):
    return [(one.text_a, one.text_b, one.label) for one in examples]


def test_a_pair_task(tmp_path):
    write(tmp_path, "train.tsv", RTE_HEADER + "0\tA.\tB.\tentailment\n")
    write(tmp_path, "dev.tsv", RTE_HEADER + "0\tC.\tD.\tnot_entailment")
    write(tmp_path, "test.tsv", "index\tsentence1\tsentence2\n0\tE.\tF.\n1\tG.\tH.\n")
    expected = {
        "train": [Example("train-1", "A.", "B.", "entailment")],
        "dev": [Example("dev-1", "C.", "D.", "not_entailment")],
        "test": [Example("test-1", "E.", "F."), Example("test-2", "G.", "H.")],
    }
    for split, examples in expected.items():
        assert read_examples(TASKS["rte"], str(tmp_path), split) == examples


def test_cola_has_a_header_in_its_test_set_only(tmp_path):
    write(tmp_path, "train.tsv", "gj04\t1\t\tIt rained.\nbc01\t0\t*\tRained it.\n")
    write(tmp_path, "test.tsv", "index\tsentence\n0\tIt snowed.\n")
    found = read_examples(TASKS["cola"], str(tmp_path), "train")
    assert found == [
        Example("train-0", "It rained.", None, "1"),
        Example("train-1", "Rained it.", None, "0"),
    ]
    found = read_examples(TASKS["cola"], str(tmp_path), "test")
    assert found == [Example("test-1", "It snowed.")]


def test_labels_of_sts_b_are_numbers_and_columns_count_from_the_end(tmp_path):
    header = "index\tgenre\tsentence1\tsentence2\tscore\n"
    path = write(tmp_path, "dev.tsv", header + "0\tx\tA.\tB.\t3.250\n")
    found = read_file(path, TASKS["sts-b"], "dev")
    assert found == [Example("dev-1", "A.", "B.", 3.25)]


def test_the_halves_of_mnli_are_two_files(tmp_path):
    row = "\t".join(["-"] * 8 + ["A.", "B.", "{}", "neutral"]) + "\n"
    for half in ("matched", "mismatched"):
        write(tmp_path, f"dev_{half}.tsv", row.format("label1") + row.format(half))
    write(tmp_path, "train.tsv", row + row)
    for name in ("mnli", "mnli-mm"):
        assert read_examples(TASKS[name], str(tmp_path), "train")
        found = read_examples(TASKS[name], str(tmp_path), "dev")
        assert texts(found) == [("A.", "B.", "neutral")]
    (tmp_path / "dev_matched.tsv").unlink()
    assert read_examples(TASKS["mnli-mm"], str(tmp_path), "dev")
    with pytest.raises(UserError, match="dev_matched.tsv"):
        read_examples(TASKS["mnli"], str(tmp_path), "dev")


def test_quotes_and_strange_line_ends_are_text(tmp_path):
    rows = 'sentence\tlabel\n"A\t0\nB"" C\u2028D\x85E\x0bF\x1cG\rH\t1\n \t0\n'
    path = write(tmp_path, "train.tsv", rows)
    assert texts(read_file(path, TASKS["sst-2"], "train")) == [
        ('"A', None, "0"),
        ('B"" C\u2028D\x85E\x0bF\x1cG\rH', None, "1"),
        (" ", None, "0"),
    ]


def test_byte_order_mark_crlf_and_blank_lines(tmp_path, caplog):
    rows = "\ufeff1\t1\t\tIt rained.\r\n\r\n2\t0\t\tRained it.\r\n\n"
    path = write(tmp_path, "train.tsv", rows)
    found = read_file(path, TASKS["cola"], "train")
    assert texts(found) == [("It rained.", None, "1"), ("Rained it.", None, "0")]
    assert [one.guid for one in found] == ["train-0", "train-2"]
    crlf = RTE_HEADER.replace("\n", "\r\n") + "0\tA.\tB.\tentailment\r\n"
    path = write(tmp_path, "dev.tsv", crlf)
    assert texts(read_file(path, TASKS["rte"], "dev")) == [("A.", "B.", "entailment")]
    assert not caplog.records


def test_malformed_rows_are_left_out_and_listed(tmp_path, caplog):
    good, short, long = "0\tA.\tB.\tentailment\n", "0\tA.\n", "0\tA.\t.\tB.\tx\n"
    path = write(tmp_path, "train.tsv", RTE_HEADER + good + short + good + long)
    with caplog.at_level(logging.WARNING):
        found = read_file(path, TASKS["rte"], "train")
    assert [one.guid for one in found] == ["train-1", "train-3"]
    assert caplog.messages == [
        f"{path}: 2 rows do not have 4 cells; they were left out: rows 3, 5."
    ]


def test_a_list_of_rows_ends_somewhere(tmp_path, caplog):
    rows = RTE_HEADER + "0\tA.\tB.\tentailment\n" + "x\n" * 99
    path = write(tmp_path, "train.tsv", rows)
    with caplog.at_level(logging.WARNING):
        read_file(path, TASKS["rte"], "train")
    assert "99 rows" in caplog.text
    assert "rows 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 89 more." in caplog.text


def test_no_row_of_a_test_set_is_left_out(tmp_path, caplog):
    """Otherwise all later predictions would be sent for the wrong rows."""
    rows = "index\tsentence1\tsentence2\n0\tA.\n1\tC.\tD.\tE.\n2\tF.\tG.\n"
    path = write(tmp_path, "test.tsv", rows)
    with caplog.at_level(logging.WARNING):
        found = read_file(path, TASKS["rte"], "test")
    assert texts(found) == [("A.", "", None), ("C.", "D.", None), ("F.", "G.", None)]
    assert "2 rows do not have 3 cells; missing cells are empty" in caplog.text
    # The columns of STS-B are counted from the end of the header.
    path = write(tmp_path, "test.tsv", "index\ta\tb\n0\tA.\tB.\tC.\n")
    assert texts(read_file(path, TASKS["sts-b"], "test")) == [("A.", "B.", None)]


def test_bytes_that_are_not_utf8(tmp_path, caplog):
    rows = RTE_HEADER.encode() + b"0\tcaf\xe9.\tB\xc3\xa9.\tentailment\n"
    path = write(tmp_path, "train.tsv", rows)
    with caplog.at_level(logging.WARNING):
        found = read_file(path, TASKS["rte"], "train")
    assert texts(found) == [("caf.", "Bé.", "entailment")]
    assert "1 rows have bytes that are not UTF-8" in caplog.text
    assert caplog.text.rstrip().endswith("rows 2.")


def test_unknown_labels_name_file_and_row(tmp_path):
    rows = RTE_HEADER + "0\tA.\tB.\tentailment\n1\tA.\tB.\tneutral\n"
    path = write(tmp_path, "dev.tsv", rows)
    with pytest.raises(UserError) as caught:
        read_examples(TASKS["rte"], str(tmp_path), "dev")
    assert str(caught.value) == (
        f"{path}: row 3: the label 'neutral' is not one of entailment, "
        "not_entailment, the labels of rte. Correct the row or remove it."
    )


@pytest.mark.parametrize("label", ["5.1", "-0.1", "nan", "inf", "good", ""])
def test_what_is_no_score_of_sts_b(tmp_path, label):
    path = write(tmp_path, "dev.tsv", f"a\tb\tscore\nA.\tB.\t{label}\n")
    with pytest.raises(UserError, match=f"row 2: the label '{label}' is not a number"):
        read_file(path, TASKS["sts-b"], "dev")


def test_missing_files_and_splits(tmp_path):
    with pytest.raises(
        UserError, match="its folder QQP do not contain train.tsv. Give"
    ):
        read_examples(TASKS["qqp"], str(tmp_path), "train")
    with pytest.raises(UserError, match="ax has no train set, only test."):
        read_examples(TASKS["ax"], str(tmp_path), "train")


def test_files_without_examples(tmp_path):
    path = write(tmp_path, "train.tsv", RTE_HEADER)
    with pytest.raises(UserError, match="train.tsv contains no examples"):
        read_file(path, TASKS["rte"], "train")
    path = write(tmp_path, "train.tsv", "")
    with pytest.raises(UserError, match="first row has 0 columns"):
        read_file(path, TASKS["rte"], "train")


def test_another_tasks_file(tmp_path):
    path = write(tmp_path, "train.tsv", "sentence\tlabel\nA.\t1\n")
    with pytest.raises(UserError, match="has 2 columns, but qqp needs 6, separated"):
        read_file(path, TASKS["qqp"], "train")
    with pytest.raises(UserError, match="has 2 columns, but sts-b needs 3"):
        read_file(path, TASKS["sts-b"], "train")


def test_the_folder_of_a_task_or_that_of_all(tmp_path):
    write(tmp_path, "RTE/dev.tsv", RTE_HEADER + "0\tA.\tB.\tentailment\n")
    found = read_examples(TASKS["rte"], str(tmp_path), "dev")
    assert read_examples(TASKS["rte"], str(tmp_path / "RTE"), "dev") == found


def test_the_diagnostic_set_is_beside_mnli(tmp_path):
    rows = "index\tsentence1\tsentence2\n0\tA.\tB.\n"
    write(tmp_path, "diagnostic/diagnostic.tsv", rows)
    (tmp_path / "MNLI").mkdir()
    for folder in (tmp_path, tmp_path / "MNLI", tmp_path / "diagnostic"):
        found = read_examples(TASKS["ax"], str(folder), "test")
        assert texts(found) == [("A.", "B.", None)]


def test_mrpc_from_microsofts_files(tmp_path):
    header = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    rows = "1\t10\t11\tA.\tB.\n0\t11\t10\tC.\tD.\n1\t10\t12\tE.\tF.\n"
    write(tmp_path, "msr_paraphrase_train.txt", "\ufeff" + header + rows)
    write(tmp_path, "msr_paraphrase_test.txt", header + "1\t20\t21\tG.\tH.\n")
    with pytest.raises(
        UserError, match="dev_ids.tsv, which separates them, is missing"
    ):
        read_examples(TASKS["mrpc"], str(tmp_path), "train")
    write(tmp_path, "dev_ids.tsv", "\ufeff11\t10\r\n")
    found = {
        split: texts(read_examples(TASKS["mrpc"], str(tmp_path), split))
        for split in ("train", "dev", "test")
    }
    assert found == {
        "train": [("A.", "B.", "1"), ("E.", "F.", "1")],
        "dev": [("C.", "D.", "0")],
        "test": [("G.", "H.", None)],
    }


# First lines of files: a training file and a test file.
FIRST_LINES = {
    "qqp": (
        "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
        "7\t1\t2\tA?\tB?\t1\n8\t3\t4\tC?\tD?\t0\n",
        "id\tquestion1\tquestion2\n0\tE?\tF?\n",
        "1",
    ),
    "qnli": (
        "index\tquestion\tsentence\tlabel\n"
        "0\tA?\tB?\tentailment\n1\tC?\tD?\tnot_entailment\n",
        "index\tquestion\tsentence\n0\tE?\tF?\n",
        "entailment",
    ),
    "wnli": (
        "index\tsentence1\tsentence2\tlabel\n0\tA?\tB?\t1\n1\tC?\tD?\t0\n",
        "index\tsentence1\tsentence2\n0\tE?\tF?\n",
        "1",
    ),
}


@pytest.mark.parametrize("name", FIRST_LINES)
def test_first_lines(tmp_path, name):
    train, test, label = FIRST_LINES[name]
    write(tmp_path, "train.tsv", train)
    write(tmp_path, "test.tsv", test)
    first, second = read_examples(TASKS[name], str(tmp_path), "train")
    assert texts([first]) == [("A?", "B?", label)]
    assert texts([second])[0][:2] == ("C?", "D?") and second.label != label
    found = read_examples(TASKS[name], str(tmp_path), "test")
    assert texts(found) == [("E?", "F?", None)]


def test_xnli_in_chinese(tmp_path):
    rows = "premise\thypo\tlabel\n甲\t乙\tcontradictory\n丙\t丁\tneutral\n"
    write(tmp_path, "multinli/multinli.train.zh.tsv", rows)
    row = "{}\t{}\t\t\t\t\t{}\t{}\n"
    rows = [("language", "gold_label", "sentence1", "sentence2")]
    # Rows of other languages are ignored, even if their label is wrong.
    rows += [("fr", "?", "A.", "B."), ("zh", "entailment", "甲", "乙")]
    write(tmp_path, "xnli.dev.tsv", "".join(row.format(*cells) for cells in rows))
    found = texts(read_examples(TASKS["xnli"], str(tmp_path), "train"))
    assert found == [("甲", "乙", "contradiction"), ("丙", "丁", "neutral")]
    shutil.copy(tmp_path / "xnli.dev.tsv", tmp_path / "xnli.test.tsv")
    for split in ("dev", "test"):
        found = texts(read_examples(TASKS["xnli"], str(tmp_path), split))
        assert found == [("甲", "乙", "entailment")]


# Counts in table 1 of the GLUE paper, for tasks with complete data.
SIZES = {
    ("cola", "train"): 8551,
    ("cola", "dev"): 1043,
    ("cola", "test"): 1063,
    ("sst-2", "train"): 67349,
    ("sst-2", "dev"): 872,
    ("sst-2", "test"): 1821,
    ("mrpc", "train"): 3668,
    ("mrpc", "dev"): 408,
    ("mrpc", "test"): 1725,
    ("sts-b", "train"): 5749,
    ("sts-b", "dev"): 1500,
    ("sts-b", "test"): 1379,
    ("mnli", "dev"): 9815,
    ("ax", "test"): 1104,
    ("qnli", "dev"): 5463,
    ("qnli", "test"): 5463,
    ("rte", "train"): 2490,
    ("rte", "dev"): 277,
    ("rte", "test"): 3000,
    ("wnli", "train"): 635,
    ("wnli", "dev"): 71,
    ("wnli", "test"): 146,
}


@pytest.mark.parametrize(("name", "split"), SIZES)
def test_the_real_files(shared, name, split, caplog):
    found = read_examples(TASKS[name], str(shared / "data" / "glue"), split)
    assert len(found) == SIZES[name, split]
    assert all(one.text_a for one in found)
    assert all((one.label is None) == (split == "test") for one in found)
    assert not caplog.records


def test_mrpc_is_the_same_in_both_layouts(shared, tmp_path):
    folder = shared / "data" / "glue" / "MRPC"
    for name in ("msr_paraphrase_train.txt", "msr_paraphrase_test.txt", "dev_ids.tsv"):
        shutil.copyfile(folder / name, tmp_path / name)
    for split in ("train", "dev", "test"):
        found = read_examples(TASKS["mrpc"], str(tmp_path), split)
        expected = read_examples(TASKS["mrpc"], str(folder), split)
        assert texts(found) == texts(expected)


def test_a_part_of_the_real_qqp(shared):
    path = shared / "data" / "glue" / "QQP" / "qqp_subset.tsv"
    found = read_file(str(path), TASKS["qqp"], "train")
    assert len(found) == 23_496
    assert zlib.crc32(found[0].text_a.encode()) == 2133919934
    assert {one.label for one in found} == {"0", "1"}
