/* Requests to the dashboard's server.
 *
 * Rules:
 * - Never more than six requests at a time; the others wait here, in order. The server refuses more
 *   than eight of one person.
 * - A refusal for haste (429) is asked again a little later, a few times.
 * - A GET carries the moment of the past that the page looks at, unless it says otherwise.
 * - An error is an `ApiError` with a sentence for people, and the status: 0 if nobody answered.
 */

import { bus, moment } from "./state.js";

const AT_ONCE = 6;
const TRIES = 6;
// A server refuses a longer line. A path of that length is a name that somebody made to be in the way.
const ADDRESS_LIMIT = 12_000;

const waiting = [];
let running = 0;

export class ApiError extends Error {
  constructor(status, message, body) {
    super(message);
    this.status = status;
    this.body = body ?? {};
  }
}

/** Return the answer to a GET. `parameters` that are null are left out. */
export async function get(name, parameters = {}, { signal, isTimeless = false } = {}) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters))
    if (value !== null && value !== undefined) query.append(key, value);
  const at = moment();
  if (at !== null && !isTimeless) query.set("at", at);
  const address = `/api/${name}${query.size ? `?${query}` : ""}`;
  if (address.length > ADDRESS_LIMIT)
    throw new ApiError(413, "This path is too long to ask for. `paddock get` can read it.");
  return turn(() => send(address, { signal, headers: { Accept: "application/json" } }), signal);
}

/** Return the answer to a POST. It is never sent twice. */
export async function post(name, body) {
  return turn(() =>
    send(
      `/api/${name}`,
      {
        method: "POST",
        headers: { "Content-Type": "application/json", "X-Paddock-Dashboard": "1" },
        body: JSON.stringify(body),
      },
      1,
    ),
  );
}

async function turn(work, signal) {
  if (running >= AT_ONCE) await new Promise((resolve) => waiting.push(resolve));
  running++;
  bus.emit("busy", running);
  try {
    signal?.throwIfAborted();
    return await work();
  } finally {
    running--;
    bus.emit("busy", running);
    waiting.shift()?.();
  }
}

async function send(address, options, tries = TRIES) {
  for (let attempt = 1; ; attempt++) {
    let response;
    try {
      response = await fetch(address, { ...options, credentials: "same-origin", cache: "no-store" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError(
        0,
        "The dashboard does not answer. It may have been stopped, or the network is away.",
      );
    }
    if (response.ok) return response.json();
    const body = await response.json().catch(() => ({}));
    if (response.status === 429 && attempt < tries) {
      await new Promise((resolve) => setTimeout(resolve, 250 * attempt));
      continue;
    }
    if (response.status === 401) bus.emit("stranger");
    throw new ApiError(
      response.status,
      body.error ?? `The dashboard answered with status ${response.status}.`,
      body,
    );
  }
}
