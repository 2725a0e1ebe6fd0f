/* A part of a view that is read from the server.
 *
 * Rules:
 * - What is there stays until what is new is there; nothing jumps while it is read.
 * - Of several readings that overlap the last one counts, and the others are given up.
 * - An error with something on the screen is a line above it: it is old, but it is there. Without, it is
 *   the whole part, with a button to try again.
 */

import { el, fill } from "./dom.js";
import { prose } from "./text.js";
import { ago } from "./units.js";

/** Return a part: {element, read(…), isRead()}. `load(signal, …)` reads and `draw(answer)` shows. */
export function createReading({ content, load, draw, what, lines = 6 }) {
  const notice = el("div.stale", { hidden: true, role: "status" });
  const skeleton = el(
    "div.skeleton",
    { "aria-hidden": "true" },
    Array.from({ length: lines }, () => el("span")),
  );
  const failure = el("div.empty", { hidden: true, role: "alert" });
  const element = el("div.reading", { "aria-busy": "true" }, notice, skeleton, failure, content);
  let controller = null;
  let readAt = 0;
  let last = [];
  content.hidden = true;

  async function read(...wanted) {
    last = wanted;
    controller?.abort();
    const mine = (controller = new AbortController());
    element.setAttribute("aria-busy", "true");
    try {
      const answer = await load(mine.signal, ...wanted);
      if (mine !== controller) return;
      readAt = Date.now();
      notice.hidden = failure.hidden = true;
      skeleton.hidden = true;
      content.hidden = false;
      draw(answer);
    } catch (error) {
      if (mine !== controller || error.name === "AbortError") return;
      if (error.status === undefined) throw error;
      fail(error);
    } finally {
      if (mine === controller) element.setAttribute("aria-busy", "false");
    }
  }

  function fail(error) {
    const again = el("button.plain", { type: "button", onclick: () => read(...last) }, "Try again");
    skeleton.hidden = true;
    if (readAt && error.status !== 404) {
      notice.hidden = false;
      fill(notice, el("span", null, error.message, " What you see was read ", ago(readAt), "."), again);
      return;
    }
    notice.hidden = content.hidden = true;
    failure.hidden = false;
    fill(failure, el("p.empty-title", null, `${what} cannot be shown`), el("p", null, error.message), again);
  }

  return {
    element,
    read,
    isRead: () => readAt > 0,
    /** Forget what was shown: it belongs to something else. */
    reset() {
      controller?.abort();
      controller = null;
      readAt = 0;
      notice.hidden = failure.hidden = content.hidden = true;
      skeleton.hidden = false;
    },
  };
}

/** Return sentences about what a service does not tell, with the way to have it. */
export function lackingList(lacking) {
  return el(
    "ul.lacking",
    null,
    (lacking ?? []).map(({ what, why, how }) =>
      el(
        "li",
        null,
        el("strong", null, what),
        why && el("span", null, " ", prose(why)),
        how && el("span.hint", null, " ", prose(how)),
      ),
    ),
  );
}
