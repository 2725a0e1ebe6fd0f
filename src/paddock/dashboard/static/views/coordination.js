/* Locks, elections, queues and the like: who holds what, who waits, and who waits for whom.
 *
 * It is read again when something below these nodes changes, and every ten seconds; never more often than once
 * a second, because the server looks at many nodes for one answer.
 */

import { announce } from "../announce.js";
import { get } from "../api.js";
import { preview } from "../bytes.js";
import { el, fill, flash, reconcile } from "../dom.js";
import { watchPaths } from "../live.js";
import { createReading } from "../reading.js";
import { nodeLink } from "../router.js";
import { bus, moment } from "../state.js";
import { createTable } from "../table.js";
import { shownName, visible } from "../text.js";
import { ago, count, number, since } from "../units.js";
import { drawWaits } from "../wait_graph.js";
import { session } from "../words.js";

const POLL_MS = 10_000;
const PAUSE_MS = 1_000;
const SHOWN_AT_ONCE = 50;
const CONTENDERS_MAX = 20;
const PATHS_MAX = 100;
const KINDS = {
  lock: { many: "Locks", holder: "Held by", waiter: "Waiting", none: "nobody holds it" },
  "read-write lock": {
    many: "Read-write locks",
    holder: "Held by",
    waiter: "Waiting",
    none: "nobody holds it",
  },
  semaphore: { many: "Semaphores", holder: "Held by", waiter: "Waiting", none: "nobody holds it" },
  election: { many: "Elections", holder: "Leader", waiter: "Candidates", none: "there is no leader" },
  queue: { many: "Queues", holder: "Being worked on by", waiter: "Waiting", none: "nobody takes from it" },
  barrier: { many: "Barriers", holder: "Arrived", waiter: "Waiting", none: "nobody has arrived" },
  service: { many: "Services", holder: "Instances", waiter: "Waiting", none: "no instance" },
  members: { many: "Groups", holder: "Members", waiter: "Waiting", none: "no member" },
};
const WAIT_COLUMNS = [
  { title: "Waiting", value: (one) => one.waiter_session, cell: (one) => session(one.waiter_session) },
  { title: "Waits for", value: (one) => one.holder_session, cell: (one) => session(one.holder_session) },
  {
    title: "At",
    value: (one) => one.path,
    cell: (one) => el("a", { href: nodeLink(one.path) }, shownName(one.path, 100)),
  },
];

export function createCoordination() {
  const deadlocks = el("div.deadlocks", { role: "alert" });
  const filterText = el("input", {
    type: "search",
    placeholder: "Filter by path, session or address",
    "aria-label": "Filter by path, session or address",
    autocomplete: "off",
    spellcheck: "false",
    oninput: () => drawRecipes(),
  });
  const kinds = el("div.chips", { role: "group", "aria-label": "Kinds" });
  const graph = el("div");
  const waitTable = createTable({
    label: "Waits",
    columns: WAIT_COLUMNS,
    key: (one) => `${one.waiter_session} ${one.holder_session} ${one.path}`,
    empty: el("p", null, "Nobody waits."),
  });
  const graphPart = el(
    "section",
    { hidden: true },
    el("h2", null, "Who waits for whom"),
    graph,
    el("details", null, el("summary", null, "As a table"), waitTable.element),
  );
  const recipes = el("div.recipes");
  const more = el("button.plain", {
    type: "button",
    hidden: true,
    onclick: () => ((limit += SHOWN_AT_ONCE), drawRecipes()),
  });
  const none = el("div.empty", { hidden: true });
  const partial = el("p.hint");
  const head = el(
    "div",
    null,
    el("h2", null, "Locks, elections and the like"),
    el("div.filters", null, filterText, kinds),
  );
  const content = el("div", null, deadlocks, graphPart, head, recipes, none, more, partial);
  const reading = createReading({
    content,
    what: "Coordination",
    load: (signal) => get("coordination", {}, { signal }),
    draw,
  });
  const element = el("div.view.coordination", null, el("h1", null, "Coordination"), reading.element);
  let answer = null;
  let kind = null;
  let limit = SHOWN_AT_ONCE;
  let leave = null;
  let timer = 0;
  let dueAt = 0;
  let drawnWaits = "";

  function draw(found) {
    const holders = answer && new Map(answer.recipes.map((one) => [one.path, firstHolder(one)]));
    answer = found;
    drawDeadlocks();
    drawGraph();
    drawRecipes(holders);
    fill(
      partial,
      found.is_partial &&
        `${count(found.looked, "node")} were looked at so far. What is behind them is not shown yet. `,
      found.read_ms && ["Too much changes to be followed: this was read ", ago(found.read_ms), "."],
    );
    if (moment() === null) watchPaths(watched(found.recipes));
    // The server looks at some nodes for each answer, and goes on at the next one.
    plan(found.is_complete === false ? PAUSE_MS : POLL_MS);
  }

  function drawDeadlocks() {
    const told = answer.deadlocks ?? [];
    reconcile(deadlocks, told, {
      key: (circle) => circle.join(" "),
      create: (circle) =>
        el(
          "p.notice.bad",
          null,
          el("strong", null, `Deadlock of ${count(circle.length, "session")}: `),
          circle.map((one, index) => [session(one), index < circle.length - 1 ? " waits for " : ""]),
          " waits for ",
          session(circle[0]),
          ". None of them can go on until one of them lets go or its session ends.",
        ),
    });
  }

  function drawGraph() {
    const waits = answer.waits ?? [];
    graphPart.hidden = !waits.length;
    const signature = JSON.stringify([waits, answer.deadlocks]);
    if (!waits.length || signature === drawnWaits) return;
    drawnWaits = signature;
    const addresses = new Map(
      answer.recipes
        .flatMap((one) => [...one.holders, ...one.waiters])
        .map((one) => [one.session, one.address]),
    );
    fill(graph, drawWaits(waits, answer.deadlocks ?? [], addresses));
    waitTable.update(waits);
  }

  function drawRecipes(holders = null) {
    const counts = new Map();
    for (const one of answer.recipes) counts.set(one.kind, (counts.get(one.kind) ?? 0) + 1);
    if (kind !== null && !counts.has(kind)) kind = null;
    fill(
      kinds,
      counts.size > 1 &&
        [[null, answer.recipes.length], ...counts].map(([name, amount]) =>
          el(
            "button.chip",
            { type: "button", "aria-pressed": kind === name, onclick: () => ((kind = name), drawRecipes()) },
            name === null ? "All" : (KINDS[name]?.many ?? visible(name, 30)),
            el("span.amount", null, ` ${number(amount)}`),
          ),
        ),
    );
    const text = filterText.value.toLowerCase();
    const wanted = answer.recipes.filter(
      (one) => (kind === null || one.kind === kind) && (text === "" || searched(one).includes(text)),
    );
    reconcile(recipes, wanted.slice(0, limit), {
      key: (one) => `${one.kind} ${one.path}`,
      create: recipeCard,
      update: updateCard,
    });
    for (const card of recipes.children) {
      const before = holders?.get(card.recipe.path);
      if (!holders || before === firstHolder(card.recipe)) continue;
      flash(card);
      announce(
        `${visible(card.recipe.path, 80)}: ${card.recipe.holders.length ? `now ${visible(firstHolder(card.recipe), 24)}` : "now free"}.`,
      );
    }
    more.hidden = wanted.length <= limit;
    more.textContent = `Show more of ${number(wanted.length)}`;
    head.hidden = answer.recipes.length === 0;
    none.hidden = wanted.length > 0;
    fill(
      none,
      answer.recipes.length
        ? el("p", null, "Nothing here fits the filter.")
        : [
            el("p.empty-title", null, "Nothing is coordinated here"),
            el(
              "p",
              null,
              "Locks, elections, queues, barriers, services and groups are recognised by the names of their nodes, as Paddock, kazoo and Curator write them. There are none now, or you may not read them.",
            ),
          ],
    );
  }

  /** Read again after a pause. What comes often does not put it off. */
  function plan(pauseMs) {
    const at = Date.now() + pauseMs;
    if (leave === null || moment() !== null || (dueAt > Date.now() && dueAt <= at)) return;
    clearTimeout(timer);
    dueAt = at;
    timer = setTimeout(() => reading.read(), pauseMs);
  }

  return {
    element,
    show() {
      leave ??= [bus.on("changed", () => plan(PAUSE_MS))];
      reading.read();
    },
    refresh: () => reading.read(),
    hide() {
      for (const end of leave ?? []) end();
      leave = null;
      clearTimeout(timer);
      dueAt = 0;
    },
  };
}

/** Return what to be told of: the recipes, and the nodes that they are in, where others may come. */
function watched(recipes) {
  const paths = recipes.map(({ path }) => path);
  const above = paths.map((path) => path.slice(0, path.lastIndexOf("/")) || "/");
  return [...new Set(["/", ...above, ...paths])].slice(0, PATHS_MAX);
}

function firstHolder(recipe) {
  return recipe.holders[0]?.session ?? "";
}

function searched(recipe) {
  return [recipe.path, ...[...recipe.holders, ...recipe.waiters].flatMap((one) => [one.session, one.address])]
    .join(" ")
    .toLowerCase();
}

function recipeCard() {
  return el("article.recipe");
}

function updateCard(card, recipe) {
  const signature = JSON.stringify(recipe);
  card.recipe = recipe;
  if (card.signature === signature) return;
  card.signature = signature;
  const words = KINDS[recipe.kind] ?? KINDS.lock;
  const facts = [];
  // Not all of them are told where there are many.
  const holderCount = recipe.holder_count ?? recipe.holders.length;
  const waiterCount = recipe.waiter_count ?? recipe.waiters.length;
  if (recipe.limit > 1) facts.push(`${number(holderCount)} of ${number(recipe.limit)} taken`);
  if (recipe.size !== null && recipe.size !== undefined)
    facts.push(recipe.kind === "queue" ? count(recipe.size, "item") : `for ${count(recipe.size, "member")}`);
  if (!recipe.holders.length) facts.push(words.none);
  if (waiterCount) facts.push(`${number(waiterCount)} waiting`);
  fill(
    card,
    el("h3", null, el("a", { href: nodeLink(recipe.path) }, shownName(recipe.path, 120))),
    el(
      "p.recipe-facts",
      null,
      el("span.badge", null, visible(recipe.kind, 30)),
      el(
        "span.hint",
        { title: `The names are as ${visible(recipe.layout, 30)} writes them.` },
        visible(recipe.layout, 30),
      ),
      facts.map((fact) => el("span", null, fact)),
    ),
    recipe.holders.length ? contenders(words.holder, recipe.holders, holderCount, false) : null,
    recipe.waiters.length ? contenders(words.waiter, recipe.waiters, waiterCount, true) : null,
  );
}

function contenders(title, all, amount, isOrdered) {
  const rows = all.slice(0, CONTENDERS_MAX).map((one, index) => {
    const told = preview(one.data);
    return el(
      "li",
      null,
      el("span.place", { "aria-hidden": "true" }, isOrdered ? `${index + 1}.` : "●"),
      session(one.session),
      el("span.address", null, visible(one.address ?? "address not known", 60)),
      el("span.how", null, one.how ? visible(one.how, 30) : ""),
      el("span.told", null, told ? shownName(told, 60) : ""),
      el("span.age", null, "for ", since(one.since_ms)),
    );
  });
  return el(
    "div.contenders",
    null,
    el("h4", null, title),
    el(isOrdered ? "ol" : "ul", null, rows),
    amount > rows.length ? el("p.hint", null, `and ${number(amount - rows.length)} more`) : null,
  );
}
