// Where predictions come from: a model in the folder of this page, run in the browser.
//
// ports/js/playground/backend.js exports the same for a server.

import { openBert } from "./bert.js";

export const PRIVACY =
  "The model runs in this browser. Your text is not sent anywhere.";
export const LINKS = [
  ["Files of this folder", "README.md"],
  ["Licenses", "litert/NOTICE"],
];
/** Whether a service worker stores the page. */
export const WORKS_OFFLINE = true;

/** Returns {bert, names}: the model, and the names of all models to choose from. */
export async function openModel(query, onProgress) {
  const bert = await openBert(new URL("./", location.href), {
    accelerator: query.get("accelerator") ?? "auto",
    threads: query.get("threads") !== "0",
    onProgress,
  });
  return { bert, names: [bert.card.name] };
}
