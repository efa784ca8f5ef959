// Elements of the page that show results. Texts are inserted as text, never as HTML.

const HUES = [215, 145, 32, 280, 350, 185, 60, 320, 100, 250];

/** Returns an element with properties and children (elements or strings). */
export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

export function percent(value) {
  return `${(100 * value).toFixed(1)} %`;
}

/**
 * Returns a list of labels with bars; rows are {label, value, isBest, text}. A row
 * without a value has no bar.
 */
export function bars(rows) {
  const list = element("ol", { className: "bars" });
  for (const { label, value, isBest = false, text } of rows) {
    const name = element("span", { className: "label", dir: "auto" }, label);
    const item = element("li", { className: isBest ? "best" : "" }, name);
    list.append(item);
    if (value === undefined) {
      continue;
    }
    const fill = element("div", { className: "fill" });
    fill.style.width = `${Math.min(1, Math.max(0, value)) * 100}%`;
    const track = element("div", { className: "track" }, fill);
    track.setAttribute("aria-hidden", "true");
    item.append(element("span", { className: "number" }, text ?? percent(value)), track);
  }
  return list;
}

export function headline(text) {
  return element("p", { className: "headline", dir: "auto" }, text);
}

/** Returns the elements of a classifier's result. */
export function classification(result) {
  if ("value" in result) {
    return [headline(result.value.toFixed(3))];
  }
  const { labels, scores } = result;
  const rows = scores.map(({ label, probability }) => ({
    label,
    value: probability,
    isBest: labels.includes(label),
  }));
  rows.sort((one, other) => other.value - one.value);
  return [headline(labels.join(", ") || "No label"), bars(rows.slice(0, 50))];
}

/** Returns the elements of an answer, highlighted in its context. */
export function answer(result, context) {
  const { start, end, text } = result;
  const shown = element("p", { className: "reading context", dir: "auto", tabIndex: 0 });
  shown.setAttribute("aria-label", "The context");
  shown.append(context.slice(0, start));
  if (end > start) {
    shown.append(element("mark", {}, context.slice(start, end)));
  }
  shown.append(context.slice(end));
  const rows = result.candidates.slice(0, 5).map((one) => ({
    label: one.text || "No answer",
    value: one.probability,
    isBest: one.start === start && one.end === end,
  }));
  const scores = [`Score ${result.score.toFixed(2)}`];
  if (result.nullScore !== null) {
    scores.push(`score of no answer ${result.nullScore.toFixed(2)}`);
  }
  const more = rows.length
    ? bars(rows)
    : element("p", { className: "quiet" }, scores.join(", "));
  return [headline(text || "No answer"), shown, more];
}

/** Returns the elements of entities in their text. */
export function entities(found, text) {
  const labels = [...new Set(found.map((one) => one.label))].sort();
  const shown = element("p", { className: "reading", dir: "auto" });
  let at = 0;
  for (const one of found) {
    const tag = element("span", { className: "tag" }, one.label || "entity");
    const mark = element("mark", { className: "entity" }, one.text, tag);
    mark.style.setProperty("--hue", HUES[labels.indexOf(one.label) % HUES.length]);
    shown.append(text.slice(at, one.start), mark);
    at = one.end;
  }
  shown.append(text.slice(at));
  const rows = found.slice(0, 50).map((one) => ({
    label: `${one.text} — ${one.label || "entity"}`,
    value: one.probability,
  }));
  const count = found.length === 1 ? "1 entity" : `${found.length} entities`;
  return [headline(count), shown, ...(rows.length ? [bars(rows)] : [])];
}

/** Returns the elements of the tokens for each [MASK]. */
export function masks(found, text) {
  const shown = element("p", { className: "reading", dir: "auto" });
  text.split("[MASK]").forEach((part, index) => {
    if (index) {
      shown.append(element("mark", {}, found[index - 1][0].token));
    }
    shown.append(part);
  });
  const lists = found.flatMap((candidates, index) => {
    const rows = candidates.map(({ token, probability }, rank) => ({
      label: token,
      value: probability,
      isBest: rank === 0,
    }));
    const title = element("h3", {}, `Mask ${index + 1}`);
    return found.length > 1 ? [title, bars(rows)] : [bars(rows)];
  });
  return [shown, ...lists];
}

/** Returns the elements of the cosine of two texts. */
export function cosine(value) {
  const row = { label: "Cosine similarity", value, isBest: true };
  return [headline(value.toFixed(3)), bars([{ ...row, text: value.toFixed(3) }])];
}

/** Returns the elements of a search's result. */
export function matches(found) {
  if (found.length === 1) {
    return cosine(found[0].similarity);
  }
  const rows = found.map(({ text, similarity }, rank) => ({
    label: text,
    value: similarity,
    isBest: rank === 0,
    text: similarity.toFixed(3),
  }));
  return [headline(found[0].text), bars(rows)];
}

/** Fills the model card, a <dl>. */
export function modelCard(list, card, backend) {
  const rows =
    backend.accelerator === "server"
      ? servedRows(card, backend)
      : browserRows(card, backend);
  list.replaceChildren();
  for (const [name, value] of Object.entries(rows)) {
    if (value) {
      list.append(
        element("div", {}, element("dt", {}, name), element("dd", {}, String(value))),
      );
    }
  }
}

function browserRows(card, backend) {
  const { architecture: size, score } = card;
  const threads = `${backend.threads} ${backend.threads === 1 ? "thread" : "threads"}`;
  const isGpu = backend.accelerator === "webgpu";
  return {
    Task: card.what,
    "Runs on": isGpu ? "WebGPU" : `WebAssembly, ${threads}`,
    Note: backend.note && `${isGpu ? "" : "Not on the GPU: "}${backend.note}`,
    Architecture: architecture(size.layers, size.hidden_size, size.heads),
    Vocabulary: vocabulary(size.vocabulary, card.do_lower_case),
    "Longest input": `${card.lengths[card.lengths.length - 1]} tokens`,
    Labels: card.labels.slice(0, 20).join(", "),
    File: `${(card.model_bytes / 1e6).toFixed(1)} MB, ${card.quantization}`,
    Score:
      score &&
      `${score.metric} ${score.after.toFixed(2)} (${score.before.toFixed(2)} ` +
        "before the conversion)",
    "Training steps": card.global_step,
    "Made with": card.made_with,
  };
}

function servedRows({ config, ...card }, { version }) {
  return {
    Task: card.what,
    "Runs on": `This server, version ${version}`,
    "Address for requests": `v1/models/${card.name}:predict`,
    Architecture:
      config &&
      architecture(
        config.num_hidden_layers,
        config.hidden_size,
        config.num_attention_heads,
      ),
    Vocabulary: card.vocabulary && vocabulary(card.vocabulary, card.do_lower_case),
    Labels: card.labels.slice(0, 20).join(", "),
  };
}

function architecture(layers, size, heads) {
  return `${layers} layers, hidden size ${size}, ${heads} attention heads`;
}

function vocabulary(count, isLowerCased) {
  const casing = isLowerCased ? "lower-cased" : "cased";
  return `${count.toLocaleString("en")} tokens, ${casing}`;
}
