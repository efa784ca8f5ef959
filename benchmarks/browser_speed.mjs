// Measures an exported page's model and ONNX Runtime Web with the same weights.
//
//   node benchmarks/browser_speed.mjs MODULES EXPORT CHROMIUM MODEL.onnx [MODEL.onnx …]
//
// MODULES is a folder with node_modules/playwright-core and node_modules/onnxruntime-web,
// EXPORT a folder of `export_model.py --format=web` for a pre-trained model. An ONNX model
// takes input_ids, attention_mask and token_type_ids. The programs alternate; the output is
// the median of each, in milliseconds per row.

import fs from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import path from "node:path";

const [modules, exported, chromiumPath, ...onnxFiles] = process.argv.slice(2);
const { chromium } = createRequire(path.resolve(modules, "package.json"))(
  "playwright-core",
);
const ROUNDS = 5;
const RUNS = 10;
const TYPES = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".css": "text/css",
  ".json": "application/json",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};
const ORT = path.join(modules, "node_modules/onnxruntime-web/dist");

// /page/… is the export, /ort/… ONNX Runtime Web, /onnx/N a model.
const server = http.createServer((request, response) => {
  const [, first, ...rest] = new URL(request.url, "http://localhost").pathname.split("/");
  const file = {
    page: () => path.join(exported, ...rest),
    ort: () => path.join(ORT, ...rest),
    onnx: () => onnxFiles[Number(rest[0])],
  }[first]?.();
  response.setHeader("Cross-Origin-Opener-Policy", "same-origin");
  response.setHeader("Cross-Origin-Embedder-Policy", "require-corp");
  if (first === "blank") {
    response.setHeader("Content-Type", "text/html");
    response.end("<!doctype html><body></body>");
  } else if (file && fs.existsSync(file)) {
    const type = TYPES[path.extname(file)] ?? "application/octet-stream";
    response.setHeader("Content-Type", type);
    fs.createReadStream(file).pipe(response);
  } else {
    response.statusCode = 404;
    response.end();
  }
});

async function openLitert(page, threads) {
  await page.evaluate(async (isThreaded) => {
    const { openBert } = await import("/page/bert.js");
    const options = { accelerator: "wasm", threads: isThreaded };
    const bert = await openBert("/page/", options);
    globalThis.lengths = bert.card.lengths;
    globalThis.runRow = (ids) => bert.runtime.run(ids);
  }, threads);
}

async function openOrt(page, threads, number) {
  await page.evaluate(
    async ([isThreaded, index]) => {
      const ort = await import("/ort/ort.wasm.min.mjs");
      ort.env.wasm.wasmPaths = "/ort/";
      ort.env.wasm.numThreads = isThreaded ? navigator.hardwareConcurrency : 1;
      const session = await ort.InferenceSession.create(`/onnx/${index}`, {
        executionProviders: ["wasm"],
      });
      globalThis.runRow = async (ids) => {
        const tensor = (value) => {
          const data = BigInt64Array.from(ids, (id) => BigInt(value ?? id));
          return new ort.Tensor("int64", data, [1, ids.length]);
        };
        await session.run({
          input_ids: tensor(),
          attention_mask: tensor(1),
          token_type_ids: tensor(0),
        });
      };
    },
    [threads, number],
  );
}

async function time(page, length) {
  return page.evaluate(
    async ([size, runs]) => {
      const ids = Array.from({ length: size }, (_, index) => 1000 + index);
      await globalThis.runRow(ids);
      const begin = performance.now();
      for (let run = 0; run < runs; run += 1) {
        await globalThis.runRow(ids);
      }
      return (performance.now() - begin) / runs;
    },
    [length, RUNS],
  );
}

const median = (values) => values.sort((one, other) => one - other)[values.length >> 1];

await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const browser = await chromium.launch({
  executablePath: chromiumPath,
  args: ["--no-sandbox"],
});
const url = `http://127.0.0.1:${server.address().port}/blank`;
try {
  for (const threads of [false, true]) {
    const programs = {};
    const open = async (name, start) => {
      const page = await browser.newPage();
      await page.goto(url);
      await start(page);
      programs[name] = page;
    };
    await open("LiteRT.js", (page) => openLitert(page, threads));
    for (const [index, file] of onnxFiles.entries()) {
      const name = `ONNX Runtime Web, ${path.basename(file)}`;
      await open(name, (page) => openOrt(page, threads, index));
    }
    const lengths = await programs["LiteRT.js"].evaluate(() => globalThis.lengths);
    for (const length of lengths) {
      const times = Object.fromEntries(Object.keys(programs).map((name) => [name, []]));
      for (let round = 0; round < ROUNDS; round += 1) {
        for (const [name, page] of Object.entries(programs)) {
          times[name].push(await time(page, length));
        }
      }
      for (const [name, values] of Object.entries(times)) {
        const said = `${threads ? "threads" : "1 thread"}, ${length} tokens, ${name}`;
        console.log(`${said}: ${median(values).toFixed(1)} ms`);
      }
    }
    await Promise.all(Object.values(programs).map((page) => page.close()));
  }
} finally {
  await browser.close();
  server.close();
}
