"""The README beside a `.tflite`: what goes in, what comes out."""

from official_bert.fine_tuning.tflite_model import FILE, SIGNATURE

# Name of an input or output of a signature -> what it is.
TENSORS = {
    "input_ids": "ids of the tokens, then 0",
    "input_mask": "1 for each token, then 0",
    "segment_ids": "1 for the tokens of a second text, 0 for others",
    "logits": "scores, before the softmax or sigmoid",
    "probabilities": "of the labels, in the order of labels.txt",
    "start_logits": "of each token, to be the answer's first; the first: no answer",
    "end_logits": "of each token, to be the answer's last; the first: no answer",
    "tags": "number of each token's tag, a line of labels.txt, counted from 0",
    "tag_logits": "of each token, the scores of all tags, before the softmax",
    "pooled_output": "a vector for the whole text",
    "sequence_output": "a vector for each token",
}


def text(model, quantization, report, outputs):
    """Return the text.

    Args:
      model: `DeviceModel`.
      quantization: one of `constants.QUANTIZATIONS`.
      report: `writer.Report`.
      outputs: dict of name -> (dtype, shape of the shortest signature).
    """
    names = ", ".join(f"`{SIGNATURE.format(n)}`" for n in model.lengths)
    first = SIGNATURE.format(model.lengths[0])
    lines = [
        f"# {FILE}: {model.what}, {quantization}",
        "",
        f"Signatures: {names}. Take the shortest that has room for all tokens.",
        "",
        f"Each takes `input_ids`, `input_mask` and `segment_ids`, int32 [1, length]; "
        f"`{first}` returns",
        "",
        "| result | | |",
        "|---|---|---|",
        *(
            f"| `{name}` | {dtype} {list(shape)} | {TENSORS[name]} |"
            for name, (dtype, shape) in sorted(outputs.items())
        ),
        "",
        "Text becomes ids by `vocab.txt` and `tokenizer_config.json`, as "
        "`docs/tokenizer.md` of official_bert tells; `tokenizer.js` does it in "
        "JavaScript. Check another port with `golden_tokens.json`.",
        "",
        f"Numbers differ from Python's by {report.difference:.1e} at most on a few "
        "texts.",
    ]
    if report.metric:
        lines.append(report.scores())
    return "\n".join(lines) + "\n"
