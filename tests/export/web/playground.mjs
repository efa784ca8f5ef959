// Tests the playground of serve.py in headless Chromium, with the models of
// playground_cases.py.
//
//   node tests/export/web/playground.mjs MODULES MODELS CHROMIUM PYTHON [MODEL ...]
//
// A test fails if a result differs from Python's, a request goes to another host, or the
// console shows an error.

import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";

import {
  chosen,
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

const TEXT = "horse on water 😀 שלום";
const WIDTHS = [
  { viewport: { width: 390, height: 844 }, colorScheme: "dark" },
  { viewport: { width: 1280, height: 800 }, colorScheme: "light" },
];

async function main() {
  const files = fs.readdirSync(exported).filter((name) => name.endsWith(".cases.json"));
  const names = files.map((name) => name.replace(".cases.json", "")).sort();
  await withBrowser(async (browser) => {
    for (const name of names.filter((n) => !chosen.length || chosen.includes(n))) {
      await withServer(path.join(exported, name), async (address, stop) => {
        const url = new URL("/", address).href;
        await report(`playground, ${name}: rows`, () =>
          testRows(browser, url, name, numberOfCalls(name)),
        );
        for (const options of WIDTHS) {
          await report(`playground, ${name}: page, ${options.colorScheme}`, () =>
            testPage(browser, url, name, options),
          );
        }
        if (name === "masks" || name === "encoder") {
          await report(`playground, ${name}: attention`, () =>
            testAttention(browser, url),
          );
        }
        if (name === "masks") {
          await report("playground: several models", () => testNames(browser, url));
          await report("playground: errors", () => testErrors(browser, url, stop));
        }
      });
    }
  });
}

function numberOfCalls(name) {
  const file = path.join(exported, `${name}.cases.json`);
  const { calls } = JSON.parse(fs.readFileSync(file, "utf-8"));
  assert.ok(calls.length >= 20);
  return calls.length;
}

// Uses the page by its labels and by keyboard. What it shows must be what the server
// returns for the same request.
async function testPage(browser, url, name, options) {
  const use = async (page) => {
    await ready(page);
    assert.match(await page.textContent("#backend-text"), /^Server, version 1$/);
    assert.match(await page.textContent("#privacy"), /runs on this server/);
    assert.ok(await page.isHidden("#model-box"));
    for (const field of await page.locator("textarea").all()) {
      const label = await field.evaluate((area) => area.labels[0]?.textContent);
      const mask = name === "masks" ? " [MASK]" : "";
      await page.getByLabel(label, { exact: true }).fill(`${TEXT}${mask}`);
    }
    const request = page.waitForResponse((one) => one.url().endsWith(":predict"));
    await page.keyboard.press("Control+Enter");
    const { predictions } = await (await request).json();
    await finished(page);
    assert.ok(await page.isHidden("#message"), await page.textContent("#message"));
    await SHOWN[name](page, predictions[0]);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(width <= options.viewport.width, `the page is ${width} wide`);
    for (const button of await page.locator("#examples button").all()) {
      await button.click();
      await finished(page);
      assert.ok(await page.isHidden("#message"), await page.textContent("#message"));
    }
    if (await page.isHidden("#card-rows")) {
      await page.locator("summary").click();
    }
    assert.match(await page.textContent("#card-rows"), /version 1/);
  };
  return withPage(browser, url, use, { options });
}

function finished(page) {
  return page.waitForFunction(
    () =>
      document.getElementById("elapsed").textContent.length > 0 &&
      document.getElementById("result").getAttribute("aria-busy") === "false",
  );
}

const headline = (page) => page.textContent("#result .headline");

// Each compares the page with the server's prediction.
const SHOWN = {
  label: testBars,
  pairs: testBars,
  labels: async (page, found) => {
    const expected = found.labels.filter((label) => label).join(", ");
    assert.equal(await headline(page), expected || "No label");
    await testNumbers(page, found.probabilities);
  },
  number: async (page, found) => {
    assert.equal(await headline(page), found.toFixed(3));
  },
  squad: testAnswer,
  "squad-2": testAnswer,
  tags: async (page, found) => {
    const marks = await page.locator("#result mark").all();
    assert.equal(marks.length, found.entities.length);
    for (const [index, mark] of marks.entries()) {
      const expected = found.entities[index] + (found.labels[index] || "entity");
      assert.equal(await mark.textContent(), expected);
    }
  },
  choice: async (page, found) => {
    assert.equal(await headline(page), found.choice);
    await testNumbers(page, found.probabilities);
  },
  vectors: async (page) => assert.equal(await headline(page), "1.000"),
  encoder: async (page) => assert.equal(await headline(page), "1.000"),
  masks: async (page, found) => {
    const labels = await page.locator("#result > .bars .label").allTextContents();
    assert.deepEqual(labels, found.tokens[0]);
    await testNumbers(page, found.probabilities[0]);
  },
};

async function testBars(page, found) {
  assert.equal(await headline(page), found.label);
  await testNumbers(page, found.probabilities);
}

async function testNumbers(page, probabilities) {
  const shown = await page.locator("#result > .bars .number").allTextContents();
  const sorted = [...probabilities].sort((one, other) => other - one);
  assert.deepEqual(
    shown,
    sorted.map((value) => `${(100 * value).toFixed(1)} %`),
  );
}

async function testAnswer(page, found) {
  assert.equal(await headline(page), found.answer || "No answer");
  const marks = await page.locator(".context mark").allTextContents();
  assert.deepEqual(marks, found.answer ? [found.answer] : []);
}

// The chart follows its controls, and its numbers are the attention of the model.
async function testAttention(browser, url) {
  return withPage(browser, url, async (page) => {
    await ready(page);
    await page.locator("#examples button").first().click();
    const bars = page.locator(".attention-chart .bars .number");
    await bars.first().waitFor();
    const text = await page.getByRole("textbox").first().inputValue();
    const own = page.locator(".attention");
    await own.getByLabel("Layer", { exact: true }).selectOption("1");
    await own.getByLabel("Head", { exact: true }).selectOption("1");
    await own.getByLabel("Token", { exact: true }).selectOption({ index: 2 });
    const { tokens, probs } = await page.evaluate(
      (value) => globalThis.bert.attention(value, 1, 1),
      text,
    );
    const last = await page.evaluate(
      (value) => globalThis.bert.attention(value, -1, -1),
      text,
    );
    assert.equal(tokens[0], "[CLS]");
    assert.equal(tokens.at(-1), "[SEP]");
    assert.equal(probs.length, tokens.length);
    for (const row of probs) {
      const sum = row.reduce((total, value) => total + value, 0);
      assert.ok(Math.abs(sum - 1) < 1e-5, `a row has the sum ${sum}`);
    }
    assert.ok(largestDifference(last.probs.flat(), probs.flat()) < 1e-6);
    const best = [...probs[2]].sort((one, other) => other - one).slice(0, 5);
    const expected = best.map((value) => `${(100 * value).toFixed(1)} %`);
    await page.waitForFunction(
      (wanted) =>
        [...document.querySelectorAll(".attention-chart .bars .number")]
          .map((one) => one.textContent)
          .join() === wanted,
      expected.join(),
    );
    const picture = page.getByRole("img", { name: /Heat map/ });
    assert.equal(await picture.locator("text").count(), 2 * tokens.length);
    // A click on a row chooses its token.
    const row = picture.locator(".map-row");
    const before = await row.boundingBox();
    await page.mouse.click(before.x + 5, before.y + before.height * 1.5);
    assert.equal(await own.getByLabel("Token", { exact: true }).inputValue(), "3");
    assert.ok(await page.isHidden("#message"));
  });
}

// With several models, a list chooses one.
async function testNames(browser, url) {
  return withPage(browser, url, async (page, _, wrong) => {
    await page.route("**/playground.json", async (route) => {
      const [card] = await (await route.fetch()).json();
      await route.fulfill({ json: [card, { ...card, name: "second", kind: null }] });
    });
    await page.reload();
    await ready(page);
    await page.getByLabel("Model", { exact: true }).selectOption("second");
    await page.waitForURL(/model=second/);
    await page.waitForSelector("#message:not([hidden])");
    assert.match(await page.textContent("#message"), /no form for second/);
    await page.goto(`${url}?model=third`);
    await page.waitForSelector("#message:not([hidden])");
    assert.match(await page.textContent("#message"), /no model "third". It has masks/);
    assert.deepEqual(wrong, []);
  });
}

async function testErrors(browser, url, stop) {
  return withPage(browser, url, async (page, _, wrong) => {
    const message = async () => {
      await page.waitForSelector("#message:not([hidden])");
      return page.textContent("#message");
    };
    await ready(page);
    await page.getByLabel("Text", { exact: true }).fill("no mask here");
    await page.keyboard.press("Control+Enter");
    assert.match(await message(), /has no \[MASK\]/);
    const long = `${"horse ".repeat(100)}[MASK]`;
    await page.getByLabel("Text", { exact: true }).fill(long);
    await page.keyboard.press("Control+Enter");
    await page.waitForFunction(() =>
      document.getElementById("message").textContent.includes("too long"),
    );
    const refused = await page.evaluate(() =>
      globalThis.bert.attention("horse", 7, 0).catch((error) => error.message),
    );
    assert.match(refused, /status 400.*layer must be a number from -2 to 1/s);
    await stop();
    await page.getByLabel("Text", { exact: true }).fill("horse [MASK]");
    await page.keyboard.press("Control+Enter");
    await page.waitForFunction(() =>
      document.getElementById("message").textContent.includes("does not respond"),
    );
    // The browser logs refused requests.
    const others = wrong.filter((line) => !/400|ERR_CONNECTION_REFUSED/.test(line));
    wrong.splice(0, wrong.length, ...others);
  });
}

await withTimeLimit(main);
