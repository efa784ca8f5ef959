// Tests the pages of browser_cases.py in headless Chromium.
//
//   node tests/export/web/browser.mjs MODULES EXPORTS CHROMIUM PYTHON [PAGE ...]
//
// MODULES is a folder with node_modules/playwright-core. Each page is served by
// serve.py. A test fails if a result differs from the TFLite interpreter's, a request
// goes to another host, or the console shows an error.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const [modules, exported, chromiumPath, python, ...chosen] = process.argv.slice(2);
const { chromium } = createRequire(path.resolve(modules, "package.json"))(
  "playwright-core",
);

const root = path.resolve(import.meta.dirname, "../../..");

async function main() {
  const files = fs.readdirSync(exported).filter((name) => name.endsWith(".cases.json"));
  const names = files.map((name) => name.replace(".cases.json", "")).sort();
  const browser = await chromium.launch({
    executablePath: chromiumPath,
    args: ["--no-sandbox"],
  });
  try {
    for (const name of names.filter((n) => !chosen.length || chosen.includes(n))) {
      await withServer(path.join(exported, name), async (url, stop) => {
        await report(`${name}: rows`, () => testRows(browser, url, name));
        if (!name.endsWith("float32")) {
          await report(`${name}: page`, () => testPage(browser, url, name));
        }
        if (name === "label") {
          await report("threads", () => testThreads(browser, url));
          await report("WebGPU", () => testGpu(url));
          await report("without SIMD", () => testWithoutSimd(browser, url));
          await report("a page of one's own", () => testOwnPage(browser, url));
          await report("damaged file", () => testDamaged(browser, url));
        }
        if (name === "squad") {
          await report("stop", () => testStop(browser, url, name));
        }
        if (name === "vectors") {
          await report("search", () => testSearch(browser, url));
        }
        if (name === "pairs") {
          await report("offline", () => testOffline(browser, url, stop));
        }
      });
    }
  } finally {
    await browser.close();
  }
}

async function report(what, test) {
  const begin = performance.now();
  const said = (await test()) ?? "";
  console.log(`ok ${what} (${((performance.now() - begin) / 1000).toFixed(1)} s) ${said}`);
}

// Runs serve.py for a folder.
async function withServer(folder, use) {
  const script = path.join(root, "run_scripts/serve.py");
  const server = spawn(python, [script, `--model_dir=${folder}`, "--port=0"]);
  const ended = new Promise((resolve) => server.once("exit", resolve));
  const stop = async () => {
    server.kill("SIGTERM");
    await ended;
  };
  let errors = "";
  server.stderr.on("data", (data) => (errors += data));
  try {
    const url = await new Promise((resolve, reject) => {
      server.stdout.on("data", (data) => {
        const match = String(data).match(/http:\S+/);
        if (match) {
          resolve(match[0]);
        }
      });
      ended.then(() => reject(new Error(`serve.py ended: ${errors}`)));
    });
    await use(url, stop);
  } finally {
    await stop();
  }
}

// Opens a page, and checks at its end that no error occurred.
async function withPage(browser, url, use, { options = {}, init, address = "" } = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("console", (line) => {
    if (line.type() === "error") {
      wrong.push(`console: ${line.text()}`);
    }
  });
  context.on("request", (request) => {
    const isOwn = request.url().startsWith(url) || request.url().startsWith("blob:");
    if (!isOwn) {
      wrong.push(`request: ${request.url()}`);
    }
  });
  if (init) {
    await page.addInitScript(init);
  }
  const icon = '<link rel="icon" href="icon.svg">';
  await page.route(`${url}own.html`, (route) =>
    route.fulfill({ contentType: "text/html", body: `<!doctype html>${icon}<body>` }),
  );
  try {
    await page.goto(url + address);
    const said = await use(page, context, wrong);
    assert.deepEqual(wrong, []);
    return said;
  } finally {
    await context.close();
  }
}

const ready = (page) => page.waitForSelector("#work:not([hidden])");

async function testRows(browser, url, name) {
  const file = path.join(exported, `${name}.cases.json`);
  const { method, tolerance, calls } = JSON.parse(fs.readFileSync(file, "utf-8"));
  assert.equal(calls.length, 200);
  return withPage(browser, url, async (page) => {
    await ready(page);
    const results = await page.evaluate(
      async ([called, all]) => {
        const found = [];
        for (const values of all) {
          const result = await globalThis.bert[called](...values);
          found.push(called === "encode" ? Array.from(result) : result);
        }
        return found;
      },
      [method, calls.map((call) => call.arguments)],
    );
    let largest = 0;
    results.forEach((found, index) => {
      const { arguments: values, expected } = calls[index];
      const error = COMPARE[method](found, expected, values);
      assert.ok(
        error <= tolerance,
        `${name}, row ${index}: a number differs by ${error}\n` +
          `${JSON.stringify(found).slice(0, 500)}\n${JSON.stringify(expected).slice(0, 500)}`,
      );
      largest = Math.max(largest, error);
    });
    return `largest difference ${largest.toExponential(1)}`;
  });
}

// Each returns the largest difference of a number; other values must be equal.
const COMPARE = {
  classify: (found, expected) => {
    if ("value" in expected) {
      return difference(found.value, expected.value);
    }
    assert.deepEqual(found.labels, expected.labels);
    return largestDifference(
      found.scores.map((one) => one.probability),
      expected.probabilities,
    );
  },
  answer: (found, expected, [, context]) => {
    assert.equal(context.slice(found.start, found.end), found.text);
    for (const key of ["text", "start", "end"]) {
      assert.equal(found[key], expected[key], key);
    }
    assert.equal(found.nullScore === null, expected.nullScore === null);
    return Math.max(
      difference(found.score, expected.score),
      difference(found.probability, expected.probability),
      difference(found.nullScore ?? 0, expected.nullScore ?? 0),
    );
  },
  tag: (found, expected, [text]) => {
    for (const one of found) {
      assert.equal(text.slice(one.start, one.end), one.text);
    }
    const plain = found.map(({ probability, ...entity }) => entity);
    assert.deepEqual(plain, expected);
    return 0;
  },
  fillMask: (found, expected) => {
    assert.deepEqual(
      found.map((mask) => mask.map((one) => one.token)),
      expected.map((mask) => mask.map(([token]) => token)),
    );
    return largestDifference(
      found.flat().map((one) => one.probability),
      expected.flat().map(([, probability]) => probability),
    );
  },
  encode: largestDifference,
  similarity: difference,
  // The expected value is the similarity of each text of the list.
  search: (found, expected, [, texts]) => {
    assert.equal(found.length, texts.length);
    found.forEach(({ index, text, similarity }, rank) => {
      assert.equal(text, texts[index]);
      assert.ok(!rank || similarity <= found[rank - 1].similarity, "not sorted");
    });
    assert.equal(new Set(found.map((one) => one.index)).size, texts.length);
    return Math.max(
      ...found.map((one) => difference(one.similarity, expected[one.index])),
    );
  },
};

function difference(one, other) {
  return Math.abs(one - other) / Math.max(1, Math.abs(other));
}

function largestDifference(found, expected) {
  assert.equal(found.length, expected.length);
  return Math.max(...found.map((value, index) => difference(value, expected[index])));
}

// Uses the page like a person: by keyboard, at a phone's width, by its labels.
async function testPage(browser, url, name) {
  const options = { viewport: { width: 390, height: 844 }, colorScheme: "dark" };
  return withPage(
    browser,
    url,
    async (page) => {
      await ready(page);
      const fields = await page.locator("textarea").all();
      assert.ok(fields.length >= 1);
      for (const field of fields) {
        const label = await field.evaluate((area) => area.labels[0]?.textContent);
        assert.ok(label, "a field without a label");
        const mask = name === "masks" ? " [MASK]" : "";
        await page.getByLabel(label, { exact: true }).fill(`horse on water 😀 שלום${mask}`);
      }
      assert.match(await page.textContent("#backend-text"), /WebAssembly|WebGPU/);
      await page.keyboard.press("Control+Enter");
      await page.waitForFunction(
        () => document.getElementById("elapsed").textContent.length > 0,
      );
      assert.ok((await page.textContent("#result")).length > 0);
      assert.ok(await page.isHidden("#message"), await page.textContent("#message"));
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(width <= 390, `the page is ${width} wide`);
      for (const button of await page.locator("#examples button").all()) {
        await button.click();
        await page.waitForSelector('#result[aria-busy="false"]');
        assert.ok(await page.isHidden("#message"), await page.textContent("#message"));
      }
      await page.locator("summary").click();
      assert.match(await page.textContent("#card-rows"), /int8/);
    },
    { options },
  );
}

async function testThreads(browser, url) {
  const run = (address) =>
    withPage(
      browser,
      url,
      async (page) => {
        await ready(page);
        return page.evaluate(async () => ({
          isolated: globalThis.crossOriginIsolated,
          backend: globalThis.bert.backend,
          result: await globalThis.bert.classify("horse on water"),
        }));
      },
      { address },
    );
  const several = await run("?accelerator=wasm");
  const one = await run("?accelerator=wasm&threads=0");
  assert.ok(several.isolated, "the headers of serve.py do not isolate the page");
  assert.ok(several.backend.threads >= 1);
  assert.equal(one.backend.threads, 1);
  assert.deepEqual(one.result.labels, several.result.labels);
  return `${several.backend.threads} threads`;
}

// WebGPU emulated on the CPU: shows that the model runs, not its speed.
async function testGpu(url) {
  const browser = await chromium.launch({
    executablePath: chromiumPath,
    args: [
      "--no-sandbox",
      "--enable-unsafe-webgpu",
      "--use-webgpu-adapter=swiftshader",
      "--enable-features=Vulkan",
    ],
  });
  const run = (address, use) =>
    withPage(browser, url, (page) => use(page), { address });
  const classify = async (page) => {
    await ready(page);
    return page.evaluate(async () => ({
      backend: globalThis.bert.backend,
      result: await globalThis.bert.classify("horse on water"),
    }));
  };
  try {
    const gpu = await run("?accelerator=webgpu", classify);
    assert.equal(gpu.backend.accelerator, "webgpu");
    const auto = await run("", classify);
    assert.equal(auto.backend.accelerator, "wasm");
    assert.match(auto.backend.note, /no hardware|no WebGPU/);
    const values = (one) => one.result.scores.map((score) => score.probability);
    assert.ok(largestDifference(values(gpu), values(auto)) < 0.05);
    // A GPU with wrong numbers is not used.
    const wrong = async (page) => {
      await page.route("**/model.json", async (route) => {
        const card = await (await route.fetch()).json();
        card.check.outputs.logits[0] += 1;
        await route.fulfill({ json: card });
      });
      await page.reload();
      await page.waitForSelector("#message:not([hidden])");
      return page.textContent("#message");
    };
    assert.match(await run("?accelerator=webgpu", wrong), /numbers differ/);
  } finally {
    await browser.close();
  }
}

async function testWithoutSimd(browser, url) {
  const init = () => {
    WebAssembly.validate = () => false;
  };
  return withPage(
    browser,
    url,
    async (page) => {
      await page.waitForSelector("#message:not([hidden])");
      assert.match(await page.textContent("#message"), /no WebAssembly SIMD/);
      assert.equal(await page.textContent("#backend-text"), "Not running");
    },
    { init },
  );
}

// bert.js without the page.
async function testOwnPage(browser, url) {
  return withPage(
    browser,
    url,
    async (page) => {
      const found = await page.evaluate(async () => {
        const { openBert } = await import("./bert.js");
        const bert = await openBert("./", { accelerator: "wasm" });
        const first = await bert.classify("horse on water");
        const message = await bert.tag("horse").catch((error) => error.message);
        bert.close();
        const again = await openBert("./", { accelerator: "wasm" });
        const second = await again.classify("horse on water");
        return { first, second, message };
      });
      assert.deepEqual(found.first, found.second);
      assert.match(found.message, /this model is for classify/);
    },
    { address: "own.html" },
  );
}

async function testDamaged(browser, url) {
  const context = await browser.newContext({ serviceWorkers: "block" });
  const page = await context.newPage();
  await page.route("**/model.tflite", (route) => route.fulfill({ body: "TFL3" }));
  await page.goto(url);
  await page.waitForSelector("#message:not([hidden])");
  assert.match(await page.textContent("#message"), /model.tflite has 4 of/);
  await context.close();
}

async function testStop(browser, url, name) {
  const file = path.join(exported, `${name}.cases.json`);
  const { calls } = JSON.parse(fs.readFileSync(file, "utf-8"));
  const [question, context] = calls[calls.length - 1].arguments;
  return withPage(browser, url, async (page) => {
    await ready(page);
    await page.getByLabel("Question").fill(question);
    await page.getByLabel("Context").fill(context.repeat(5));
    await page.getByRole("button", { name: "Run" }).click();
    await page.waitForSelector("#running-bar:not([hidden])");
    await page.keyboard.press("Escape");
    await page.waitForSelector("#message:not([hidden])");
    assert.equal(await page.textContent("#message"), "Stopped.");
    await page.getByRole("button", { name: "Clear" }).click();
    assert.equal(await page.getByLabel("Context").inputValue(), "");
  });
}

// Search in the lines of a list, on the page and in bert.js.
async function testSearch(browser, url) {
  return withPage(browser, url, async (page) => {
    await ready(page);
    const lines = ["water is her light", "horse on water", "years of the logbook"];
    await page.getByLabel("Text", { exact: true }).fill("horse on water");
    await page.getByLabel("Texts to compare").fill(`${lines.join("\n\n")}\n`);
    await page.getByRole("button", { name: "Run" }).click();
    await page.waitForSelector("#result .headline");
    assert.equal(await page.textContent("#result .headline"), lines[1]);
    const shown = await page.locator("#result .bars .label").allTextContents();
    assert.deepEqual([...shown].sort(), [...lines].sort());
    const found = await page.evaluate(async (texts) => {
      const first = await globalThis.bert.search("horse on water", texts, 2);
      const message = await globalThis.bert.classify("a").catch((one) => one.message);
      return { first, message };
    }, lines);
    assert.equal(found.first.length, 2);
    assert.ok(Math.abs(found.first[0].similarity - 1) < 1e-5);
    assert.match(found.message, /this model is for encode, similarity, search/);
  });
}

// After the first visit the page works without its host.
async function testOffline(browser, url, stop) {
  return withPage(browser, url, async (page, _, wrong) => {
    await ready(page);
    await page.evaluate(async (name) => {
      await navigator.serviceWorker.ready;
      for (;;) {
        const stored = await (await caches.open("official_bert")).keys();
        if (stored.some((request) => request.url.endsWith(name))) {
          return;
        }
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }, "model.tflite");
    await page.waitForTimeout(1000);
    await stop();
    await page.reload();
    await ready(page);
    const found = await page.evaluate(() => globalThis.bert.classify("horse", "water"));
    assert.ok(found.labels.length);
    // The browser logs the requests that the service worker then answers itself.
    const others = wrong.filter((line) => !line.includes("ERR_CONNECTION_REFUSED"));
    wrong.splice(0, wrong.length, ...others);
  });
}

const timer = setTimeout(() => {
  console.error("The tests took longer than ten minutes.");
  process.exit(1);
}, 600_000);
await main();
clearTimeout(timer);
