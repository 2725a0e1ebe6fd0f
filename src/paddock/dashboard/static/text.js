/* Text of strangers, made harmless to look at.
 *
 * A name may hold control characters, characters that turn the direction of what follows, ones
 * without a width, or a megabyte. Each of the first three is shown as a small sign with its code, and
 * a long text is cut, with its length. A text is set apart (`bdi`), so that letters that are
 * written from right to left do not move their neighbours.
 */

import { el } from "./dom.js";
import { bytes } from "./units.js";

const NAME_LIMIT = 160;
// A command of ours up to this length is not broken into two lines.
const WHOLE_MAX = 30;
const HIDDEN =
  "\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb\\u{e0000}-\\u{e0fff}";
// In a name a space that is not the plain one deceives, and one at an end is not seen.
const IN_NAMES = new RegExp(
  `^ | $|[${HIDDEN}\\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000]|\\p{Cs}`,
  "gu",
);
const IN_LINES = new RegExp(`(?![\\n\\t])(?:[${HIDDEN}]|\\p{Cs})`, "gu");
const ESCAPES = { "\0": "\\0", "\n": "\\n", "\r": "\\r", "\t": "\\t", " ": "\u00b7" };

/** Return a text with signs in place of what cannot be seen, for titles and for screen readers. */
export function visible(text, limit = NAME_LIMIT) {
  const whole = String(text);
  const shown = cut(whole, limit).replace(IN_NAMES, sign);
  return shown.length && whole.length > limit ? `${shown}… (${bytes(utf8Length(whole))} in all)` : shown;
}

/** Return a name or a path as an element. One that is longer than `limit` is cut to `cutTo`. */
export function shownName(text, limit = NAME_LIMIT, cutTo = limit) {
  const whole = String(text);
  const name = el("bdi.name", null, signs(cut(whole, whole.length > limit ? cutTo : limit), IN_NAMES));
  if (whole.length > limit) {
    name.append(el("span.cut", null, `… ${bytes(utf8Length(whole))} in all`));
    name.title = visible(whole, 400);
  }
  return name;
}

/** Return a sentence of ours in pieces; what stands between backticks is code. */
export function prose(text) {
  return String(text)
    .split("`")
    .map((part, index) =>
      index % 2 && part ? el(part.length <= WHOLE_MAX ? "code.whole" : "code", null, part) : part,
    );
}

/** Return data as text, line breaks kept, in pieces for an element that keeps white space. */
export function shownLines(text) {
  return signs(text.replaceAll("\r\n", "\n"), IN_LINES);
}

/** Return how many bytes a text has in UTF-8, without making them for a long one. */
export function utf8Length(text) {
  let length = 0;
  for (let i = 0; i < text.length; i += 65536)
    length += new TextEncoder().encode(text.slice(i, i + 65536)).length;
  return length;
}

/** Compare two names as the server sorts them: by code points, not by halves of them. */
export function compareNames(a, b) {
  const end = Math.min(a.length, b.length);
  let i = 0;
  while (i < end && a[i] === b[i]) i++;
  if (i === end) return a.length - b.length;
  if (i > 0 && isLowHalf(a.charCodeAt(i)) && isLowHalf(b.charCodeAt(i))) i--;
  return a.codePointAt(i) - b.codePointAt(i);
}

function isLowHalf(code) {
  return code >= 0xdc00 && code <= 0xdfff;
}

function cut(text, limit) {
  if (text.length <= limit) return text;
  const last = text.charCodeAt(limit - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? limit - 1 : limit);
}

function signs(text, pattern) {
  const pieces = [];
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > end) pieces.push(text.slice(end, match.index));
    pieces.push(el("span.sign", { title: codePoint(match[0]) }, sign(match[0])));
    end = match.index + match[0].length;
  }
  if (end < text.length) pieces.push(text.slice(end));
  return pieces;
}

function sign(character) {
  const code = character.codePointAt(0);
  if (ESCAPES[character]) return ESCAPES[character];
  return code < 0x20 || code === 0x7f
    ? `\\x${code.toString(16).padStart(2, "0")}`
    : `[${codePoint(character)}]`;
}

function codePoint(character) {
  return `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}
