/* Two texts line by line: what went, what came, what stayed. */

import { asText, decode, hexLines } from "./bytes.js";
import { el } from "./dom.js";
import { shownLines } from "./text.js";

const LINES_MAX = 400;
const CHARACTERS_MAX = 20_000;

/** Return data as text to compare: its bytes if it is not text. */
export function comparable(image) {
  if (!image) return "";
  const bytes = decode(image.data);
  return (asText(bytes, image.is_cut) ?? hexLines(bytes)).slice(0, CHARACTERS_MAX);
}

/** Return [{sign, line}] with sign "-", "+" or " ". Texts of too many lines are told as a whole. */
export function compareLines(before, after) {
  const a = before === "" ? [] : before.split("\n");
  const b = after === "" ? [] : after.split("\n");
  if (a.length > LINES_MAX || b.length > LINES_MAX)
    return [...a.map((line) => ({ sign: "-", line })), ...b.map((line) => ({ sign: "+", line }))];
  // lengths[i][j] is how many lines a[i…] and b[j…] have in common, in order.
  const lengths = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      lengths[i][j] =
        a[i] === b[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
  const told = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      told.push({ sign: " ", line: a[i++] });
      j++;
    } else if (j === b.length || (i < a.length && lengths[i + 1][j] >= lengths[i][j + 1]))
      told.push({ sign: "-", line: a[i++] });
    else told.push({ sign: "+", line: b[j++] });
  }
  return told;
}

/** Return the difference of two texts as an element. */
export function shownDifference(before, after, label = "What changed") {
  const words = { "-": "before: ", "+": "after: ", " ": "" };
  return el(
    "div.difference",
    { role: "group", "aria-label": label, tabIndex: 0 },
    compareLines(before, after).map(({ sign, line }) =>
      el(
        `div.${{ "-": "went", "+": "came", " ": "stayed" }[sign]}`,
        null,
        el("span.mark", { "aria-hidden": "true" }, sign),
        words[sign] && el("span.unseen", null, words[sign]),
        el("span", { dir: "auto" }, shownLines(line)),
      ),
    ),
  );
}
