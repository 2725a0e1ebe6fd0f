/* The data of a node: as text, as JSON, as bytes, as an image.
 *
 * It opens with what fits best. Long data is shown up to a limit, because a browser needs seconds for
 * a megabyte of text in one element; the rest can be saved as a file.
 */

import { asText, decode, hexLines, imageType } from "./bytes.js";
import { el, fill } from "./dom.js";
import { shownLines } from "./text.js";
import { bytes as inBytes } from "./units.js";

const TEXT_LIMIT = 100_000;
const HEX_LIMIT = 16_384;
const INDENTS_MAX = 40;
// A string, a sign, or a number or word.
const JSON_PIECES = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
let numbers = 0;

/** Return {element, update(answer)} for answers of /api/node. `onmore` reads all of the data. */
export function createDataView(onmore) {
  const id = ++numbers;
  const tabs = el("div.tabs", { role: "tablist", "aria-label": "Show the data as", onkeydown: press });
  const panel = el("div.data", { role: "tabpanel", id: `data-${id}`, tabIndex: 0 });
  const note = el("p.hint");
  const save = el("button.quiet", { type: "button", onclick: download }, "Save as a file");
  const element = el("div.data-view", null, el("div.data-head", null, tabs, save), panel, note);
  let chosen = null;
  let shown = [];
  let answer = null;
  let bytes = new Uint8Array();
  let imageAddress = null;

  function update(wanted) {
    const isOther = wanted.path !== answer?.path;
    answer = wanted;
    bytes = decode(answer.data);
    const text = asText(bytes, answer.is_cut);
    const json = text === null || answer.is_cut ? undefined : parsed(text);
    const image = answer.is_cut ? null : imageType(bytes);
    shown = [image && "Image", json !== undefined && "JSON", text !== null && "Text", "Hex"].filter(Boolean);
    if (isOther || !shown.includes(chosen)) chosen = shown[0];
    save.hidden = tabs.hidden = !answer.size;
    draw();
  }

  function draw() {
    fill(
      tabs,
      shown.map((name) =>
        el(
          "button",
          {
            type: "button",
            role: "tab",
            id: `tab-${id}-${name}`,
            "aria-controls": `data-${id}`,
            "aria-selected": name === chosen,
            tabIndex: name === chosen ? 0 : -1,
            onclick: () => choose(name),
          },
          name,
        ),
      ),
    );
    panel.setAttribute("aria-labelledby", `tab-${id}-${chosen}`);
    if (imageAddress) URL.revokeObjectURL(imageAddress);
    imageAddress = null;
    fill(
      panel,
      answer.size
        ? content()
        : el(
            "p.empty",
            null,
            "This node has no data. Many nodes have none: they are there for their name, or for their children.",
          ),
    );
    const limit = chosen === "Hex" ? HEX_LIMIT : TEXT_LIMIT;
    const isLong = answer.is_cut || bytes.length > limit;
    fill(
      note,
      isLong &&
        answer.size > 0 && [
          `The first ${inBytes(Math.min(limit, bytes.length))} of ${inBytes(answer.size)}. `,
          answer.is_cut && el("button.quiet", { type: "button", onclick: onmore }, "Read all of it"),
        ],
    );
  }

  function content() {
    if (chosen === "Image") {
      imageAddress = URL.createObjectURL(new Blob([bytes], { type: imageType(bytes) }));
      return el("img", { src: imageAddress, alt: `The data as an image, ${inBytes(answer.size)}` });
    }
    if (chosen === "Hex") return el("pre", null, hexLines(bytes.subarray(0, HEX_LIMIT)));
    const text = asText(bytes, answer.is_cut);
    const shownText = chosen === "JSON" ? indented(text) : text;
    return el("pre.text", { dir: "auto" }, shownLines(shownText.slice(0, TEXT_LIMIT)));
  }

  function choose(name) {
    chosen = name;
    draw();
    tabs.querySelector("[aria-selected=true]").focus();
  }

  function press(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    choose(shown[(shown.indexOf(chosen) + step + shown.length) % shown.length]);
  }

  async function download() {
    if (answer.is_cut) await onmore();
    const address = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
    const name =
      answer.path
        .split("/")
        .at(-1)
        .replace(/[^\w.-]/g, "_")
        .slice(0, 80) || "data";
    el("a", { href: address, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }

  return { element, update };
}

/** Return the beginning of JSON with line breaks and indents. Numbers and texts stay as written. */
function indented(text) {
  let depth = 0;
  let told = "";
  const line = () => `\n${"  ".repeat(Math.min(depth, INDENTS_MAX))}`;
  const pieces = text.match(JSON_PIECES) ?? [];
  for (let index = 0; index < pieces.length && told.length < TEXT_LIMIT; index++) {
    const piece = pieces[index];
    const opens = piece === "[" || piece === "{";
    const closes = piece === "]" || piece === "}";
    const next = pieces[index + 1];
    const isEmpty = opens && (next === "]" || next === "}");
    if (closes) depth--;
    if (closes && !/^[[{]$/.test(pieces[index - 1])) told += line();
    told += piece === ":" ? ": " : piece;
    if (opens) depth++;
    if (piece === "," || (opens && !isEmpty)) told += line();
  }
  return told;
}

/** Return what a JSON text says if it is an object or a list, else undefined. */
function parsed(text) {
  if (!/^\s*[{[]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
