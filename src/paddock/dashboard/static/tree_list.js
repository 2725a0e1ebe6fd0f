/* The rows of the tree that are on the screen, and the keys that move through them.
 *
 * Only what is seen, and a little more, is in the document: 100,000 children are as quick as ten. The
 * focus stays on the list, and `aria-activedescendant` names the row, so a row may leave the
 * document at any time.
 *
 * Keys: up and down, page up and down, home and end; right opens and then goes in, left closes and
 * then goes out; Enter and space select.
 */

import { el, fill, flash, reconcile, setText } from "./dom.js";
import { shownName } from "./text.js";
import { bytes, number } from "./units.js";

export const ROW_HEIGHT = 30;
const EXTRA_ROWS = 8;
// Browsers do not make elements higher than this.
const HEIGHT_MAX = 30_000_000;
const KIND_SIGNS = { ephemeral: "ephemeral", container: "container", ttl: "TTL" };

/** Return the list: {element, draw(), choose(node), focus(), visible()}. `handlers`: onneed, onopen, onclose, onselect, onstale, onscroll. */
export function createTreeList(model, handlers) {
  const rows = el("div.tree-rows", { role: "none" });
  const element = el(
    "div.tree",
    { role: "tree", tabIndex: 0, "aria-label": "Nodes", onkeydown: press, onscroll: () => later(true) },
    rows,
  );
  let active = model.root;
  let selected = null;
  let frame = 0;
  new ResizeObserver(() => later()).observe(element);

  function later(isScroll = false) {
    if (isScroll) handlers.onscroll?.();
    frame ||= requestAnimationFrame(draw);
  }

  function range() {
    const first = Math.floor(element.scrollTop / ROW_HEIGHT);
    const shown = Math.ceil((element.clientHeight || 600) / ROW_HEIGHT);
    return [Math.max(0, first - EXTRA_ROWS), Math.min(model.rowCount, first + shown + EXTRA_ROWS)];
  }

  function draw() {
    cancelAnimationFrame(frame);
    frame = 0;
    rows.style.height = `${Math.min(HEIGHT_MAX, model.rowCount * ROW_HEIGHT)}px`;
    const [from, to] = range();
    const wanted = [];
    for (let row = from; row < to; row++) wanted.push({ row, ...model.rowAt(row) });
    for (const { node, parent, index } of wanted) {
      if (node === null) handlers.onneed(parent, index);
      else if (node.isStale) handlers.onstale(node);
    }
    reconcile(rows, wanted, {
      key: ({ node, parent, index }) => (node === null ? `${parent.id} ${index}` : node.id),
      create,
      update,
    });
    const shown = model.rowOf(active) >= 0 && rows.querySelector(`#row-${active.id}`);
    if (shown) element.setAttribute("aria-activedescendant", `row-${active.id}`);
    else element.removeAttribute("aria-activedescendant");
  }

  function create({ node }) {
    const row = el("div.tree-row", { role: "treeitem" });
    if (node === null) return fill(row, el("span.placeholder"));
    row.id = `row-${node.id}`;
    row.node = node;
    row.append(
      el("span.toggle", {
        "aria-hidden": "true",
        onclick: (event) => (event.stopPropagation(), toggle(node)),
      }),
      el("span.tree-name", null, shownName(node.name, 200, 16)),
      el("span.tree-kind"),
      el("span.tree-count"),
      el("span.tree-size"),
    );
    row.addEventListener("click", () => select(node));
    row.addEventListener("dblclick", () => toggle(node));
    return row;
  }

  function update(row, { node, parent, index, level, row: number_ }) {
    row.style.transform = `translateY(${number_ * ROW_HEIGHT}px)`;
    row.style.setProperty("--level", level);
    row.setAttribute("aria-level", level);
    row.setAttribute("aria-posinset", index + 1);
    row.setAttribute("aria-setsize", parent === null ? 1 : parent.children.length);
    if (node === null) {
      row.setAttribute("aria-label", "not read yet");
      return;
    }
    const [toggleSign, , kind, children, size] = row.children;
    toggleSign.className = `toggle${node.hasChildren ? (node.isOpen ? " opened" : " closed") : ""}`;
    if (node.hasChildren) row.setAttribute("aria-expanded", node.isOpen);
    else row.removeAttribute("aria-expanded");
    row.setAttribute("aria-selected", node === selected);
    row.classList.toggle("active", node === active);
    setText(kind, KIND_SIGNS[node.kind] ? ` ${KIND_SIGNS[node.kind]}` : "");
    setAmount(children, node.stat?.num_children, number, " children");
    setAmount(size, node.stat?.data_length, bytes, " of data");
    if (node.hasFlash) {
      node.hasFlash = false;
      flash(row);
    }
  }

  function select(node) {
    activate(node);
    selected = node;
    handlers.onselect(node);
    draw();
  }

  function toggle(node) {
    if (!node.hasChildren) return;
    if (node.isOpen) {
      // The row that is active may be one of those that go.
      for (let one = active; one !== null; one = one.parent) if (one === node) active = node;
      handlers.onclose(node);
    } else handlers.onopen(node);
    draw();
  }

  function activate(node) {
    active = node;
    reveal(node);
    draw();
  }

  function reveal(node) {
    const row = model.rowOf(node);
    if (row < 0) return;
    const top = row * ROW_HEIGHT;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + ROW_HEIGHT > element.scrollTop + element.clientHeight)
      element.scrollTop = top + ROW_HEIGHT - element.clientHeight;
  }

  function step(distance) {
    const row = Math.max(0, Math.min(model.rowCount - 1, Math.max(0, model.rowOf(active)) + distance));
    const { node, parent, index } = model.rowAt(row);
    if (node !== null) return activate(node);
    // It is read first. The keys that come meanwhile do nothing.
    element.scrollTop = Math.max(0, row * ROW_HEIGHT - element.clientHeight / 2);
    return handlers.onneed(parent, index)?.then(() => {
      const now = model.rowAt(Math.min(row, model.rowCount - 1)).node;
      if (now !== null) activate(now);
    });
  }

  function press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(element.clientHeight / ROW_HEIGHT) - 1);
    const actions = {
      ArrowDown: () => step(1),
      ArrowUp: () => step(-1),
      PageDown: () => step(page),
      PageUp: () => step(-page),
      Home: () => step(-model.rowCount),
      End: () => step(model.rowCount),
      ArrowRight: () =>
        active.hasChildren && !active.isOpen ? toggle(active) : active.hasChildren && step(1),
      ArrowLeft: () =>
        active.isOpen && active.hasChildren ? toggle(active) : active.parent && activate(active.parent),
      Enter: () => select(active),
      " ": () => select(active),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  return {
    element,
    draw,
    later,
    /** Mark a node as the one that is shown beside the tree, and bring it to the screen. */
    choose(node) {
      selected = node;
      if (node !== null) active = node;
      draw();
      if (node !== null) reveal(node);
      draw();
    },
    focus: () => element.focus(),
    /** Return which rows are on the screen. */
    range,
    forgetActive() {
      active = model.root;
    },
    get active() {
      return active;
    },
  };
}

/** Show a number, with words for those who do not see its column. */
function setAmount(element, value, format, words) {
  if (element.amount === value) return;
  element.amount = value;
  fill(element, value ? [" ", format(value), el("span.unseen", null, words)] : null);
}
