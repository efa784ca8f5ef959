// Serves, opens and compares pages, for browser.mjs and playground.mjs.

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

export { chosen, chromium, chromiumPath, exported };

export async function withTimeLimit(main) {
  const timer = setTimeout(() => {
    console.error("The tests took longer than ten minutes.");
    process.exit(1);
  }, 600_000);
  await main();
  clearTimeout(timer);
}

export async function withBrowser(use) {
  const browser = await chromium.launch({
    executablePath: chromiumPath,
    args: ["--no-sandbox"],
  });
  try {
    await use(browser);
  } finally {
    await browser.close();
  }
}

export async function report(what, test) {
  const begin = performance.now();
  const said = (await test()) ?? "";
  console.log(`ok ${what} (${((performance.now() - begin) / 1000).toFixed(1)} s) ${said}`);
}

// Runs serve.py for a folder.
export async function withServer(folder, use) {
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
export async function withPage(browser, url, use, { options = {}, init, address = "" } = {}) {
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

export const ready = (page) => page.waitForSelector("#work:not([hidden])");

// Compares the results of a page with those in the file of its cases.
export async function testRows(browser, url, name, count) {
  const file = path.join(exported, `${name}.cases.json`);
  const { method, tolerance, calls } = JSON.parse(fs.readFileSync(file, "utf-8"));
  assert.equal(calls.length, count);
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
    // A server returns no probability.
    assert.equal(found.probability === undefined, expected.probability === undefined);
    return Math.max(
      difference(found.score, expected.score),
      difference(found.probability ?? 0, expected.probability ?? 0),
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
  choose: (found, expected) => COMPARE.classify(found, expected),
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

export function difference(one, other) {
  return Math.abs(one - other) / Math.max(1, Math.abs(other));
}

export function largestDifference(found, expected) {
  assert.equal(found.length, expected.length);
  return Math.max(...found.map((value, index) => difference(value, expected[index])));
}
