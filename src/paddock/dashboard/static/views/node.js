/* One node: its data, its stat and rights in words, who owns and watches it, and its history. */

import { get } from "../api.js";
import { createDataView } from "../data_view.js";
import { el, fill, flash } from "../dom.js";
import { createReading } from "../reading.js";
import { link, nodeLink } from "../router.js";
import { moment, shared } from "../state.js";
import { shownName, visible } from "../text.js";
import { bytes, count, number } from "../units.js";
import { aclList, factList, kindWords, session, statList } from "../words.js";
import { openAcl, openCreate, openDelete, openSet } from "../writing.js";
import { changeRow } from "./changes.js";

const FIRST_BYTES = 65_536;
const ALL_BYTES = 1_500_000;
const AGAIN_MS = 250;

export function createNodePanel({ onclose }) {
  const crumbs = el("nav.crumbs", { "aria-label": "Path" });
  const kind = el("span.badge");
  const heading = el("h2", { tabIndex: -1 });
  const copyButton = el("button.quiet.copy", { type: "button", onclick: copy }, "Copy the path");
  const actions = el("div.actions");
  const data = createDataView(() => read(ALL_BYTES));
  const hidden = el("p.empty", { hidden: true });
  const stat = el("div");
  const rights = el("div");
  const others = el("div");
  const past = createPast();
  const content = el(
    "div",
    null,
    actions,
    el("section", null, el("h3", null, "Data"), hidden, data.element),
    el("section", null, el("h3", null, "Facts"), stat),
    others,
    el("section", null, el("h3", null, "Who may do what"), rights),
    past.element,
  );
  let path = null;
  let answer = null;
  let wantedBytes = FIRST_BYTES;
  let again = 0;
  const reading = createReading({
    content,
    what: "This node",
    lines: 10,
    load: (signal) => get("node", { path, bytes: wantedBytes }, { signal }),
    draw,
  });
  const nothing = el(
    "div.empty",
    null,
    el("p.empty-title", null, "No node is selected"),
    el(
      "p",
      null,
      "Select one in the tree to see its data, its facts and who may do what. Arrow keys move through the tree, ",
      el("kbd", null, "/"),
      " searches in names.",
    ),
  );
  const back = el("button.quiet.back", { type: "button", onclick: onclose }, "‹ Tree");
  const whole = el(
    "div.node",
    { hidden: true },
    el("div.node-head", null, back, crumbs, el("div.node-title", null, heading, kind, copyButton)),
    reading.element,
  );
  const element = el("section.node-side", { "aria-label": "Node" }, nothing, whole);

  function read(amount = wantedBytes) {
    wantedBytes = amount;
    return reading.read();
  }

  function draw(found) {
    const isOther = answer === null || answer.path !== found.path;
    const hasChanged = !isOther && found.stat?.mzxid !== answer.stat?.mzxid;
    answer = found;
    kind.textContent = found.kind === "ttl" ? "TTL" : (found.kind ?? "");
    kind.title = kindWords(found.kind);
    kind.hidden = !found.kind;
    data.element.hidden = found.data === null;
    hidden.hidden = found.data !== null;
    hidden.textContent = found.hidden ?? "You may not read the data of this node.";
    if (found.data !== null) data.update(found);
    fill(
      stat,
      found.stat
        ? statList(found.stat, found.size)
        : el("p.hint", null, "You may not know anything about this node but that it is there."),
    );
    fill(
      rights,
      !found.acl ? el("p.hint", null, "You may not read the rights of this node.") : aclList(found.acl),
    );
    drawOthers(found);
    drawActions(found);
    past.show(path, hasChanged);
    if (hasChanged) flash(data.element);
  }

  function drawOthers({ owner, watchers, quota }) {
    fill(
      others,
      (owner || watchers || quota) &&
        el(
          "section",
          null,
          el("h3", null, "Who has to do with it"),
          factList([
            ["Owner", owner && ["session ", session(owner), ", with which it goes"]],
            [
              "Watched by",
              watchers &&
                (watchers.length
                  ? [
                      count(watchers.length, "session"),
                      ": ",
                      watchers
                        .slice(0, 20)
                        .map((one, index) => [index ? ", " : "", session(one.session ?? one)]),
                    ]
                  : "nobody"),
            ],
            ["Quota", quota && quotaWords(quota)],
          ]),
        ),
    );
  }

  function drawActions(found) {
    const mayWrite = shared.about.allow_writes && moment() === null;
    const done = () => read();
    fill(
      actions,
      mayWrite && [
        found.data !== null &&
          el("button.plain", { type: "button", onclick: () => openSet(found, done) }, "Set data…"),
        el("button.plain", { type: "button", onclick: () => openCreate(found, done) }, "Create a child…"),
        found.acl &&
          found.stat &&
          el("button.plain", { type: "button", onclick: () => openAcl(found, done) }, "Change rights…"),
        found.path !== "/" &&
          el("button.danger", { type: "button", onclick: () => openDelete(found, onclose) }, "Delete…"),
      ],
    );
  }

  async function copy() {
    await navigator.clipboard.writeText(path);
    copyButton.textContent = "Copied";
    setTimeout(() => (copyButton.textContent = "Copy the path"), 2000);
  }

  return {
    element,
    show(wanted) {
      nothing.hidden = true;
      whole.hidden = false;
      if (wanted !== path) {
        path = wanted;
        answer = null;
        wantedBytes = FIRST_BYTES;
        kind.hidden = true;
        reading.reset();
        fill(crumbs, crumbLinks(path));
        fill(heading, path === "/" ? "/" : shownName(path.slice(path.lastIndexOf("/") + 1)));
      }
      read();
    },
    focus: () => heading.focus(),
    clear() {
      path = answer = null;
      nothing.hidden = false;
      whole.hidden = true;
    },
    /** It has changed: read it again, a moment later, because changes come in bursts. */
    onchange() {
      clearTimeout(again);
      again = setTimeout(() => path !== null && read(), AGAIN_MS);
    },
  };
}

/**
 * Return the section with the changes of a node. They are read when it is opened, and again when the person asks
 * for it: each reading goes through the whole history, so it does not follow live changes.
 */
function createPast() {
  const rows = el("ol.changes");
  const newer = el(
    "button.plain",
    { type: "button", hidden: true, onclick: () => read(null) },
    "It has changed since: read again",
  );
  const more = el(
    "button.plain",
    { type: "button", hidden: true, onclick: () => read(next) },
    "Earlier changes",
  );
  const state = el("p.hint", { role: "status" });
  const details = el(
    "details.past",
    { ontoggle: () => details.open && !isRead && read(null) },
    el("summary", null, "History"),
    newer,
    rows,
    state,
    more,
  );
  let path = null;
  let next = null;
  let isRead = false;
  let controller = null;

  async function read(before) {
    controller?.abort();
    const mine = (controller = new AbortController());
    isRead = true;
    newer.hidden = more.hidden = true;
    state.textContent = "Reading…";
    try {
      const answer = await get(
        "history",
        { path, before, limit: 20 },
        { isTimeless: true, signal: mine.signal },
      );
      if (before === null) fill(rows);
      rows.append(
        ...answer.changes.map((change) =>
          el("li", null, changeRow({ path, ...change }, { isPathShown: false })),
        ),
      );
      next = answer.next ?? null;
      more.hidden = next === null;
      state.textContent = rows.childElementCount
        ? ""
        : "Nothing became of it as far back as the history goes.";
    } catch (error) {
      if (error.name === "AbortError") return;
      if (error.status === undefined) throw error;
      state.textContent = error.message;
      isRead = false;
    }
  }

  return {
    element: details,
    /** Show the history of a node; `hasChanged` says that it goes on. */
    show(wanted, hasChanged) {
      details.hidden = !shared.about.history;
      if (wanted === path) {
        newer.hidden = newer.hidden && !(hasChanged && isRead);
        return;
      }
      controller?.abort();
      path = wanted;
      isRead = details.open = false;
      newer.hidden = more.hidden = true;
      state.textContent = "";
      fill(rows);
    },
  };
}

function crumbLinks(path) {
  const names = path === "/" ? [] : path.slice(1).split("/");
  let way = "";
  const links = names.slice(0, -1).map((name) => {
    way += `/${name}`;
    return ["/", el("a", { href: nodeLink(way) }, shownName(name, 40))];
  });
  return [
    el("a", { href: path === "/" ? link("tree") : nodeLink("/"), "aria-label": "the root" }, "root"),
    links.length ? links : null,
    names.length ? "/" : null,
  ];
}

function quotaWords({ nodes, nodes_limit: nodesLimit, bytes: used, bytes_limit: bytesLimit, path }) {
  const parts = [];
  if (nodesLimit !== null && nodesLimit !== undefined)
    parts.push(`${number(nodes)} of ${count(nodesLimit, "node")}`);
  if (bytesLimit !== null && bytesLimit !== undefined) parts.push(`${bytes(used)} of ${bytes(bytesLimit)}`);
  return [parts.join(", ") || "no limit", path ? ` for all below ${visible(path, 80)}` : ""];
}
