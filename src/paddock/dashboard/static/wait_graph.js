/* Who waits for whom: sessions as boxes, and an arrow from each that waits to the one it waits for.
 *
 * Those who wait for nobody are at the right; each other one is left of all that it waits for. The
 * sessions of a deadlock stand in one column, and their arrows are red. What is waited for is written
 * where the arrows arrive, once for all of them. The arrangement is the same for the same waits, so it
 * does not jump while it is looked at.
 */

import { el, svg } from "./dom.js";
import { sessionLink } from "./router.js";
import { visible } from "./text.js";

const WIDTH = 172;
const HEIGHT = 44;
const PORT = 20;
const GAP_X = 200;
const GAP_Y = 30;
// Room for arrows within a column, and for what is written beside them.
const BESIDE = 170;
const MARGIN = 12;
const BOXES_MAX = 40;

/** Return the graph as an element. `addresses` has the address of a session. */
export function drawWaits(waits, deadlocks, addresses) {
  const stuck = new Set(deadlocks.flat());
  const wanted = [...waits].sort(
    (a, b) => Number(stuck.has(b.waiter_session)) - Number(stuck.has(a.waiter_session)),
  );
  const sessions = new Set();
  const shown = wanted.filter(({ waiter_session: waiter, holder_session: holder }) => {
    const fresh = [waiter, holder].filter((one) => !sessions.has(one));
    if (sessions.size + fresh.length > BOXES_MAX) return false;
    fresh.forEach((one) => sessions.add(one));
    return true;
  });
  const places = arrange([...sessions], shown, deadlocks);
  const all = [...places.values()];
  const width =
    Math.max(...all.map(({ x }) => x)) + WIDTH + (all.some(({ hasRight }) => hasRight) ? BESIDE : MARGIN);
  const height = Math.max(...all.map((place) => place.y + place.height)) + MARGIN;
  const edges = arrowsOf(shown, places).map((one) => edge(one, places, deadlocks));
  const drawing = svg(
    "svg",
    {
      class: "waits",
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      role: "group",
      "aria-label": `Who waits for whom: ${sessions.size} sessions`,
    },
    svg("defs", null, arrow("arrow", "arrow"), arrow("arrow-bad", "arrow bad")),
    edges.map(({ line }) => line),
    [...places].map(([session, place]) => box(session, place, stuck.has(session), addresses.get(session))),
    edges.map(({ label }) => label),
  );
  const rest = wanted.length - shown.length;
  return el(
    "div.waits-part",
    null,
    el("div.scroll.graph", { tabIndex: 0, role: "region", "aria-label": "Graph, scrollable" }, drawing),
    rest > 0 ? el("p.hint", null, `${rest} more waits are in the table.`) : null,
  );
}

/** Return the place of each session, with the heights at which arrows arrive, by path. */
function arrange(sessions, waits, circles) {
  const targets = new Map(sessions.map((one) => [one, []]));
  for (const { waiter_session: waiter, holder_session: holder } of waits) targets.get(waiter).push(holder);
  const layers = layersOf(sessions, targets, circles);
  const places = new Map(
    sessions.map((one) => [
      one,
      { ports: new Map(), layer: layers.get(one), hasRight: false, hasLeft: false },
    ]),
  );
  for (const { waiter_session: waiter, holder_session: holder, path } of waits) {
    const [from, to] = [places.get(waiter), places.get(holder)];
    if (from.layer !== to.layer) to.ports.set(path, 0);
    else from.hasRight = from.hasLeft = true;
  }
  const last = Math.max(0, ...layers.values());
  const middle = (one) => {
    const known = targets
      .get(one)
      .map((target) => places.get(target).y)
      .filter((y) => y !== undefined);
    return known.length ? known.reduce((a, b) => a + b, 0) / known.length : 0;
  };
  const isBeside = (layer) => sessions.some((one) => layers.get(one) === layer && places.get(one).hasLeft);
  let x = isBeside(last) ? BESIDE : MARGIN;
  const lefts = [];
  for (let layer = last; layer >= 0; layer--) {
    lefts[layer] = x;
    x +=
      WIDTH +
      GAP_X +
      (isBeside(layer) ? BESIDE / 2 : 0) +
      (layer > 0 && isBeside(layer - 1) ? BESIDE / 2 : 0);
  }
  for (let layer = 0; layer <= last; layer++) {
    const column = sessions.filter((one) => layers.get(one) === layer);
    if (layer > 0) column.sort((a, b) => middle(a) - middle(b) || (a < b ? -1 : 1));
    let free = MARGIN;
    for (const one of column) {
      const place = places.get(one);
      place.x = lefts[layer];
      place.height = Math.max(HEIGHT, PORT * (place.ports.size + 0.5));
      place.y = column.length === 1 && layer > 0 ? Math.max(free, middle(one)) : free;
      free = place.y + place.height + GAP_Y;
      let port = 0;
      for (const path of place.ports.keys())
        place.ports.set(path, place.y + (place.height * ++port) / (place.ports.size + 1));
    }
  }
  return places;
}

/** Return how far left each session stands: one more than all that it waits for. */
function layersOf(sessions, targets, circles) {
  const layers = new Map();
  const entered = new Set();
  const layerOf = (one) => {
    if (layers.has(one)) return layers.get(one);
    // A circle that the server has not told of must not go round for ever.
    if (entered.has(one)) return 0;
    const group = circles.find((circle) => circle.includes(one)) ?? [one];
    group.forEach((member) => entered.add(member));
    const outside = group
      .flatMap((member) => targets.get(member) ?? [])
      .filter((target) => !group.includes(target));
    const layer = outside.length ? 1 + Math.max(...outside.map(layerOf)) : 0;
    group.forEach((member) => layers.set(member, layer));
    return layer;
  };
  sessions.forEach(layerOf);
  return layers;
}

/** Return the arrows. Within a column there is one between two sessions, whatever they wait for. */
function arrowsOf(waits, places) {
  const arrows = new Map();
  for (const { waiter_session: waiter, holder_session: holder, path } of waits) {
    const isBeside = places.get(waiter).layer === places.get(holder).layer;
    const key = isBeside ? `${waiter} ${holder}` : `${waiter} ${holder} ${path}`;
    if (!arrows.has(key)) arrows.set(key, { waiter, holder, paths: [] });
    arrows.get(key).paths.push(path);
  }
  return [...arrows.values()];
}

function edge({ waiter, holder, paths }, places, circles) {
  const from = places.get(waiter);
  const to = places.get(holder);
  const isBad = circles.some((circle) => circle.includes(waiter) && circle.includes(holder));
  const { d, label } = from.layer === to.layer ? beside(from, to) : across(from, to, paths[0]);
  const kind = isBad ? "wait bad" : "wait";
  const told = svg(
    "title",
    null,
    `${visible(waiter, 24)} waits for ${visible(holder, 24)}: ${visible(paths.join(", "), 200)}`,
  );
  return {
    line: svg(
      "g",
      { class: kind },
      told,
      svg("path", { d, "marker-end": isBad ? "url(#arrow-bad)" : "url(#arrow)" }),
    ),
    label: svg(
      "text",
      { class: isBad ? "wait-label bad" : "wait-label", x: label.x, y: label.y, "text-anchor": label.anchor },
      visible(paths.map((path) => path.slice(path.lastIndexOf("/") + 1) || path).join(", "), 18),
    ),
  };
}

/** An arrow to another column: from the side where it begins to the port of its path. */
function across(from, to, path) {
  const [x1, y1] = [from.x + WIDTH, from.y + from.height / 2];
  const [x2, y2] = [to.x, to.ports.get(path)];
  const isBack = x2 < x1;
  const start = isBack ? from.x : x1;
  const end = isBack ? to.x + WIDTH : x2;
  const bend = (isBack ? -1 : 1) * Math.max(60, Math.abs(end - start) * 0.4);
  return {
    d: `M${start} ${y1}C${start + bend} ${y1} ${end - bend} ${y2} ${end} ${y2}`,
    label: { x: end - (isBack ? -14 : 14), y: y2 - 4, anchor: isBack ? "start" : "end" },
  };
}

/** An arrow within a column: down at the right side, up at the left one, so that two ways are two lines. */
function beside(from, to) {
  const isDown = to.y > from.y;
  const side = isDown ? WIDTH : 0;
  const x = from.x + side;
  const [y1, y2] = [from.y + from.height / 2, to.y + to.height / 2];
  const bend = (isDown ? 1 : -1) * Math.min(70, 36 + Math.abs(y2 - y1) / 8);
  return {
    d: `M${x} ${y1}C${x + bend} ${y1} ${x + bend} ${y2} ${x} ${y2}`,
    label: { x: x + bend * 0.85, y: (y1 + y2) / 2 + 4, anchor: isDown ? "start" : "end" },
  };
}

function arrow(id, kind) {
  return svg(
    "marker",
    {
      id,
      class: kind,
      viewBox: "0 0 8 8",
      refX: 7,
      refY: 4,
      markerWidth: 9,
      markerHeight: 9,
      markerUnits: "userSpaceOnUse",
      orient: "auto-start-reverse",
    },
    svg("path", { d: "M0 0L8 4L0 8z" }),
  );
}

function box(session, { x, y, height }, isStuck, address) {
  const middle = y + height / 2;
  return svg(
    "a",
    { href: sessionLink(session) },
    isStuck ? svg("title", null, "This session is in a deadlock.") : null,
    svg("rect", { class: isStuck ? "box bad" : "box", x, y, width: WIDTH, height, rx: 6 }),
    svg("text", { class: "box-name", x: x + 12, y: middle + (address ? -4 : 5) }, visible(session, 20)),
    address ? svg("text", { class: "box-hint", x: x + 12, y: middle + 13 }, visible(address, 24)) : null,
  );
}
