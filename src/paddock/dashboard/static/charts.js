/* Small charts of the last hour, drawn as SVG, with a table for those who do not see them.
 *
 * A chart has one or two lines. The first has the accent colour, the second is grey and dashed, so
 * they differ without colours too. The pointer, or the arrow keys, show the values of one moment. A hole
 * in the figures is a hole in the line.
 */

import { el, fill, setText, svg } from "./dom.js";
import { byName, duration, exact, shortTime } from "./units.js";

const WIDTH = 300;
const HEIGHT = 72;
const TABLE_ROWS = 12;
// More points than this are not seen, and cost time at each redraw.
const POINTS_MAX = 360;
// Figures come each second. A longer pause was one of the service.
const HOLE_MS = 30_000;

/** Return a chart: {element, update(lines)}, with lines as [{name, label, points: [[ms, value], …]}]. */
export function createChart(title) {
  let lines = [];
  let times = [];
  let chosen = -1;
  const value = el("p.chart-value");
  const legend = el("p.chart-legend");
  const drawing = svg("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    preserveAspectRatio: "none",
    "aria-hidden": "true",
  });
  const picture = el(
    "div.chart-picture",
    {
      tabIndex: 0,
      role: "img",
      onpointermove: point,
      onpointerleave: release,
      onkeydown: press,
      onblur: release,
    },
    drawing,
  );
  const top = el("span.chart-top");
  const from = el("span");
  const rows = el("tbody");
  const header = el("tr");
  const details = el(
    "details.chart-table",
    { ontoggle: drawTable },
    el("summary", null, "As a table"),
    el("table", { "aria-label": title }, el("thead", null, header), rows),
  );
  const element = el(
    "section.chart",
    { "aria-label": title },
    el("div.chart-head", null, el("h3", null, title), value),
    el("div.chart-area", null, top, picture),
    el("p.chart-axis", null, from, legend, el("span", null, "now")),
    details,
  );

  function draw() {
    const ceiling = niceCeiling(
      Math.max(0, ...lines.map((line) => line.points.reduce((most, [, y]) => Math.max(most, y ?? 0), 0))),
    );
    const [start, end] = [times[0] ?? 0, times.at(-1) ?? 1];
    const x = (time) => ((time - start) / Math.max(1, end - start)) * WIDTH;
    const y = (amount) => HEIGHT - 2 - (amount / ceiling) * (HEIGHT - 6);
    const shapes = [
      svg("line", { class: "grid", x1: 0, x2: WIDTH, y1: HEIGHT - 2, y2: HEIGHT - 2 }),
      svg("line", { class: "grid", x1: 0, x2: WIDTH, y1: 4, y2: 4 }),
    ];
    lines.forEach((line, index) => {
      const drawn = path(line.points, x, y);
      if (index === 0 && lines.length === 1)
        shapes.push(svg("path", { class: "area", d: area(line.points, x, y) }));
      shapes.push(svg("path", { class: index === 0 ? "line first" : "line second", d: drawn }));
    });
    if (chosen >= 0)
      shapes.push(
        svg("line", { class: "cursor", x1: x(times[chosen]), x2: x(times[chosen]), y1: 0, y2: HEIGHT }),
      );
    fill(drawing, shapes);
    const name = lines[0]?.name ?? "";
    setText(top, times.length ? byName(name, ceiling) : "");
    setText(from, times.length ? `${span(end - start)} ago` : "no figures yet");
    const said = lines
      .map((line) => `${line.label ? `${line.label}: ` : ""}${byName(line.name, at(line, chosen))}`)
      .join(" · ");
    setText(value, chosen >= 0 ? `${said} at ${shortTime(times[chosen])}` : said);
    fill(
      legend,
      lines.length > 1 && lines.map((line, index) => el(`span.key.key-${index}`, null, line.label)),
    );
    picture.setAttribute(
      "aria-label",
      times.length
        ? `${title}: now ${said}, at most ${byName(name, ceiling)} in the last ${span(end - start)}`
        : `${title}: no figures yet`,
    );
    if (details.open) drawTable();
  }

  function at(line, index) {
    return (
      (index < 0 ? line.points.at(-1) : line.points[Math.min(index, line.points.length - 1)])?.[1] ?? null
    );
  }

  function drawTable() {
    if (!details.open) return;
    fill(
      header,
      el("th", { scope: "col" }, "Time"),
      lines.map((line) => el("th.number", { scope: "col" }, line.label || title)),
    );
    const step = Math.max(1, Math.ceil(times.length / TABLE_ROWS));
    const wanted = times
      .map((_, index) => index)
      .filter((index) => (times.length - 1 - index) % step === 0)
      .reverse();
    fill(
      rows,
      wanted.map((index) =>
        el(
          "tr",
          null,
          el("td", { title: exact(times[index]) }, shortTime(times[index])),
          lines.map((line) => el("td.number", null, byName(line.name, at(line, index)))),
        ),
      ),
    );
  }

  function point(event) {
    const box = picture.getBoundingClientRect();
    choose(Math.round(((event.clientX - box.left) / box.width) * (times.length - 1)));
  }

  function press(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    choose((chosen < 0 ? times.length - 1 : chosen) + step * Math.max(1, Math.round(times.length / 60)));
  }

  function choose(index) {
    chosen = times.length ? Math.min(times.length - 1, Math.max(0, index)) : -1;
    draw();
  }

  function release() {
    chosen = -1;
    draw();
  }

  return {
    element,
    update(wanted) {
      lines = wanted.map((line) => ({ ...line, points: thinned(line.points) }));
      times = (lines[0]?.points ?? []).map(([time]) => time);
      if (chosen >= times.length) chosen = -1;
      draw();
    },
  };
}

/** Return fewer points: of each group the highest one, because peaks are what one looks for. */
function thinned(points) {
  const size = Math.ceil(points.length / POINTS_MAX);
  if (size <= 1) return points;
  const kept = [];
  // Groups are counted from the newest point, so that the current value stays.
  for (let end = points.length; end > 0; end -= size) {
    const group = points.slice(Math.max(0, end - size), end);
    kept.push(
      kept.length === 0
        ? group.at(-1)
        : group.reduce((most, one) => ((one[1] ?? -1) > (most[1] ?? -1) ? one : most)),
    );
  }
  return kept.reverse();
}

function path(points, x, y) {
  let drawn = "";
  let last = null;
  for (const [time, amount] of points) {
    if (amount === null || amount === undefined) {
      last = null;
      continue;
    }
    drawn += `${last === null || time - last > HOLE_MS ? "M" : "L"}${x(time).toFixed(1)} ${y(amount).toFixed(1)}`;
    last = time;
  }
  return drawn;
}

function area(points, x, y) {
  const known = points.filter(([, amount]) => amount !== null && amount !== undefined);
  if (known.length < 2 || known.some(([time], index) => index > 0 && time - known[index - 1][0] > HOLE_MS))
    return "";
  return `${path(known, x, y)}L${x(known.at(-1)[0]).toFixed(1)} ${HEIGHT - 2}L${x(known[0][0]).toFixed(1)} ${HEIGHT - 2}Z`;
}

/** Return how long a chart goes back, in whole minutes. */
function span(ms) {
  return duration(ms < 120_000 ? ms : Math.round(ms / 60_000) * 60_000);
}

function niceCeiling(most) {
  if (most <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((step) => step >= most) ?? 10 * power;
}
