/* Time: choose a moment for all views, and see what changed between two moments. */

import { get } from "../api.js";
import { el, fill } from "../dom.js";
import { createReading } from "../reading.js";
import { go, link } from "../router.js";
import { moment, momentTime, shared } from "../state.js";
import { prose } from "../text.js";
import { createMomentSlider, goTo } from "../time_bar.js";
import { count, duration, exact, localInput, number, shortTime } from "../units.js";
import { zxid } from "../words.js";
import { changeRow, kindWord } from "./changes.js";

const HOUR_MS = 3_600_000;
const ROWS_AT_ONCE = 100;
const QUICK = [
  ["5 min ago", 300_000],
  ["1 h ago", HOUR_MS],
  ["6 h ago", 6 * HOUR_MS],
];

export function createTime() {
  const { history } = shared.about;
  if (!history) return withoutHistory();
  const chosen = el("p.moment", { role: "status" });
  const slider = createMomentSlider("Moment", (time) => goTo(time));
  const exactInput = el("input", {
    type: "datetime-local",
    step: 1,
    "aria-label": "Exact time",
    onchange: () => exactInput.value && goTo(new Date(exactInput.value).getTime()),
  });
  const zxidInput = el("input", {
    type: "text",
    placeholder: "0x1a3",
    "aria-label": "zxid of a write",
    spellcheck: "false",
    autocomplete: "off",
  });
  const zxidForm = el(
    "form.inline",
    {
      onsubmit: (event) => (
        event.preventDefault(),
        /^0x[0-9a-f]+$/i.test(zxidInput.value.trim()) && goTo(zxidInput.value.trim())
      ),
    },
    el("label", null, "or after a write ", zxidInput),
    el("button.plain", { type: "submit" }, "Go"),
  );
  const ways = el("p.ways");
  const fromInput = el("input", { type: "datetime-local", step: 1, "aria-label": "From" });
  const toInput = el("input", { type: "datetime-local", step: 1, "aria-label": "To" });
  const pathInput = el("input", {
    type: "text",
    value: "/",
    "aria-label": "Below this path",
    spellcheck: "false",
    autocomplete: "off",
  });
  const form = el(
    "form.between",
    { onsubmit: compare },
    el("label", null, "From ", fromInput),
    el("label", null, "to ", toInput),
    el("label", null, "below ", pathInput),
    el("button.primary", { type: "submit" }, "Compare"),
  );
  const changes = el("ol.changes");
  const summary = el("p.hint", { role: "status" });
  const more = el("button.plain", { type: "button", hidden: true, onclick: () => drawMore() });
  const content = el("div", null, summary, changes, more);
  const reading = createReading({
    content,
    what: "The difference",
    lines: 4,
    load: (signal, wanted) => get("diff", wanted, { signal, isTimeless: true }),
    draw,
  });
  const element = el(
    "div.view.time",
    null,
    el("h1", null, "Time"),
    el(
      "section",
      null,
      el("h2", null, "Look at a moment"),
      el(
        "p.hint",
        null,
        `The history goes back to ${shortTime(history.from_ms)} (write `,
        zxid(history.from_zxid),
        "). Every view shows the moment that is chosen here.",
      ),
      chosen,
      slider.element,
      el(
        "div.exactly",
        null,
        QUICK.filter(([, age]) => age < Date.now() - history.from_ms).map(([label, age]) =>
          el(
            "button.plain",
            { type: "button", onclick: () => goTo(Math.max(history.from_ms, Date.now() - age)) },
            label,
          ),
        ),
        el("label", null, "at ", exactInput),
        zxidForm,
      ),
      ways,
    ),
    el("section", null, el("h2", null, "What changed between two moments"), form, reading.element),
  );
  let rows = [];
  let asked = "";
  let moments = null;

  function drawMoment() {
    const at = moment();
    const time = at === null ? Date.now() : momentTime(at);
    slider.set(time ?? Date.now());
    if (time !== null) exactInput.value = localInput(time);
    fill(
      chosen,
      at === null
        ? "You look at now."
        : time === null
          ? `You look at the service after the write ${at}.`
          : el(
              "span",
              { title: exact(time) },
              `You look at ${shortTime(time)}, ${duration(Date.now() - time)} ago.`,
            ),
    );
    fill(
      ways,
      at === null
        ? el("span.hint", null, "Move the slider to look at the past.")
        : [
            "Look at it: ",
            ["overview", "tree", "coordination", "sessions"].map((view, index) => [
              index ? " · " : "",
              el("a", { href: link(view) }, view),
            ]),
          ],
    );
  }

  function compare(event) {
    event.preventDefault();
    const [from, to] = [new Date(fromInput.value).getTime(), new Date(toInput.value).getTime()];
    if (Number.isNaN(from) || Number.isNaN(to)) return;
    go("time", {
      from: new Date(Math.min(from, to)).toISOString(),
      to: new Date(Math.max(from, to)).toISOString(),
      path: pathInput.value.trim() || "/",
    });
  }

  function draw(answer) {
    rows = answer.changes;
    fill(changes);
    const kinds = Object.entries(Object.groupBy?.(rows, ({ kind }) => kind) ?? {}).map(
      ([kind, all]) => `${number(all.length)} ${kindWord(kind)}`,
    );
    summary.textContent = rows.length
      ? `${count(rows.length, "node")} differ${rows.length === 1 ? "s" : ""}${kinds.length > 1 ? `: ${kinds.join(", ")}` : ""}.${answer.is_complete === false ? " There are more; choose moments closer together, or a path." : ""}${answer.hidden ? ` ${count(answer.hidden, "other")} that you may not read.` : ""}`
      : "Nothing differs between these two moments.";
    drawMore();
  }

  function drawMore() {
    const end = changes.childElementCount + ROWS_AT_ONCE;
    changes.append(
      ...rows
        .slice(changes.childElementCount, end)
        .map((change) => el("li", null, changeRow(change, { moments }))),
    );
    more.hidden = end >= rows.length;
    more.textContent = `Show more of ${number(rows.length)}`;
  }

  return {
    element,
    show(parameters) {
      drawMoment();
      const to = parameters.get("to") ?? moment() ?? new Date().toISOString();
      const from =
        parameters.get("from") ??
        new Date(Math.max(history.from_ms, (momentTime(to) ?? Date.now()) - HOUR_MS)).toISOString();
      const path = parameters.get("path") ?? "/";
      fromInput.value = localInput(momentTime(from) ?? Date.now());
      toInput.value = localInput(momentTime(to) ?? Date.now());
      pathInput.value = path;
      // The whole history is read for it, so only when it was asked for.
      reading.element.hidden = !parameters.has("from");
      const wanted = `${path} ${from} ${to}`;
      if (wanted === asked || !parameters.has("from")) return;
      asked = wanted;
      moments = { from, to };
      reading.read({ path, from, to });
    },
    refresh: () => {},
    hide() {},
  };
}

function withoutHistory() {
  const lack = (shared.about.lacking ?? []).find(({ what }) => /histor|past/i.test(what));
  const element = el(
    "div.view.time",
    null,
    el("h1", null, "Time"),
    el(
      "div.empty",
      null,
      el("p.empty-title", null, "This service has no history that the dashboard can read"),
      el(
        "p",
        null,
        lack
          ? prose(lack.how)
          : "A Paddock server keeps the history of a day beside its data. Start the dashboard with the folder, or with the server's admin address, and this page has a slider over that day:",
      ),
      lack ? null : el("pre", null, "paddock dashboard --server 127.0.0.1:2181 --data FOLDER"),
    ),
  );
  return { element, show() {}, refresh() {}, hide() {} };
}
