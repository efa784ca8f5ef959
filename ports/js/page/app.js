// The page: opens the model, runs it and shows the results.
//
// Query parameters: ?accelerator=wasm or webgpu; ?threads=0 turns threads off;
// ?model=NAME on a server with several models.

import * as backend from "./backend.js";
import { taskOf } from "./tasks.js";
import { element, modelCard } from "./views.js";

const at = (id) => document.getElementById(id);
const isNarrow = () => matchMedia("(max-width: 48rem)").matches;
const isMac = /Mac|iPhone|iPad/.test(navigator.platform);
let running = null; // the AbortController of the current run

async function start() {
  showFooter();
  const query = new URLSearchParams(location.search);
  try {
    const { bert, names } = await backend.openModel(query, showLoaded);
    globalThis.bert = bert; // for the browser's console
    showNames(names, bert.card.name);
    showModel(bert);
    await keepForOffline();
  } catch (error) {
    fail(`The model cannot be loaded: ${error.message ?? error}`);
  }
}

function showFooter() {
  at("privacy").textContent = backend.PRIVACY;
  const links = backend.LINKS.map(([text, href]) => element("a", { href }, text));
  at("links").append(...links.flatMap((link, index) => (index ? [" · ", link] : [link])));
}

// Lists the models if there are several.
function showNames(names, name) {
  const options = names.map((value) => element("option", { value }, value));
  at("model").append(...options);
  at("model").value = name;
  at("model-box").hidden = names.length < 2;
  at("model").addEventListener("change", () => {
    location.search = new URLSearchParams({ model: at("model").value });
  });
}

function fail(text) {
  say(text);
  at("loading").hidden = true;
  at("backend").dataset.state = "failed";
  at("backend-text").textContent = "Not running";
}

function say(text) {
  at("message").textContent = text;
  at("message").hidden = !text;
}

function showLoaded(part) {
  at("loading-bar").value = part;
  const isDone = part >= 1;
  at("loading-text").textContent = isDone
    ? "Preparing the model"
    : `Loading the model: ${Math.floor(part * 100)} %`;
  if (isDone) {
    at("loading-bar").removeAttribute("value");
  }
}

function showModel(bert) {
  const { card, backend } = bert;
  const task = taskOf(card);
  if (!task) {
    throw new Error(
      `this page has no form for ${card.name}. Send requests to its address.`,
    );
  }
  document.title = card.name;
  at("name").textContent = card.name;
  at("what").textContent = card.what;
  at("backend").dataset.state = "ready";
  at("backend-text").textContent = nameOf(backend);
  at("backend").title = backend.note ?? "";
  at("run-key").textContent = isMac ? "⌘ ⏎" : "Ctrl ⏎";
  at("fields").append(...task.fields.map(fieldOf));
  at("examples").append(...task.examples.map((example) => buttonOf(bert, example)));
  modelCard(at("card-rows"), card, backend);
  at("card").open = !isNarrow();
  for (const id of ["work", "card"]) {
    at(id).hidden = false;
  }
  at("loading").hidden = true;
  at("form").addEventListener("submit", (event) => {
    event.preventDefault();
    run(bert, task);
  });
  at("stop").addEventListener("click", () => running?.abort());
  at("clear").addEventListener("click", () => clear(task));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      run(bert, task);
    } else if (event.key === "Escape") {
      running?.abort();
    }
  });
  at("text").focus();
}

function nameOf({ accelerator, threads, note, version }) {
  if (accelerator === "server") {
    return `Server, version ${version}`;
  }
  if (accelerator === "webgpu") {
    return note ? "WebGPU and WebAssembly" : "WebGPU";
  }
  return `WebAssembly, ${threads} ${threads === 1 ? "thread" : "threads"}`;
}

function fieldOf({ id, label, rows, hint }) {
  const area = element("textarea", { id, name: id, rows, dir: "auto" });
  const children = [element("label", { htmlFor: id }, label), area];
  if (hint) {
    children.push(element("p", { id: `${id}-hint`, className: "hint" }, hint));
    area.setAttribute("aria-describedby", `${id}-hint`);
  }
  return element("div", {}, ...children);
}

function buttonOf(bert, example) {
  // Label the button with the first field whose text differs between examples.
  const { examples } = taskOf(bert.card);
  const id = Object.keys(example).find((name) =>
    examples.some((other) => other !== example && other[name] !== example[name]),
  );
  const button = element("button", { type: "button" }, example[id]);
  button.addEventListener("click", () => {
    for (const [name, text] of Object.entries(example)) {
      at(name).value = text;
    }
    run(bert, taskOf(bert.card));
  });
  return button;
}

function clear(task) {
  running?.abort();
  for (const { id } of task.fields) {
    at(id).value = "";
  }
  at("elapsed").textContent = "";
  at("result").replaceChildren(element("p", { className: "empty" }, "No result yet."));
  say("");
  at("text").focus();
}

async function run(bert, task) {
  const values = Object.fromEntries(task.fields.map(({ id }) => [id, at(id).value]));
  const empty = task.fields.find(({ id }) => !values[id].trim());
  if (running || empty) {
    at(empty?.id ?? "text").focus();
    return;
  }
  running = new AbortController();
  setBusy(true);
  const onProgress = (part) => {
    at("running-bar").hidden = false;
    at("running-bar").value = part;
  };
  try {
    const begin = performance.now();
    const shown = await task.run(bert, values, { signal: running.signal, onProgress });
    at("elapsed").textContent = duration(performance.now() - begin);
    at("result").replaceChildren(...shown);
    at("result").querySelector(".context mark")?.scrollIntoView({ block: "nearest" });
    if (isNarrow()) {
      at("result-title").scrollIntoView();
    }
    say("");
  } catch (error) {
    say(error.name === "AbortError" ? "Stopped." : (error.message ?? String(error)));
  } finally {
    running = null;
    setBusy(false);
  }
}

function setBusy(isBusy) {
  at("run").disabled = isBusy;
  at("stop").hidden = !isBusy;
  at("running-bar").hidden = true;
  at("result").setAttribute("aria-busy", String(isBusy));
}

function duration(milliseconds) {
  return milliseconds < 1000
    ? `${milliseconds.toFixed(0)} ms`
    : `${(milliseconds / 1000).toFixed(1)} s`;
}

// The service worker stores the files that the page has loaded. It needs HTTPS or
// localhost.
async function keepForOffline() {
  if (!backend.WORKS_OFFLINE || !isSecureContext || !navigator.serviceWorker) {
    return;
  }
  await navigator.serviceWorker.register("service_worker.js");
  const { active } = await navigator.serviceWorker.ready;
  const loaded = performance.getEntriesByType("resource").map((entry) => entry.name);
  active.postMessage({ store: [location.href, ...loaded] });
}

start();
