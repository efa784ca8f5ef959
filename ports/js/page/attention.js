// A chart of one attention map, with controls for its layer, head and token.

import { bars, element } from "./views.js";

const SVG = "http://www.w3.org/2000/svg";
// Maps with more tokens have small cells without labels.
const MOST_LABELS = 48;
// Width and height of a cell with labels, in pixels.
const CELL = { least: 14, most: 30 };
// Weights below this are invisible.
const LEAST = 0.002;
const chosen = { layer: 0, head: 0 }; // kept for the next run

/** Returns a section with the map of the first of the texts, [{label, text}, ...]. */
export function attentionOf(bert, texts) {
  const { num_hidden_layers: layers, num_attention_heads: heads } = bert.card.config;
  const chart = element("div", { className: "attention-chart" });
  const text = choice("Text of the map", texts.map(({ label }) => label));
  const layer = choice("Layer", numbers(layers), Math.min(chosen.layer, layers - 1));
  const head = choice("Head", numbers(heads), Math.min(chosen.head, heads - 1));
  const token = choice("Token", []);
  let map = null;
  let loading = null;

  const draw = () =>
    chart.replaceChildren(...drawn(map, token.select, chart.clientWidth));
  const load = async () => {
    loading?.abort();
    loading = new AbortController();
    const { signal } = loading;
    const [n, m] = [layer.select, head.select].map((one) => Number(one.value));
    Object.assign(chosen, { layer: n, head: m });
    chart.setAttribute("aria-busy", "true");
    try {
      map = await bert.attention(texts[text.select.value].text, n, m, { signal });
      const names = map.tokens.map((name, index) => `${index + 1}: ${name}`);
      const before = Math.min(token.select.value || 0, names.length - 1);
      fill(token.select, names, before);
      draw();
    } catch (error) {
      if (error.name === "AbortError") {
        return;
      }
      chart.replaceChildren(element("p", { className: "message" }, error.message));
    }
    chart.removeAttribute("aria-busy");
  };
  for (const { select } of [text, layer, head]) {
    select.addEventListener("change", load);
  }
  token.select.addEventListener("change", draw);
  text.box.hidden = texts.length < 2;
  load();
  return element(
    "section",
    { className: "attention" },
    element("h3", {}, "Attention"),
    element(
      "div",
      { className: "row" },
      ...[text, layer, head, token].map(({ box }) => box),
    ),
    chart,
  );
}

function numbers(count) {
  return Array.from({ length: count }, (_, index) => String(index));
}

// Returns {box, select}: a labeled list.
function choice(label, names, index = 0) {
  const select = element("select", { ariaLabel: label });
  fill(select, names, index);
  return { box: element("label", { className: "choice" }, label, select), select };
}

function fill(select, names, index) {
  const options = names.map((name, value) => element("option", { value }, name));
  select.replaceChildren(...options);
  select.value = String(index);
}

function drawn({ tokens, probs }, select, width) {
  const index = Number(select.value);
  const rows = probs[index]
    .map((value, other) => ({ label: `${other + 1}: ${tokens[other]}`, value }))
    .sort((one, other) => other.value - one.value)
    .slice(0, 5)
    .map((row, rank) => ({ ...row, isBest: rank === 0 }));
  const picture = heatMap(tokens, probs, index, width, (row) => {
    select.value = String(row);
    select.dispatchEvent(new Event("change"));
  });
  const frame = element("div", { className: "map", tabIndex: 0 }, picture);
  frame.setAttribute("role", "group");
  frame.setAttribute("aria-label", "Attention map, scrollable");
  return [
    frame,
    element("p", { className: "hint" }, "Rows attend to columns. Click a row."),
    element("h3", {}, `“${tokens[index]}” attends most to`),
    bars(rows),
  ];
}

function heatMap(tokens, probs, chosenRow, width, onRow) {
  const count = tokens.length;
  const isLabeled = count <= MOST_LABELS;
  const longest = Math.max(...tokens.map((token) => token.length));
  const margin = isLabeled ? Math.min(longest, 14) * 7 + 8 : 4;
  const fitting = Math.floor((width - margin - 2) / count);
  const labeled = Math.max(CELL.least, Math.min(CELL.most, fitting));
  const cell = isLabeled ? labeled : count <= 128 ? 6 : 2;
  const size = margin + count * cell + 2;
  const at = (number) => margin + number * cell;
  const picture = svg("svg", { width: size, height: size, role: "img" });
  picture.setAttribute(
    "aria-label",
    `Heat map of ${count} by ${count} tokens: rows attend to columns. ` +
      "The list below has the largest numbers of one row.",
  );
  picture.append(
    svg("rect", {
      class: "map-page",
      x: margin,
      y: margin,
      width: count * cell,
      height: count * cell,
    }),
  );
  probs.forEach((row, i) =>
    row.forEach((value, j) => {
      if (value >= LEAST) {
        const place = { x: at(j), y: at(i), width: cell, height: cell };
        // Most heads spread their attention thinly, so color follows the square root.
        const opacity = Math.sqrt(Math.min(1, value)).toFixed(3);
        const title = svg("title");
        title.textContent = `${tokens[i]} → ${tokens[j]}: ${value.toFixed(3)}`;
        const rectangle = svg("rect", { ...place, class: "map-cell", opacity });
        rectangle.append(title);
        picture.append(rectangle);
      }
    }),
  );
  if (isLabeled) {
    tokens.forEach((token, index) => {
      const shown = token.length > 14 ? `${token.slice(0, 13)}…` : token;
      const middle = at(index) + cell / 2 + 4;
      const left = svg("text", { x: margin - 5, y: middle, "text-anchor": "end" });
      const top = svg("text", { transform: `translate(${middle} ${margin - 5}) rotate(-90)` });
      left.textContent = shown;
      top.textContent = shown;
      left.setAttribute("class", index === chosenRow ? "map-chosen" : "");
      picture.append(left, top);
    });
  }
  const line = { x: margin, y: at(chosenRow), width: count * cell, height: cell };
  picture.append(svg("rect", { ...line, class: "map-row" }));
  picture.addEventListener("click", (event) => {
    const y = event.clientY - picture.getBoundingClientRect().top;
    const row = Math.floor((y - margin) / cell);
    if (row >= 0 && row < count) {
      onRow(row);
    }
  });
  return picture;
}

function svg(name, attributes = {}) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, value);
  }
  return made;
}
