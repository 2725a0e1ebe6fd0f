/* The overview: problems first, then the servers, then the last hour. */

import { get } from "../api.js";
import { createChart } from "../charts.js";
import { el, fill, reconcile } from "../dom.js";
import { createReading, lackingList } from "../reading.js";
import { VIEWS, link, nodeLink, sessionLink } from "../router.js";
import { bus, moment, shared } from "../state.js";
import { createTable } from "../table.js";
import { shownName, visible } from "../text.js";
import { bytes, count, duration, milliseconds, number, since as sinceTime } from "../units.js";
import { versionWords } from "../words.js";

const HOUR_MS = 3_600_000;
const CHARTS = [
  { title: "Requests", series: [["requests_per_second", ""]] },
  {
    title: "Latency",
    series: [
      ["latency_p99_ms", "99 %"],
      ["latency_p50_ms", "50 %"],
      ["latency_avg_ms", "mean"],
    ],
  },
  { title: "Sync to disk", series: [["sync_avg_ms", "mean"]] },
  { title: "Sessions", series: [["sessions", ""]] },
  { title: "Watches", series: [["watches", ""]] },
  { title: "Nodes", series: [["nodes", ""]] },
  { title: "Connections", series: [["connections", ""]] },
  { title: "Data", series: [["data_bytes", ""]] },
];
const COLUMNS = [
  { title: "Server", value: (one) => one.server, cell: (one) => shownName(one.server, 60) },
  {
    title: "Mode",
    value: (one) => one.problem ?? one.mode,
    cell: (one) =>
      one.problem
        ? el("span.badge.bad", { title: visible(one.problem, 300) }, "away")
        : el("span.badge", null, visible(one.mode ?? "not known", 20)),
  },
  {
    title: "Version",
    value: (one) => one.version,
    cell: (one) => el("span", { title: visible(one.version ?? "not known", 80) }, versionWords(one.version)),
  },
  {
    title: "zxid",
    value: (one) => one.zxid,
    cell: (one) => el("code", null, one.zxid ?? "–"),
    isSortable: false,
  },
  {
    title: "Lag",
    isNumber: true,
    value: (one) => one.lag,
    cell: (one) =>
      one.lag === null || one.lag === undefined ? "–" : one.lag === 0 ? "none" : count(one.lag, "write"),
  },
  {
    title: "Latency",
    isNumber: true,
    value: (one) => one.latency_ms?.avg,
    cell: (one) =>
      one.latency_ms
        ? el(
            "span",
            {
              title: `at least ${milliseconds(one.latency_ms.min)}, at most ${milliseconds(one.latency_ms.max)}`,
            },
            milliseconds(one.latency_ms.avg),
          )
        : "–",
  },
  { title: "Sync", isNumber: true, value: (one) => one.sync_ms, cell: (one) => milliseconds(one.sync_ms) },
  {
    title: "Connections",
    isNumber: true,
    value: (one) => one.connections,
    cell: (one) => number(one.connections),
  },
  { title: "Sessions", isNumber: true, value: (one) => one.sessions, cell: (one) => number(one.sessions) },
  { title: "Watches", isNumber: true, value: (one) => one.watches, cell: (one) => number(one.watches) },
  {
    title: "Nodes",
    isNumber: true,
    value: (one) => one.nodes,
    cell: (one) =>
      one.ephemerals === null || one.ephemerals === undefined
        ? number(one.nodes)
        : el("span", { title: `${count(one.ephemerals, "ephemeral one")} among them` }, number(one.nodes)),
  },
  { title: "Data", isNumber: true, value: (one) => one.data_bytes, cell: (one) => bytes(one.data_bytes) },
  {
    title: "Up for",
    isNumber: true,
    // As exact as it is shown, so that the cell is made again when it has to be.
    value: ({ uptime_ms: ms }) => (ms === null || ms === undefined ? null : ms - (ms % (ms < 60_000 ? 1000 : 60_000))),
    cell: (one) => duration(one.uptime_ms),
  },
];

export function createOverview() {
  const problems = el("ul.problems");
  const fine = el("p.fine", { hidden: true });
  const servers = createTable({
    label: "Servers",
    columns: COLUMNS,
    key: (one) => one.server,
    empty: el("p", null, "No server is known. The dashboard asks those that `--server` names."),
    onrow: (row, one) => row.classList.toggle("away", Boolean(one.problem)),
  });
  const charts = CHARTS.map(({ title, series }) => ({ series, chart: createChart(title) }));
  const chartGrid = el(
    "div.charts",
    null,
    charts.map(({ chart }) => chart.element),
  );
  const noCharts = el(
    "p.empty",
    { hidden: true },
    "The charts show the last hour up to now. At a moment of the past, the table above says how it was.",
  );
  const lacking = el("section.lacking-part", { hidden: true });
  const content = el(
    "div",
    null,
    el("section", { "aria-label": "Problems" }, problems, fine),
    el("section", null, el("h2", null, "Servers"), servers.element),
    el("section", null, el("h2", null, "The last hour"), noCharts, chartGrid),
    lacking,
  );
  const reading = createReading({
    content,
    what: "The overview",
    lines: 8,
    load: (signal) => get("overview", {}, { signal }),
    draw: (answer) => draw(answer, true),
  });
  const element = el("div.view.overview", null, el("h1", null, "Overview"), reading.element);
  let series = {};
  let leave = null;

  function draw(answer, isWhole) {
    if (isWhole) series = {};
    for (const [name, points] of Object.entries(answer.series ?? {}))
      series[name] = merged(series[name] ?? [], points);
    drawProblems(answer.problems ?? []);
    servers.update(answer.servers ?? []);
    const isNow = moment() === null;
    chartGrid.hidden = !isNow;
    noCharts.hidden = isNow;
    for (const { series: wanted, chart } of charts) {
      const lines = wanted
        .filter(([name]) => series[name]?.length)
        .map(([name, label]) => ({ name, label, points: series[name] }))
        .slice(0, 2);
      chart.element.hidden = !lines.length && Object.keys(series).length > 0;
      chart.update(lines);
    }
    const lacks = shared.about.lacking ?? [];
    lacking.hidden = !lacks.length;
    if (lacks.length && !lacking.hasChildNodes())
      fill(lacking, el("h2", null, "What this service does not tell"), lackingList(lacks));
  }

  function drawProblems(found) {
    const sorted = [...found].sort((a, b) => Number(a.severity !== "bad") - Number(b.severity !== "bad"));
    reconcile(problems, sorted, {
      key: (one) => `${one.severity} ${one.what} ${one.since_ms}`,
      create: problemRow,
    });
    problems.hidden = !sorted.length;
    fine.hidden = sorted.length > 0;
    if (!fine.textContent) fine.textContent = "No problems found.";
  }

  return {
    element,
    show() {
      leave ??= [
        bus.on("overview", (answer) => moment() === null && reading.isRead() && draw(answer, false)),
      ];
      reading.read();
    },
    refresh: () => reading.read(),
    hide() {
      for (const end of leave ?? []) end();
      leave = null;
    },
  };
}

function problemRow({ severity, what, since_ms: since, link: target }) {
  const isBad = severity === "bad";
  const place = target ? targetLink(target) : null;
  return el(
    `li.${isBad ? "bad" : "warn"}`,
    null,
    el(`span.badge.${isBad ? "bad" : "warn"}`, null, isBad ? "Problem" : "Warning"),
    el("span.what", null, visible(what, 400)),
    since ? el("span.hint", null, "for ", sinceTime(since)) : el("span"),
    el("span.where", null, place ? el("a", { href: place }, "Show") : null),
  );
}

/** Return where a problem is to be seen: a path, a session or a view; null if it is none of them. */
function targetLink(target) {
  if (target.startsWith("/")) return nodeLink(target);
  if (target.startsWith("0x")) return sessionLink(target);
  const view = target.replace(/^#\//, "");
  // What is to be seen here needs no link.
  return VIEWS.includes(view) && view !== "overview" ? link(view) : null;
}

/** Add the points that are new, and let go of those older than an hour. */
function merged(before, points) {
  const last = before.at(-1)?.[0] ?? -Infinity;
  const all = [...before, ...points.filter(([time]) => time > last)];
  const end = all.at(-1)?.[0] ?? 0;
  return all[0] && end - all[0][0] > HOUR_MS ? all.filter(([time]) => end - time <= HOUR_MS) : all;
}
