// Calls a method of the playground's model for a test: one JSON line in, one out.
//
//   node playground_runner.mjs FOLDER   (FOLDER holds backend.js and bert/)
//
// A line is [card, method, arguments, {status, json}]: the response replaces a server;
// null means that no server responds. The output has the request and the result or error.

import path from "node:path";
import readline from "node:readline";
import { pathToFileURL } from "node:url";

const file = path.resolve(process.argv[2], "backend.js");
const { ServedBert } = await import(pathToFileURL(file));

for await (const line of readline.createInterface({ input: process.stdin })) {
  const [card, method, values, response] = JSON.parse(line);
  const requests = [];
  globalThis.fetch = async (url, { body }) => {
    requests.push([String(url), JSON.parse(body)]);
    if (!response) {
      throw new TypeError("Failed to fetch");
    }
    return new Response(response.text ?? JSON.stringify(response.json), {
      status: response.status,
    });
  };
  const bert = new ServedBert(card, new URL("http://server/"));
  let said;
  try {
    const result = await bert[method](...values);
    said = { result: result instanceof Float32Array ? [...result] : result };
  } catch (error) {
    said = { error: error.message };
  }
  process.stdout.write(`${JSON.stringify({ requests, ...said })}\n`);
}
