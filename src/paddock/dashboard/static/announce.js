/* What a screen reader says while the page changes by itself.
 *
 * Changes may come a thousand a second, and a person can follow one every few seconds. So what
 * comes in between is counted, and told as a number.
 */

import { count } from "./units.js";

const PAUSE_MS = 4_000;
let last = 0;
let left = [];
let others = 0;
let timer = 0;

/** Say a sentence, unless there is too much to say. It may stand for several changes. */
export function announce(sentence, changes = 1) {
  left.push(sentence);
  others += changes - 1;
  if (timer) return;
  timer = setTimeout(say, Math.max(0, last + PAUSE_MS - Date.now()));
}

function say() {
  timer = 0;
  last = Date.now();
  const region = document.getElementById("announcements");
  const all = left.length + others;
  region.textContent = all <= 2 ? left.join(" ") : `${left.at(-1)} ${count(all - 1, "other change")}.`;
  left = [];
  others = 0;
}
