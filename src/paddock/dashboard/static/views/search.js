/* Search in names, done by the server, a part of the tree at a time.
 *
 * The server looks at 20,000 nodes in one go and says where it stopped. The page asks on until it has
 * found something worth a look; then a button goes on.
 */

import { get } from "../api.js";
import { el, fill } from "../dom.js";
import { nodeLink } from "../router.js";
import { shownName } from "../text.js";
import { count } from "../units.js";

const PAUSE_MS = 300;
// It goes on by itself until there is something to look at.
const ENOUGH = 20;
const CALLS_MAX = 25;

export function createSearch({ onpick, onleave }) {
  const input = el("input", {
    type: "search",
    placeholder: "Search in names",
    "aria-label": "Search in the names of nodes",
    autocomplete: "off",
    spellcheck: "false",
    oninput: later,
    onkeydown: press,
  });
  const results = el("ul.found");
  const state = el("p.hint", { role: "status" });
  const more = el(
    "button.plain",
    { type: "button", hidden: true, onclick: () => look(true) },
    "Look further",
  );
  const part = el("div.search-results", { hidden: true }, state, results, more);
  const element = el(
    "search.search",
    null,
    el("div.search-box", null, input, el("kbd", { "aria-hidden": "true" }, "/")),
    part,
  );
  let timer = 0;
  let controller = null;
  let next = null;
  let looked = 0;
  let found = 0;
  let tell = () => {};

  function later() {
    clearTimeout(timer);
    timer = setTimeout(() => look(false), PAUSE_MS);
  }

  async function look(isFurther) {
    controller?.abort();
    const mine = (controller = new AbortController());
    const text = input.value;
    part.hidden = text === "";
    tell(text !== "");
    if (text === "") return;
    if (!isFurther) {
      next = null;
      looked = found = 0;
      fill(results);
    }
    more.hidden = true;
    state.textContent = "Looking…";
    try {
      let isDone = false;
      for (let call = 0, enough = found + ENOUGH; !isDone && call < CALLS_MAX && found < enough; call++) {
        const answer = await get("search", { q: text, next }, { signal: mine.signal });
        if (mine !== controller) return;
        next = answer.next ?? null;
        isDone = answer.is_complete || next === null;
        looked += answer.looked;
        found += answer.found.length;
        results.append(...answer.found.map(resultRow));
        state.textContent = `${found === 0 ? "Nothing found" : `${count(found, "node")} found`} among ${count(looked, "node")}${isDone ? "." : " so far…"}`;
      }
      more.hidden = isDone;
    } catch (error) {
      if (mine !== controller || error.name === "AbortError") return;
      if (error.status === undefined) throw error;
      state.textContent = error.message;
    }
  }

  /** One that is found. When it is chosen the tree is shown again, with it. */
  function resultRow(path) {
    const leave = () => {
      input.value = "";
      later();
    };
    return el(
      "li",
      null,
      el("a", { href: nodeLink(path), onclick: () => setTimeout(leave) }, shownName(path, 300)),
    );
  }

  function press(event) {
    if (event.key === "Escape" && input.value === "") onleave();
    if (event.key === "ArrowDown" || event.key === "Enter") {
      const first = results.querySelector("a");
      if (event.key === "Enter" && input.value.startsWith("/") && !first)
        onpick(input.value.replace(/(.)\/+$/, "$1"));
      first?.focus();
    }
  }

  return {
    element,
    /** Call `listener` when the results come and go. */
    onshow: (listener) => (tell = listener),
  };
}
