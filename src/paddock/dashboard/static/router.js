/* Where we are, in the fragment of the address: `#/tree?path=/app&at=2026-11-18T00:12:03.000Z`.
 *
 * So each place has a link, and the buttons of the browser go back and on. The server never sees
 * it. A link keeps the moment of the past that is looked at.
 */

import { moment } from "./state.js";

export const VIEWS = ["overview", "tree", "coordination", "sessions", "time"];

/** Return the place that the address names: {view, parameters}. */
export function place() {
  const [name, query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { view: VIEWS.includes(name) ? name : "overview", parameters: new URLSearchParams(query) };
}

/** Return a link to a view. */
export function link(view, parameters = {}) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries({ at: moment(), ...parameters }))
    if (value !== null && value !== undefined) query.set(key, value);
  return `#/${view}${query.size ? `?${query}` : ""}`;
}

/** Go to a view. With `isQuiet` the browser's way back does not stop here. */
export function go(view, parameters = {}, { isQuiet = false } = {}) {
  const target = link(view, parameters);
  if (target === location.hash) return;
  if (isQuiet) {
    history.replaceState(null, "", target);
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  } else location.hash = target;
}

export function nodeLink(path) {
  return link("tree", { path });
}

export function sessionLink(session) {
  return link("sessions", { id: session });
}
