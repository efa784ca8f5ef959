// Runs a .tflite with LiteRT.js: on the GPU if its results are right, else with
// WebAssembly.

import {
  Tensor,
  loadAndCompile,
  loadLiteRt,
  supportsFeature,
  unloadLiteRt,
} from "../litert/core.js";

// A module with one SIMD instruction.
const SIMD = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65,
  0, 253, 15, 253, 98, 11,
]);
// Maximum error of a GPU's outputs compared with the exporter's; relative for outputs
// above 1, else absolute. GPUs compute with 16 bits.
const GPU_TOLERANCE = 0.05;

/** Returns the reason why this browser cannot run models, or null if it can. */
export function missingFeature() {
  if (typeof WebAssembly !== "object") {
    return "This browser has no WebAssembly, which runs the model.";
  }
  if (!WebAssembly.validate(SIMD)) {
    return (
      "This browser has no WebAssembly SIMD, which the model needs. Use Chrome or " +
      "Edge 91, Firefox 89, Safari 16.4, or newer."
    );
  }
  return null;
}

/** A loaded model. It runs one row at a time; other calls wait. */
export class Runtime {
  /**
   * @param {Uint8Array} bytes The .tflite.
   * @param {object} card The content of model.json.
   * @param {URL} base URL of the exported folder.
   * @param {{accelerator?: string, threads?: boolean}} options
   */
  static async load(bytes, card, base, { accelerator = "auto", threads = true } = {}) {
    const wasm = new URL("litert/wasm/", base).href;
    let note = null;
    if (accelerator !== "wasm") {
      const isAuto = accelerator === "auto";
      const { runtime, reason } = await tryGpu(bytes, card, wasm, isAuto);
      if (runtime) {
        return runtime;
      }
      if (accelerator === "webgpu") {
        throw new Error(`WebGPU cannot run this model: ${reason}`);
      }
      note = reason;
    }
    const isThreaded =
      threads &&
      globalThis.crossOriginIsolated === true &&
      (await supportsFeature("threads")) &&
      (await supportsFeature("relaxedSimd"));
    const litert = await loadQuietly(wasm, { threads: isThreaded });
    const model = await loadAndCompile(bytes, { accelerator: "wasm" });
    const count = isThreaded ? litert.liteRtWasm.getThreadCount() : 1;
    const backend = { accelerator: "wasm", threads: count, note };
    return new Runtime(model, card, backend);
  }

  constructor(model, card, backend) {
    this.model = model;
    this.lengths = card.lengths;
    this.backend = backend;
    this.last = Promise.resolve();
  }

  /** Returns the outputs of one row of ids: {name: Float32Array or Int32Array}. */
  run(ids, segmentIds = []) {
    const length = this.lengths.find((each) => each >= ids.length);
    if (!length) {
      const longest = this.lengths[this.lengths.length - 1];
      throw new RangeError(`${ids.length} tokens, but the model reads ${longest}.`);
    }
    const row = (values) => {
      const padded = new Int32Array(length);
      padded.set(values);
      return padded;
    };
    return this.runSignature(`length_${length}`, {
      input_ids: row(ids),
      input_mask: row(ids.map(() => 1)),
      segment_ids: row(segmentIds),
    });
  }

  /** Returns the outputs of a signature; inputs are {name: typed array of a row}. */
  runSignature(name, inputs) {
    const result = this.last.then(() => this.runNow(name, inputs));
    // A failed row must not stop the next ones. Its caller gets the error.
    this.last = result.catch(() => {});
    return result;
  }

  async runNow(name, inputs) {
    const tensors = {};
    let outputs = {};
    try {
      for (const [key, values] of Object.entries(inputs)) {
        tensors[key] = new Tensor(values, [1, values.length]);
      }
      outputs = await this.model.run(name, tensors);
      const arrays = {};
      for (const [key, tensor] of Object.entries(outputs)) {
        arrays[key] = (await tensor.data()).slice();
      }
      return arrays;
    } finally {
      for (const tensor of [...Object.values(tensors), ...Object.values(outputs)]) {
        tensor.delete();
      }
    }
  }

  delete() {
    this.model.delete();
    unloadLiteRt();
  }
}

// LiteRT writes its log as errors. Real errors are also thrown.
function loadQuietly(wasm, options) {
  const log = (line) => console.debug(line);
  globalThis.Module = { print: log, printErr: log };
  return loadLiteRt(wasm, options);
}

// Returns {runtime} on the GPU, or the {reason} why the GPU cannot be used.
async function tryGpu(bytes, card, wasm, needsHardware) {
  const adapter = await globalThis.navigator?.gpu?.requestAdapter();
  if (!adapter) {
    return { reason: "this browser or device has no WebGPU." };
  }
  const isSoftware = adapter.info?.isFallbackAdapter ?? adapter.isFallbackAdapter;
  if (needsHardware && isSoftware) {
    return { reason: "WebGPU has no hardware on this device." };
  }
  let reason;
  try {
    const jspi =
      (await supportsFeature("jspi")) && (await supportsFeature("relaxedSimd"));
    await loadQuietly(wasm, { jspi });
    const model = await loadAndCompile(bytes, { accelerator: "webgpu" });
    const isGpu = model.options.accelerator === "webgpu";
    const backend = { accelerator: "webgpu", threads: 1, note: null };
    if (isGpu && !model.isFullyAccelerated) {
      backend.note = "some operations run with WebAssembly.";
    }
    const runtime = new Runtime(model, card, backend);
    reason = "the GPU does not support all operations of this model.";
    if (isGpu) {
      if (isRight(await runtime.run(card.check.input_ids), card.check.outputs)) {
        return { runtime };
      }
      reason = "the GPU's numbers differ from the exporter's.";
    }
    model.delete();
  } catch (error) {
    // Drivers fail in many ways. The page shows the reason and uses WebAssembly.
    reason = `the GPU failed: ${error.message ?? error}`;
  }
  unloadLiteRt();
  return { reason };
}

function isRight(outputs, expected) {
  return Object.entries(expected).every(([name, values]) =>
    values.every((value, index) => {
      const error = Math.abs(outputs[name][index] - value);
      return error <= GPU_TOLERANCE * Math.max(1, Math.abs(value));
    }),
  );
}
