/** BERT in the browser: the folder of `export_model.py --format=web`. */

export interface OpenOptions {
  /** "auto" (the default) takes the GPU if its numbers are right, else WebAssembly. */
  accelerator?: "auto" | "webgpu" | "wasm";
  /** Whether WebAssembly may use threads (the default), if the page is isolated. */
  threads?: boolean;
  /** Called with the loaded part of the model, from 0 to 1. */
  onProgress?: (part: number) => void;
}

export interface RunOptions {
  /** Stops between two windows of a long text; the promise is rejected. */
  signal?: AbortSignal;
  /** Called after each window of a long text, with the finished part, up to 1. */
  onProgress?: (part: number) => void;
}

/** What runs the model. */
export interface Backend {
  accelerator: "webgpu" | "wasm";
  threads: number;
  /** Why it is not the GPU, or what the GPU leaves to WebAssembly. */
  note: string | null;
}

export interface LabelScore {
  label: string;
  probability: number;
}

/** Of a model for one label or several. */
export interface Classification {
  /** One label; of a multi-label model those from its threshold on. */
  labels: string[];
  /** All labels, in the model's order. */
  scores: LabelScore[];
  /** How many windows of the text were read. */
  windows: number;
}

/** Of a regression model. */
export interface Regression {
  value: number;
  windows: number;
}

export interface AnswerCandidate {
  /** context.slice(start, end); "" for no answer. */
  text: string;
  start: number;
  /** 0 for no answer. */
  end: number;
  /** Sum of the logits of the first and last token. */
  score: number;
  /** Among the candidates. */
  probability: number;
}

export interface Answer extends AnswerCandidate {
  /** The score of "no answer"; null where the model always answers. */
  nullScore: number | null;
  /** The best answers, the best first. */
  candidates: AnswerCandidate[];
  windows: number;
}

export interface Entity {
  /** text.slice(start, end). */
  text: string;
  start: number;
  end: number;
  label: string;
  /** The mean over its words. */
  probability: number;
}

export interface Candidate {
  /** As in vocab.txt: "##ing" continues a word. */
  token: string;
  probability: number;
}

/** What model.json holds. */
export interface ModelCard {
  name: string;
  kind: "classifier" | "squad" | "ner" | "fill_mask" | "encoder";
  what: string;
  is_pair: boolean;
  task: Record<string, unknown> | null;
  labels: string[];
  do_lower_case: boolean;
  /** Rows are padded to the first of these that fits. */
  lengths: number[];
  model_bytes: number;
  quantization: string;
  /** The largest difference from Python's numbers, on samples. */
  difference: number;
  score: {
    metric: string;
    before: number;
    after: number;
    same: number | null;
  } | null;
  global_step: number | null;
  architecture: {
    layers: number;
    hidden_size: number;
    heads: number;
    vocabulary: number;
  };
  made_with: string;
}

export interface Bert {
  readonly card: ModelCard;
  readonly kind: ModelCard["kind"];
  readonly backend: Backend;
  /** Kind "classifier". */
  classify(
    text: string,
    textB?: string | null,
    options?: RunOptions,
  ): Promise<Classification | Regression>;
  /** Kind "squad". */
  answer(question: string, context: string, options?: RunOptions): Promise<Answer>;
  /** Kind "ner". */
  tag(text: string, options?: RunOptions): Promise<Entity[]>;
  /** Kind "fill_mask": for each [MASK] of the text its likeliest tokens. */
  fillMask(text: string, topK?: number, options?: RunOptions): Promise<Candidate[][]>;
  /** Kinds "encoder" and "fill_mask": a vector of length 1. */
  encode(text: string, options?: RunOptions): Promise<Float32Array>;
  /** Kinds "encoder" and "fill_mask": a cosine, from -1 to 1. */
  similarity(text: string, textB: string, options?: RunOptions): Promise<number>;
  /** Frees the memory of the model. */
  close(): void;
}

/**
 * Loads the model of an exported folder. A page can have one at a time.
 * @param folder URL of the folder, with a slash at its end.
 * @throws Error A file is missing or damaged, or the browser lacks WebAssembly SIMD.
 */
export function openBert(folder: string | URL, options?: OpenOptions): Promise<Bert>;

/** Returns why this browser cannot run models, or null if it can. */
export function missingFeature(): string | null;
