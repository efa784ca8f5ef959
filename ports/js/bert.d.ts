/** BERT in the browser: the folder of `export_model.py --format=web`. */

export interface OpenOptions {
  /** "auto" (the default) uses the GPU if its results are right, else WebAssembly. */
  accelerator?: "auto" | "webgpu" | "wasm";
  /** Whether WebAssembly may use threads (the default), if the page is isolated. */
  threads?: boolean;
  /** Called with the loaded fraction of the model, from 0 to 1. */
  onProgress?: (part: number) => void;
}

export interface RunOptions {
  /** Stops between two windows of a long text. The promise is then rejected. */
  signal?: AbortSignal;
  /** Called after each window of a long text, with the finished fraction, up to 1. */
  onProgress?: (part: number) => void;
}

/** The device and runtime of the model. */
export interface Backend {
  accelerator: "webgpu" | "wasm";
  threads: number;
  /** The reason for WebAssembly, for all or for some operations; or null. */
  note: string | null;
}

export interface LabelScore {
  label: string;
  probability: number;
}

/** Result of a model for one or several labels. */
export interface Classification {
  /** One label. For a multi-label model, all labels at or above its threshold. */
  labels: string[];
  /** All labels, in the model's order. */
  scores: LabelScore[];
  /** Number of windows of the text. */
  windows: number;
}

/** Result of a regression model. */
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
  /** Probability among the candidates. */
  probability: number;
}

export interface Answer extends AnswerCandidate {
  /** Score of "no answer"; null if the model always returns an answer. */
  nullScore: number | null;
  /** Several answers, the best first. */
  candidates: AnswerCandidate[];
  windows: number;
}

export interface Entity {
  /** text.slice(start, end). */
  text: string;
  start: number;
  end: number;
  label: string;
  /** Mean over the words of the entity. */
  probability: number;
}

export interface Candidate {
  /** A token of vocab.txt. "##ing" continues a word. */
  token: string;
  probability: number;
}

/** A text that a search found. */
export interface Match {
  /** Its index in the list. */
  index: number;
  text: string;
  /** Cosine of its vector and that of the query, from -1 to 1. */
  similarity: number;
}

/** The content of model.json. */
export interface ModelCard {
  name: string;
  kind: "classifier" | "squad" | "ner" | "embedding" | "fill_mask" | "encoder";
  what: string;
  is_pair: boolean;
  task: Record<string, unknown> | null;
  labels: string[];
  do_lower_case: boolean;
  /** Input lengths. A row is padded to the first one that is long enough. */
  lengths: number[];
  model_bytes: number;
  quantization: string;
  /** Largest difference from the outputs of Python, on samples. */
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
  /** Classifies a text or a pair. For kind "classifier". */
  classify(
    text: string,
    textB?: string | null,
    options?: RunOptions,
  ): Promise<Classification | Regression>;
  /** Answers a question from a context. For kind "squad". */
  answer(question: string, context: string, options?: RunOptions): Promise<Answer>;
  /** Returns the entities of a text. For kind "ner". */
  tag(text: string, options?: RunOptions): Promise<Entity[]>;
  /** Returns the most likely tokens for each [MASK]. For kind "fill_mask". */
  fillMask(text: string, topK?: number, options?: RunOptions): Promise<Candidate[][]>;
  /**
   * Returns the vector of a text. For kind "embedding" it is the one that the model was
   * trained for. For kinds "encoder" and "fill_mask" it has length 1.
   */
  encode(text: string, options?: RunOptions): Promise<Float32Array>;
  /** Returns a cosine, from -1 to 1. For the kinds that have `encode`. */
  similarity(text: string, textB: string, options?: RunOptions): Promise<number>;
  /**
   * Returns the topK texts (default 10) that are most similar to the query, best first.
   * The vectors of the texts are stored for the next search. For the kinds that have
   * `encode`.
   */
  search(
    query: string,
    texts: string[],
    topK?: number,
    options?: RunOptions,
  ): Promise<Match[]>;
  /** Frees the memory of the model. */
  close(): void;
}

/**
 * Loads the model of an exported folder. A page can have one model at a time.
 * @param folder URL of the folder, with a slash at the end.
 * @throws Error A file is missing or damaged, or the browser lacks WebAssembly SIMD.
 */
export function openBert(folder: string | URL, options?: OpenOptions): Promise<Bert>;

/** Returns the reason why this browser cannot run models, or null if it can. */
export function missingFeature(): string | null;
