// Tests the pages of browser_cases.py in headless Chromium.
//
//   node tests/export/web/browser.mjs MODULES EXPORTS CHROMIUM PYTHON [PAGE ...]
//
// MODULES is a folder with node_modules/playwright-core. Each page is served by
// serve.py. A test fails if a result differs from the TFLite interpreter's, a request
// goes to another host, or the console shows an error.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";

import {
  chosen,
  chromium,
  chromiumPath,
  exported,
  largestDifference,
  ready,
  report,
  testRows,
  withBrowser,
  withPage,
  withServer,
  withTimeLimit,
} from "./pages.mjs";

async function main() {
  const files = fs.readdirSync(exported).filter((name) => name.endsWith(".cases.json"));
  const names = files.map((name) => name.replace(".cases.json", "")).sort();
  await withBrowser(async (browser) => {
    for (const name of names.filter((n) => !chosen.length || chosen.includes(n))) {
      await withServer(path.join(exported, name), async (url, stop) => {
        await report(`${name}: rows`, () => testRows(browser, url, name, 200));
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
  });
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

await withTimeLimit(main);
