/* Numbers with their units, and times as people say them.
 *
 * A time is shown as "3 min ago" with the exact one as its title, and grows older while the page is
 * open: one clock brings all of them up to date. At a moment of the past, ages are counted from
 * that moment: "3 min earlier".
 */

import { el, setText } from "./dom.js";

const WHOLE = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const BYTE_STEPS = ["B", "kB", "MB", "GB", "TB"];
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const NONE = "–";
const NOUNS = {
  sessions: ["session"],
  watches: ["watch", "watches"],
  nodes: ["node"],
  connections: ["connection"],
};

let moment = null;

/** Count ages from this time on, or from now with null. */
export function setMoment(time) {
  moment = time;
  refreshTimes();
}

/** Return a number as it is written: "12,345". */
export function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return NONE;
  return Number.isInteger(value) ? WHOLE.format(value) : SHORT.format(value);
}

/** Return a number with its noun: "1 node", "3 nodes". */
export function count(value, one, many = `${one}s`) {
  if (value === null || value === undefined) return NONE;
  return `${number(value)} ${value === 1 ? one : many}`;
}

export function bytes(value) {
  if (value === null || value === undefined) return NONE;
  let step = 0;
  let amount = value;
  while (amount >= 1000 && step < BYTE_STEPS.length - 1) {
    amount /= 1000;
    step++;
  }
  return `${SHORT.format(amount)} ${BYTE_STEPS[step]}`;
}

/** Return a number of milliseconds that were measured: "0.42 ms", "1.2 s". */
export function milliseconds(value) {
  if (value === null || value === undefined) return NONE;
  return value >= 10 * SECOND
    ? duration(value)
    : value >= SECOND
      ? `${SHORT.format(value / SECOND)} s`
      : `${SHORT.format(value)} ms`;
}

/** Return a span of time in at most two units: "45 s", "3 min", "2 h 5 min", "4 d 3 h". */
export function duration(ms) {
  if (ms === null || ms === undefined) return NONE;
  const span = Math.max(0, ms);
  if (span < SECOND) return span === 0 ? "0 s" : `${SHORT.format(span / SECOND)} s`;
  if (span < MINUTE) return `${Math.floor(span / SECOND)} s`;
  if (span < HOUR) return `${Math.floor(span / MINUTE)} min`;
  if (span < DAY) return two(Math.floor(span / HOUR), "h", Math.floor((span % HOUR) / MINUTE), "min");
  return two(Math.floor(span / DAY), "d", Math.floor((span % DAY) / HOUR), "h");
}

/** Return a value in the unit that the end of a name says: latency_p99_ms, data_bytes, requests_per_second. */
export function byName(name, value) {
  if (value === null || value === undefined) return NONE;
  if (name.endsWith("_ms")) return milliseconds(value);
  if (name.endsWith("_bytes")) return bytes(value);
  if (name.endsWith("_per_second")) return `${number(value)} /s`;
  return NOUNS[name] ? count(value, ...NOUNS[name]) : number(value);
}

/** Return a time with its zone, exact to the millisecond. */
export function exact(ms) {
  const time = new Date(ms);
  if (Number.isNaN(time.getTime())) return String(ms);
  const offset = -time.getTimezoneOffset();
  const zone =
    offset === 0
      ? "UTC"
      : `UTC${offset < 0 ? "−" : "+"}${pad(Math.floor(Math.abs(offset) / 60))}:${pad(Math.abs(offset) % 60)}`;
  return `${day(time)} ${clock(time)}.${String(time.getMilliseconds()).padStart(3, "0")} ${zone}`;
}

/** Return a time for people: only the clock if it is today. */
export function shortTime(ms) {
  const time = new Date(ms);
  return day(time) === day(new Date()) ? clock(time) : `${day(time)} ${clock(time)}`;
}

/** Return the value of an input for a date and a time. */
export function localInput(ms) {
  const time = new Date(ms);
  return `${day(time)}T${clock(time)}`;
}

/** Return a time as an element that says how long ago it was. */
export function ago(ms) {
  if (ms === null || ms === undefined) return el("span.none", { title: "not known" }, NONE);
  const element = el("time", { datetime: isoOrNone(ms), title: exact(ms), "data-ms": ms });
  element.textContent = said(ms);
  return element;
}

/** Return a span that began at a time and goes on, as an element: "3 min". */
export function since(ms) {
  if (ms === null || ms === undefined) return el("span.none", { title: "not known" }, NONE);
  const element = el("time", {
    datetime: isoOrNone(ms),
    title: `since ${exact(ms)}`,
    "data-ms": ms,
    "data-since": true,
  });
  element.textContent = lasted(ms);
  return element;
}

/** Bring all times of the page up to date. */
export function refreshTimes() {
  for (const element of document.querySelectorAll("time[data-ms]")) {
    const ms = Number(element.dataset.ms);
    setText(element, "since" in element.dataset ? lasted(ms) : said(ms));
  }
}

/** Return for how long something is there, in whole seconds: it is not looked at more often. */
function lasted(ms) {
  return duration(Math.floor((reference() - ms) / SECOND) * SECOND);
}

function said(ms) {
  const age = reference() - ms;
  const word = moment === null ? "ago" : "earlier";
  if (age < -2 * SECOND) return moment === null ? `in ${duration(-age)}` : `${duration(-age)} later`;
  if (age < SECOND) return moment === null ? "just now" : "at that moment";
  return `${duration(age)} ${word}`;
}

function reference() {
  return moment ?? Date.now();
}

function isoOrNone(ms) {
  const time = new Date(ms);
  return Number.isNaN(time.getTime()) ? null : time.toISOString();
}

function two(large, largeUnit, small, smallUnit) {
  return small ? `${large} ${largeUnit} ${small} ${smallUnit}` : `${large} ${largeUnit}`;
}

function day(time) {
  return `${time.getFullYear()}-${pad(time.getMonth() + 1)}-${pad(time.getDate())}`;
}

function clock(time) {
  return `${pad(time.getHours())}:${pad(time.getMinutes())}:${pad(time.getSeconds())}`;
}

function pad(value) {
  return String(value).padStart(2, "0");
}
