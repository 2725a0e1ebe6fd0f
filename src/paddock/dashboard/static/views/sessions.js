/* Sessions: who is there, since when, and who left lately and why. */

import { get } from "../api.js";
import { el, fill } from "../dom.js";
import { createReading, lackingList } from "../reading.js";
import { link, nodeLink } from "../router.js";
import { moment } from "../state.js";
import { createTable } from "../table.js";
import { shownName, visible } from "../text.js";
import { ago, count, duration, number, since } from "../units.js";
import { factList, session } from "../words.js";

const POLL_MS = 5_000;
const COLUMNS = [
  { title: "Session", value: (one) => one.session, cell: (one) => session(one.session) },
  { title: "Address", value: (one) => one.address, cell: (one) => visible(one.address ?? "–", 60) },
  {
    title: "Identities",
    value: (one) => (one.identities ?? []).join(", "),
    cell: (one) => shownName((one.identities ?? []).join(", ") || "–", 60),
  },
  {
    title: "Age",
    isNumber: true,
    value: (one) => (one.since_ms ? -one.since_ms : null),
    cell: (one) => since(one.since_ms),
  },
  {
    title: "Timeout",
    isNumber: true,
    value: (one) => one.timeout_ms,
    cell: (one) => duration(one.timeout_ms),
  },
  {
    title: "Last heard of",
    isNumber: true,
    value: (one) => (one.last_heard_ms ? -one.last_heard_ms : null),
    cell: (one) => ago(one.last_heard_ms),
  },
  {
    title: "Ephemerals",
    isNumber: true,
    value: (one) => one.ephemeral_count,
    cell: (one) => number(one.ephemeral_count),
  },
  { title: "Watches", isNumber: true, value: (one) => one.watches, cell: (one) => number(one.watches) },
  { title: "Server", value: (one) => one.server, cell: (one) => visible(one.server ?? "–", 60) },
];
const ENDED_COLUMNS = [
  { title: "Session", value: (one) => one.session, cell: (one) => session(one.session) },
  { title: "Address", value: (one) => one.address, cell: (one) => visible(one.address ?? "–", 60) },
  {
    title: "Ended",
    isNumber: true,
    value: (one) => (one.ended_ms ? -one.ended_ms : null),
    cell: (one) => ago(one.ended_ms),
  },
  {
    title: "Cause",
    value: (one) => one.cause,
    cell: (one) =>
      el(`span.badge${one.cause === "closed" ? "" : ".warn"}`, null, visible(one.cause ?? "not known", 40)),
  },
  {
    title: "What is known",
    isWide: true,
    value: (one) => one.text,
    cell: (one) => visible(one.text ?? "", 300),
  },
];

export function createSessions() {
  const filter = el("input", {
    type: "search",
    placeholder: "Filter by session, address or identity",
    "aria-label": "Filter by session, address or identity",
    autocomplete: "off",
    spellcheck: "false",
    oninput: () => drawTables(),
  });
  const amount = el("span.hint", { role: "status" });
  const noSession = el("p");
  const table = createTable({
    label: "Sessions",
    columns: COLUMNS,
    key: (one) => one.session,
    empty: noSession,
  });
  const endedTable = createTable({
    label: "Sessions that ended lately",
    columns: ENDED_COLUMNS,
    key: (one) => one.session,
    empty: el("p", null, "No session has ended lately, or the service does not tell."),
  });
  const lacking = el("div");
  const content = el(
    "div",
    null,
    el("div.filters", null, filter, amount),
    table.element,
    el("h2", null, "Ended lately"),
    endedTable.element,
    lacking,
  );
  const all = createReading({
    content,
    what: "The sessions",
    load: (signal) => get("sessions", {}, { signal }),
    draw,
  });
  const allPart = el("div", null, el("h1", null, "Sessions"), all.element);
  const oneContent = el("div");
  const one = createReading({
    content: oneContent,
    what: "This session",
    load: (signal, id) => get("session", { id }, { signal }),
    draw: drawOne,
  });
  const oneTitle = el("h1");
  const onePart = el(
    "div",
    { hidden: true },
    el("a.back-link", { href: "#/sessions" }, "‹ All sessions"),
    oneTitle,
    one.element,
  );
  const element = el("div.view.sessions", null, allPart, onePart);
  let answer = null;
  let id = null;
  let isShown = false;
  let timer = 0;

  function draw(found) {
    answer = found;
    drawTables();
    fill(
      lacking,
      found.lacking?.length
        ? [el("h2", null, "What this service does not tell"), lackingList(found.lacking)]
        : null,
    );
    plan();
  }

  function drawTables() {
    const text = filter.value.toLowerCase();
    const fits = (row) =>
      text === "" ||
      [row.session, row.address, ...(row.identities ?? [])].join(" ").toLowerCase().includes(text);
    const shown = answer.sessions.filter(fits);
    amount.textContent =
      shown.length === answer.sessions.length
        ? count(shown.length, "session")
        : `${number(shown.length)} of ${count(answer.sessions.length, "session")}`;
    const isTold = answer.sessions.length > 0 || !answer.lacking?.length;
    amount.hidden = !isTold;
    noSession.textContent = nobodyWords(isTold);
    if (answer.total > answer.sessions.length)
      amount.textContent += `, the youngest of ${number(answer.total)}`;
    table.update(shown);
    endedTable.update((answer.ended ?? []).filter(fits));
  }

  function nobodyWords(isTold) {
    if (moment() !== null) return "No session had an ephemeral node then, or none fits the filter.";
    if (!isTold) return "The service does not tell who is there. Below is what it takes.";
    return answer.sessions.length ? "No session fits the filter." : "There is no session.";
  }

  function drawOne(found) {
    const alive = found.session && typeof found.session === "object" ? found.session : null;
    const { ended, story } = found;
    fill(
      oneContent,
      ended
        ? el(
            "p.notice.warn",
            null,
            el("strong", null, `Ended: ${visible(ended.cause ?? "not known why", 60)}. `),
            visible(ended.text ?? "", 400),
            " ",
            ago(ended.ended_ms),
          )
        : null,
      alive
        ? factList([
            ["Address", visible(alive.address ?? "not known", 80)],
            ["Identities", shownName((alive.identities ?? []).join(", ") || "none", 200)],
            ["Open for", since(alive.since_ms)],
            ["Timeout", duration(alive.timeout_ms)],
            ["Last heard of", ago(alive.last_heard_ms)],
            ["Server", visible(alive.server ?? "not known", 80)],
            [
              "Watches",
              alive.watches === null || alive.watches === undefined
                ? "the service does not tell"
                : number(alive.watches),
            ],
          ])
        : null,
      alive
        ? el(
            "section",
            null,
            el(
              "h2",
              null,
              `Ephemeral nodes: ${number(alive.ephemeral_count ?? alive.ephemerals?.length ?? 0)}`,
            ),
            ephemeralList(alive),
          )
        : null,
      el(
        "section",
        null,
        el("h2", null, "Its story"),
        story
          ? storyList(story)
          : el(
              "div.empty",
              null,
              el(
                "p",
                null,
                "The story of a session is in the history that a Paddock server keeps beside its data. This service has none, or it does not go back that far.",
              ),
              lackingList(found.lacking),
            ),
      ),
      el("button.plain", { type: "button", onclick: () => one.read(id) }, "Read again"),
    );
  }

  function plan() {
    clearTimeout(timer);
    if (isShown && moment() === null) timer = setTimeout(refresh, POLL_MS);
  }

  function refresh() {
    // The story of one session goes through the whole history, so it is read once, and when it is asked for.
    if (id === null) all.read();
  }

  return {
    element,
    show(parameters) {
      isShown = true;
      const wanted = parameters.get("id");
      if (wanted !== id && wanted !== null) one.reset();
      id = wanted;
      allPart.hidden = id !== null;
      onePart.hidden = id === null;
      onePart.firstElementChild.href = link("sessions");
      oneTitle.textContent = id === null ? "" : `Session ${visible(id, 30)}`;
      if (id === null) all.read();
      else one.read(id);
    },
    refresh,
    hide() {
      isShown = false;
      clearTimeout(timer);
    },
  };
}

function ephemeralList({ ephemerals, ephemeral_count: amount }) {
  if (!ephemerals?.length) return el("p.hint", null, "It owns none. Nothing goes when it ends.");
  const rest = (amount ?? ephemerals.length) - ephemerals.length;
  return [
    el(
      "ul.paths",
      null,
      ephemerals.map((path) => el("li", null, el("a", { href: nodeLink(path) }, shownName(path, 200)))),
    ),
    rest > 0 ? el("p.hint", null, `and ${number(rest)} more`) : null,
  ];
}

function storyList(story) {
  const lines = Array.isArray(story) ? story : story.lines;
  return [
    story.title ? el("p", null, visible(story.title, 400)) : null,
    el(
      "ol.story",
      null,
      (lines ?? []).map((line) =>
        typeof line === "string"
          ? el("li", null, el("span"), el("span", null, visible(line, 400)))
          : el(
              "li",
              null,
              line.time_ms ? ago(line.time_ms) : el("span"),
              el("span", null, visible(line.text, 400)),
            ),
      ),
    ),
  ];
}
