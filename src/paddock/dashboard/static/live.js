/* The live stream: what changes while the page is open, as server-sent events.
 *
 * Rules:
 * - There is one stream for the page. It names the paths that are shown; when these change it is
 *   opened again, a moment later, so that walking through the tree does not open one at each step.
 * - A page that nobody sees has no stream: a browser allows six connections to one server, and the
 *   server twenty streams. When it is seen again everything is read anew (`resync`).
 * - At a moment of the past there is nothing to wait for, so there is no stream.
 * - A stream that ends is opened again after a pause that grows to 15 seconds, and is told of.
 */

import { bus, moment } from "./state.js";

const SETTLE_MS = 250;
const PAUSE_MS_MAX = 15_000;
const HIDDEN_MS = 20_000;
const PATHS_MAX = 100;
const LENGTH_MAX = 6_000;

let source = null;
let shown = "";
let timer = 0;
let hideTimer = 0;
let pauseMs = 1000;
let wasLost = false;
let paths = [];

/** Name the paths that are shown. Their children are meant with them. */
export function watchPaths(wanted) {
  paths = wanted;
  if (source !== null && query() !== shown) settle();
}

/** Open the stream, and keep it open as long as the page is seen. */
export function startLive() {
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hideTimer);
    if (document.hidden) hideTimer = setTimeout(close, HIDDEN_MS);
    else if (source === null && moment() === null) {
      open();
      bus.emit("resync");
    }
  });
  bus.on("moment", () => (moment() === null ? open() : close()));
  if (moment() === null) open();
}

function settle() {
  clearTimeout(timer);
  timer = setTimeout(open, SETTLE_MS);
}

function query() {
  const wanted = new URLSearchParams();
  let length = 0;
  for (const path of paths.slice(0, PATHS_MAX)) {
    length += encodeURIComponent(path).length + 6;
    if (length > LENGTH_MAX) break;
    wanted.append("path", path);
  }
  return wanted.toString();
}

function open() {
  close();
  if (document.hidden) return;
  shown = query();
  const opened = new EventSource(`/api/live${shown && `?${shown}`}`);
  source = opened;
  opened.onopen = () => {
    pauseMs = 1000;
    if (wasLost) bus.emit("resync");
    wasLost = false;
    bus.emit("online", { isOnline: true, who: "dashboard" });
  };
  opened.onerror = () => {
    if (opened !== source) return;
    close();
    wasLost = true;
    bus.emit("online", { isOnline: false, who: "dashboard", text: "The dashboard does not answer." });
    timer = setTimeout(open, pauseMs);
    pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX);
  };
  for (const kind of ["changed", "overview", "state", "resync"]) {
    opened.addEventListener(kind, (event) => {
      const detail = read(event.data);
      if (kind === "state")
        bus.emit("online", {
          isOnline: detail.connected,
          isRefused: detail.refused,
          who: "service",
          text: detail.text,
        });
      bus.emit(kind, detail);
    });
  }
}

function close() {
  clearTimeout(timer);
  source?.close();
  source = null;
}

function read(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}
