/* Who waits for whom: sessions as boxes, and an arrow from each that waits to the one it waits for.
 *
 * Those who wait for nobody are at the right; who waits for them is left of them, and so on. The
 * sessions of a deadlock stand in one column, and their arrows are red. The arrangement is the same for the
 * same waits, so it does not jump while it is looked at.
 */

import { el, svg } from "./dom.js";
import { sessionLink } from "./router.js";
import { visible } from "./text.js";

const BOX = { width: 170, height: 44, gapX: 130, gapY: 26 };
const BOXES_MAX = 60;

/** Return the graph as an element. `addresses` has the address of a session. */
export function drawWaits(waits, deadlocks, addresses) {
  const stuck = new Set(deadlocks.flat());
  const wanted = [...waits].sort((a, b) => Number(stuck.has(b.waiter_session)) - Number(stuck.has(a.waiter_session)));
  const sessions = new Set();
  const shown = wanted.filter(({ waiter_session: waiter, holder_session: holder }) => {
    const fresh = [waiter, holder].filter((one) => !sessions.has(one));
    if (sessions.size + fresh.length > BOXES_MAX) return false;
    fresh.forEach((one) => sessions.add(one));
    return true;
  });
  const places = arrange([...sessions], shown, stuck);
  const width = Math.max(...[...places.values()].map(({ x }) => x)) + BOX.width + 70;
  const height = Math.max(...[...places.values()].map(({ y }) => y)) + BOX.height + 20;
  const arrow = (id, kind) => svg("marker", { id, class: kind, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" }, svg("path", { d: "M0 0L8 4L0 8z" }));
  const drawing = svg(
    "svg",
    { class: "waits", width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `Who waits for whom: ${sessions.size} sessions` },
    svg("defs", null, arrow("arrow", "arrow"), arrow("arrow-bad", "arrow bad")),
    shown.map((wait) => edge(wait, places, deadlocks)),
    [...places].map(([session, { x, y }]) => box(session, x, y, stuck.has(session), addresses.get(session))),
  );
  const rest = wanted.length - shown.length;
  return el("div.waits-part", null, el("div.scroll", { tabIndex: 0, role: "region", "aria-label": "Graph, scrollable" }, drawing), rest > 0 ? el("p.hint", null, `${rest} more waits are in the table.`) : null);
}

/** Return the place of each session. */
function arrange(sessions, waits, stuck) {
  const targets = new Map(sessions.map((one) => [one, []]));
  for (const { waiter_session: waiter, holder_session: holder } of waits) targets.get(waiter).push(holder);
  const layers = new Map();
  let front = sessions.filter((one) => stuck.has(one) || !targets.get(one).length);
  // A circle that the server has not told of still needs a place.
  if (!front.length) front = sessions.slice(0, 1);
  for (let layer = 0; front.length; layer++) {
    front.forEach((one) => layers.set(one, layer));
    front = sessions.filter((one) => !layers.has(one) && targets.get(one).some((target) => layers.has(target)));
  }
  sessions.filter((one) => !layers.has(one)).forEach((one) => layers.set(one, 0));
  const last = Math.max(0, ...layers.values());
  const places = new Map();
  const middle = (one) => {
    const known = targets.get(one).map((target) => places.get(target)?.y).filter((y) => y !== undefined);
    return known.length ? known.reduce((a, b) => a + b, 0) / known.length : 0;
  };
  for (let layer = 0; layer <= last; layer++) {
    const column = sessions.filter((one) => layers.get(one) === layer);
    if (layer > 0) column.sort((a, b) => middle(a) - middle(b) || (a < b ? -1 : 1));
    let free = 10;
    for (const one of column) {
      const y = Math.max(free, layer > 0 ? middle(one) - ((column.length - 1) * (BOX.height + BOX.gapY)) / 8 : free);
      places.set(one, { x: 10 + (last - layer) * (BOX.width + BOX.gapX), y, layer });
      free = y + BOX.height + BOX.gapY;
    }
  }
  return places;
}

function edge({ waiter_session: waiter, holder_session: holder, path }, places, deadlocks) {
  const from = places.get(waiter);
  const to = places.get(holder);
  const isBad = deadlocks.some((circle) => circle.includes(waiter) && circle.includes(holder));
  const y1 = from.y + BOX.height / 2;
  const y2 = to.y + BOX.height / 2;
  const isBeside = from.x === to.x;
  // Down at the right side, up at the left one: so the two ways between two sessions are two lines.
  const isDown = y2 > y1;
  const x1 = isBeside ? from.x + (isDown ? BOX.width : 0) : from.x + BOX.width;
  const x2 = isBeside ? to.x + (isDown ? BOX.width : 0) : to.x;
  const bend = isBeside ? (isDown ? 1 : -1) * Math.min(60, 30 + Math.abs(y2 - y1) / 8) : BOX.gapX / 2;
  const line = isBeside ? `M${x1} ${y1 + (isDown ? 8 : -8)}C${x1 + bend} ${y1} ${x2 + bend} ${y2} ${x2} ${y2 + (isDown ? -8 : 8)}` : `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
  const name = visible(path.slice(path.lastIndexOf("/") + 1) || path, 18);
  const label = isBeside ? { x: x1 + bend * 0.5, y: (y1 + y2) / 2 + 4, anchor: isDown ? "start" : "end" } : { x: x1 + (x2 - x1) * 0.5, y: y1 + (y2 - y1) * 0.5 - 6, anchor: "middle" };
  return svg("g", { class: isBad ? "wait bad" : "wait" }, svg("title", null, `${visible(waiter, 24)} waits for ${visible(holder, 24)}: ${visible(path, 200)}`), svg("path", { d: line, "marker-end": isBad ? "url(#arrow-bad)" : "url(#arrow)" }), svg("text", { x: label.x, y: label.y, "text-anchor": label.anchor }, name));
}

function box(session, x, y, isStuck, address) {
  return svg(
    "a",
    { href: sessionLink(session), "aria-label": `session ${visible(session, 24)}${isStuck ? ", in a deadlock" : ""}` },
    svg("rect", { class: isStuck ? "box bad" : "box", x, y, width: BOX.width, height: BOX.height, rx: 6 }),
    svg("text", { class: "box-name", x: x + 12, y: y + (address ? 18 : 27) }, visible(session, 20)),
    address ? svg("text", { class: "box-hint", x: x + 12, y: y + 35 }, visible(address, 24)) : null,
  );
}
