/* What all views share: a bus of events, who we are, what the service can do, and the moment.
 *
 * Events: `busy` (requests in flight), `about` (it was read), `moment` (another one was chosen),
 * `stranger` (the cookie is no longer good), `changed`, `overview`, `state` and `resync` (of the
 * live stream), `online` (the service, or the dashboard, is away or back).
 */

class Bus {
  #listeners = new Map();

  /** Call `listener` at each event of a kind. Returns a function that ends this. */
  on(kind, listener) {
    const all = this.#listeners.get(kind) ?? new Set();
    this.#listeners.set(kind, all.add(listener));
    return () => all.delete(listener);
  }

  emit(kind, detail) {
    for (const listener of [...(this.#listeners.get(kind) ?? [])]) listener(detail);
  }
}

export const bus = new Bus();

/** The answer of /api/about, once it is there. */
export const shared = { about: null };

let at = null;

/** Return the moment of the past that is looked at, as the server reads it, or null for now. */
export function moment() {
  return at;
}

export function chooseMoment(text) {
  const chosen = text || null;
  if (chosen === at) return;
  at = chosen;
  bus.emit("moment", at);
}

/** Return the time of a moment in milliseconds, or null for a zxid, whose time the page does not know. */
export function momentTime(text) {
  if (!text || /^(0x)?[0-9a-f]+$/i.test(text)) return null;
  const time = Date.parse(text);
  return Number.isNaN(time) ? null : time;
}
