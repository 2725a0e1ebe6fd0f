/* The bar that is on top of every view while a moment of the past is looked at.
 *
 * The slider moves at once; the views follow when it has stood still for a moment, because each
 * moment is made by a server of its own.
 */

import { get } from "./api.js";
import { el, fill } from "./dom.js";
import { go, place } from "./router.js";
import { bus, moment, momentTime, shared } from "./state.js";
import { visible } from "./text.js";
import { duration, exact, setMoment, shortTime } from "./units.js";

const SETTLE_MS = 400;
const DAY_MS = 86_400_000;

export function createTimeBar() {
  const said = el("p.time-said");
  const slider = createMomentSlider("The moment that is shown", (time) => goTo(time));
  const now = el("button.primary", { type: "button", onclick: () => goTo(null) }, "Back to now");
  const element = el(
    "section.time-bar",
    { "aria-label": "A moment of the past", hidden: true },
    said,
    slider.element,
    now,
  );

  function draw() {
    const at = moment();
    element.hidden = at === null;
    const time = momentTime(at);
    setMoment(time);
    if (at === null) return;
    slider.element.hidden = !shared.about.history || time === null;
    say(at, time);
    if (time === null) findTime(at);
  }

  function say(at, time) {
    if (time !== null) slider.set(time);
    const isWrite = momentTime(at) === null;
    fill(
      said,
      el("strong", null, "You look at the past: "),
      isWrite ? `after the write ${visible(at, 40)}${time === null ? "" : ", "}` : "",
      time === null
        ? ""
        : el("span", { title: exact(time) }, `${shortTime(time)}, ${duration(Date.now() - time)} ago`),
    );
  }

  /** A write is named by its number alone; the server knows when it was. */
  async function findTime(at) {
    try {
      const { time_ms: time } = await get("moment");
      if (at !== moment() || !time) return;
      setMoment(time);
      slider.element.hidden = !shared.about.history;
      say(at, time);
    } catch (error) {
      // What is wrong with this moment is said where something is shown of it.
      if (error.status === undefined) throw error;
    }
  }

  bus.on("moment", draw);
  draw();
  return { element };
}

/** Go to the same view at another time; null is now. */
export function goTo(time) {
  const { view, parameters } = place();
  const rest = Object.fromEntries(parameters);
  go(view, {
    ...rest,
    at: time === null ? null : typeof time === "string" ? time : new Date(time).toISOString(),
  });
}

/** Return a slider over the last day of the history: {element, set(time), value()}. */
export function createMomentSlider(label, onchange) {
  const history = shared.about.history ?? { from_ms: Date.now() - DAY_MS, to_ms: Date.now() };
  const from = () => Math.max(history.from_ms, Date.now() - DAY_MS);
  const input = el("input", {
    type: "range",
    min: Math.floor(from() / 1000),
    max: Math.floor(Date.now() / 1000),
    step: 1,
    "aria-label": label,
  });
  const start = el("span.hint");
  const end = el("span.hint", null, "now");
  const element = el("div.slider", null, start, input, end);
  let timer = 0;

  function tell() {
    const time = Number(input.value) * 1000;
    input.setAttribute("aria-valuetext", `${shortTime(time)}, ${duration(Date.now() - time)} ago`);
    input.title = exact(time);
  }

  input.addEventListener("input", () => {
    tell();
    clearTimeout(timer);
    timer = setTimeout(() => onchange(Number(input.value) * 1000), SETTLE_MS);
  });
  return {
    element,
    set(time) {
      input.min = Math.floor(from() / 1000);
      input.max = Math.floor(Date.now() / 1000);
      input.value = Math.floor(time / 1000);
      start.textContent = `${duration(Date.now() - from())} ago`;
      tell();
    },
    value: () => Number(input.value) * 1000,
  };
}
