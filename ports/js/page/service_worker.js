// Lets the page work offline. It also adds the headers that threads need, for hosts
// that cannot send them.

const CACHE = "official_bert";
const HEADERS = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
};

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

// The page sends the names of the files that it loaded before this worker started.
self.addEventListener("message", (event) => {
  const own = event.data.store.filter((url) => isOwn(url));
  event.waitUntil(Promise.all(own.map((url) => fetchAndStore(new Request(url)))));
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method === "GET" && isOwn(request.url)) {
    event.respondWith(answer(request));
  }
});

function isOwn(url) {
  return url.startsWith(self.registration.scope);
}

async function answer(request) {
  try {
    return withHeaders(await fetchAndStore(request));
  } catch (error) {
    const stored = await (await caches.open(CACHE)).match(keyOf(request));
    if (!stored) {
      throw error;
    }
    return withHeaders(stored);
  }
}

// Tries the network first, so that a new export replaces an old one.
async function fetchAndStore(request) {
  const response = await fetch(request);
  const cache = await caches.open(CACHE);
  const stored = await cache.match(keyOf(request));
  const isNew = !stored || versionOf(stored) !== versionOf(response);
  if (response.status === 200 && isNew) {
    await cache.put(keyOf(request), response.clone());
  }
  return response;
}

function keyOf(request) {
  return request.url.split(/[?#]/)[0];
}

function versionOf(response) {
  const names = ["etag", "last-modified", "content-length"];
  return names.map((name) => response.headers.get(name)).join();
}

function withHeaders(response) {
  const headers = new Headers(response.headers);
  for (const [name, value] of Object.entries(HEADERS)) {
    headers.set(name, value);
  }
  const { status, statusText } = response;
  return new Response(response.body, { status, statusText, headers });
}
