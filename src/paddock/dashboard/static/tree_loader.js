/* Reads the pages of children that are looked at.
 *
 * A page is asked for by the number of its first row, so the middle of many children costs one
 * request. A server that answers without such a number is read from the start, page by page.
 */

import { get } from "./api.js";
import { compareNames } from "./text.js";

const PAGE = 250;
// How many pages are read one after the other to find one child.
const STEPS_MAX = 40;

export class TreeLoader {
  #model;
  #onpage;
  #onerror;
  #pages = new Map();
  #controller = new AbortController();
  #hasOffsets = true;

  constructor(model, onpage, onerror) {
    this.#model = model;
    this.#onpage = onpage;
    this.#onerror = onerror;
  }

  /** Read the page with a place, unless it is being read. Resolves when it is there, to whether it is. */
  load(parent, index) {
    const page = this.#hasOffsets ? Math.floor(index / PAGE) : Math.floor(firstGap(parent) / PAGE);
    const name = `${parent.id} ${page}`;
    if (!this.#pages.has(name))
      this.#pages.set(
        name,
        this.#read(parent, page).finally(() => this.#pages.delete(name)),
      );
    return this.#pages.get(name);
  }

  /** Give up what is being read. */
  stop() {
    this.#controller.abort();
    this.#controller = new AbortController();
    this.#pages.clear();
  }

  /** Return the child with a name, and read what is needed for that; null if there is none. */
  async child(parent, name) {
    if (!parent.isRead && !(await this.load(parent, 0))) return null;
    let low = 0;
    let high = parent.children.length - 1;
    for (let step = 0; step < STEPS_MAX && low <= high; step++) {
      const middle = this.#hasOffsets ? (low + high) >> 1 : firstGap(parent);
      const known = parent.byName.get(name);
      if (known) return known;
      if (parent.byName.size === parent.children.length) return null;
      if (!parent.children[middle] && !(await this.load(parent, middle))) return null;
      const found = parent.children[middle];
      if (!found || !this.#hasOffsets) continue;
      const order = compareNames(found.name, name);
      if (order === 0) return found;
      if (order < 0) low = middle + 1;
      else high = middle - 1;
    }
    return parent.byName.get(name) ?? null;
  }

  async #read(parent, page) {
    const { signal } = this.#controller;
    const offset = page * PAGE;
    const after = this.#hasOffsets ? null : parent.children[firstGap(parent) - 1]?.name;
    try {
      const answer = await get(
        "children",
        { path: parent.path, limit: PAGE, ...(this.#hasOffsets ? { offset } : { after }) },
        { signal },
      );
      if (signal.aborted) return false;
      this.#hasOffsets = answer.offset !== undefined;
      const start = answer.offset ?? (after === null || after === undefined ? 0 : firstGap(parent));
      this.#model.place(
        parent,
        start,
        answer.children,
        Math.max(answer.total, start + answer.children.length),
      );
      this.#onpage(parent);
      return true;
    } catch (error) {
      if (error.name === "AbortError") return false;
      if (error.status === undefined) throw error;
      this.#onerror(parent, error);
      return false;
    }
  }
}

function firstGap(parent) {
  if (!parent.isRead) return 0;
  const index = parent.children.indexOf(null);
  return index < 0 ? parent.children.length : index;
}
