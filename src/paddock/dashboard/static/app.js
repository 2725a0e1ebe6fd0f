/* The page: its frame, the views, and the way between them.
 *
 * A view is made when it is first seen and then kept, so that an open tree is still open when one
 * comes back. It has `element`, `show(parameters)`, `refresh()` and `hide()`.
 */

import { get } from "./api.js";
import { el, fill, setText, svg } from "./dom.js";
import { openIdentity } from "./identity.js";
import { startLive, watchPaths } from "./live.js";
import { go, link, place } from "./router.js";
import { bus, chooseMoment, moment, shared } from "./state.js";
import { visible } from "./text.js";
import { startTheme } from "./theme.js";
import { createTimeBar } from "./time_bar.js";
import { refreshTimes } from "./units.js";
import { createCoordination } from "./views/coordination.js";
import { createOverview } from "./views/overview.js";
import { createSessions } from "./views/sessions.js";
import { createTime } from "./views/time.js";
import { createTree } from "./views/tree.js";
import { versionWords } from "./words.js";

const VIEWS = {
  overview: {
    title: "Overview",
    icon: "M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-4H4zM14 8h6V4h-6z",
    create: createOverview,
  },
  tree: {
    title: "Tree",
    icon: "M5 4v12a2 2 0 0 0 2 2h4M5 9h6M13 7h7v4h-7zM13 16h7v4h-7z",
    create: createTree,
  },
  coordination: {
    title: "Coordination",
    icon: "M7 11V8a5 5 0 0 1 10 0v3M5 11h14v9H5zM12 14.5v2",
    create: createCoordination,
  },
  sessions: { title: "Sessions", icon: "M4 5h16v10H4zM9 20h6M12 15v5", create: createSessions },
  time: { title: "Time", icon: "M12 4a8 8 0 1 1 0 16 8 8 0 0 1 0-16M12 8v4l3 2", create: createTime },
};

const byId = (id) => document.getElementById(id);
const main = byId("main");
const made = new Map();
let current = null;
let progressTimer = 0;
let wantsSearch = false;

function drawNavigation() {
  fill(
    byId("views"),
    Object.entries(VIEWS).map(([name, { title, icon }]) =>
      el(
        "a",
        { href: link(name), "data-view": name },
        svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: icon })),
        el("span", null, title),
      ),
    ),
  );
}

function route() {
  const { view, parameters } = place();
  let wanted = made.get(view);
  if (wanted === undefined) {
    wanted = VIEWS[view].create();
    made.set(view, wanted);
  }
  if (wanted !== current) {
    current?.hide();
    watchPaths([]);
    current = wanted;
    fill(main, wanted.element);
    main.scrollTop = 0;
  }
  chooseMoment(parameters.get("at"));
  document.body.dataset.view = view;
  document.title = `${VIEWS[view].title} · ${visible(shared.about.service, 60)} · Paddock`;
  for (const anchor of byId("views").children) {
    if (anchor.dataset.view === view) anchor.setAttribute("aria-current", "page");
    else anchor.removeAttribute("aria-current");
    anchor.href = link(anchor.dataset.view);
  }
  current.show(parameters);
  focusSearch();
}

function drawAbout() {
  const { service, is_paddock: isPaddock, version, identity } = shared.about;
  fill(
    byId("service"),
    el("bdi", { title: visible(service, 400) }, visible(service, 60)),
    // A service that was away from the start may be either.
    isPaddock !== null &&
      el("span.kind", null, `${isPaddock ? "Paddock" : "ZooKeeper"} ${version ? versionWords(version) : ""}`),
  );
  // An address is no name that somebody has chosen.
  const names = (identity?.names ?? []).filter((name) => !name.startsWith("ip:"));
  const button = byId("identity");
  setText(button, identity?.is_super ? "Superuser" : names.length ? visible(names[0], 24) : "Log in");
  button.title = `To the service you are ${identity?.is_super ? "its superuser" : names.map((name) => visible(name, 60)).join(", ") || "nobody in particular"}.`;
}

/** Show what is away, and take it back when it is there again. */
function drawOnline(states, { isOnline, isRefused, who, text }) {
  const isBack = isOnline && states.get(who);
  states.set(who, isOnline ? null : text);
  const away = [...states.values()].find((reason) => reason !== null);
  const state = byId("link-state");
  state.classList.toggle("bad", away !== undefined);
  state.title = away ?? "Changes are shown as they happen.";
  setText(state, moment() !== null ? "" : away === undefined ? "Live" : isRefused ? "Refused" : "Away");
  const notice = byId("away-notice");
  notice.hidden = away === undefined;
  if (isRefused) fill(notice, el("strong", null, "You have to log in."), ` ${away ?? ""}`);
  else
    fill(
      notice,
      el("strong", null, who === "dashboard" && !isOnline ? "The dashboard is away." : "The service is away."),
      ` ${away ?? ""} What you see is what was there last; the page goes on by itself.`,
    );
  // While it was away nobody could say what it can do. And a stream that is refused does not say
  // why: perhaps the login has ended, which this finds out.
  if (isBack || !isOnline) rereadAbout();
  if (isBack) current?.refresh();
}

async function rereadAbout() {
  try {
    const had = Boolean(shared.about.history);
    shared.about = await get("about", {}, { isTimeless: true });
    // The view of time is another one without a history.
    if (had !== Boolean(shared.about.history)) made.delete("time");
    bus.emit("about");
  } catch (error) {
    if (error.status === undefined) throw error;
  }
}

function refuseStranger() {
  current?.hide();
  fill(
    main,
    el(
      "div.empty",
      { role: "alert" },
      el("p.empty-title", null, "This page is no longer logged in"),
      el(
        "p",
        null,
        "A login lasts a day, and ends when the dashboard is started again. Use the link that it has printed at its start, or start it again: ",
      ),
      el("pre", null, "paddock dashboard"),
    ),
  );
}

async function start() {
  startTheme(byId("theme"));
  bus.on("stranger", refuseStranger);
  bus.on("busy", (running) => {
    clearTimeout(progressTimer);
    // A quick answer needs no sign.
    if (running) progressTimer = setTimeout(() => byId("progress").classList.add("busy"), 250);
    else byId("progress").classList.remove("busy");
  });
  await readAbout();
}

async function readAbout() {
  try {
    shared.about = await get("about", {}, { isTimeless: true });
  } catch (error) {
    if (error.status === undefined) throw error;
    if (error.status === 401) return;
    fill(
      main,
      el(
        "div.empty",
        { role: "alert" },
        el("p.empty-title", null, "The dashboard cannot be shown"),
        el("p", null, error.message),
        el("button.plain", { type: "button", onclick: readAbout }, "Try again"),
      ),
    );
    return;
  }
  drawNavigation();
  drawAbout();
  const timeBar = createTimeBar();
  const notice = el("p.notice.bad", { id: "away-notice", role: "alert", hidden: true });
  fill(byId("notices"), notice, timeBar.element);
  const states = new Map();
  bus.on("online", (state) => drawOnline(states, state));
  bus.on("about", drawAbout);
  bus.on("moment", (at) => {
    setText(byId("link-state"), at === null ? "Live" : "");
    if (at !== null) notice.hidden = true;
  });
  bus.on("resync", () => current?.refresh());
  byId("identity").addEventListener("click", () => openIdentity(() => current?.refresh()));
  document.addEventListener("keydown", shortcut);
  window.addEventListener("hashchange", route);
  setInterval(refreshTimes, 1000);
  route();
  startLive();
}

function focusSearch() {
  if (wantsSearch) document.querySelector(".tree-view input[type=search]")?.focus();
  wantsSearch = false;
}

function shortcut(event) {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest?.("input, textarea, select, [contenteditable], dialog")) return;
  event.preventDefault();
  wantsSearch = true;
  if (place().view === "tree") focusSearch();
  else go("tree");
}

start();
