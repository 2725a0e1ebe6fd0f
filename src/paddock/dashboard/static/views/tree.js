/* The tree, with the node that is selected beside it.
 *
 * What changes while it is looked at comes over the live stream, in bursts of any size. Changes are gathered for
 * a moment; rows come and go together, and only the stats of rows on the screen are read again.
 */

import { announce } from "../announce.js";
import { get } from "../api.js";
import { el, fill } from "../dom.js";
import { watchPaths } from "../live.js";
import { go } from "../router.js";
import { bus, moment } from "../state.js";
import { visible } from "../text.js";
import { createTreeList } from "../tree_list.js";
import { TreeLoader } from "../tree_loader.js";
import { TreeModel } from "../tree_model.js";
import { createNodePanel } from "./node.js";
import { createSearch } from "./search.js";

const GATHER_MS = 200;
const STALE_AT_ONCE = 20;

export function createTree() {
  const model = new TreeModel();
  const problem = el("p.stale", { hidden: true, role: "status" });
  const loader = new TreeLoader(
    model,
    () => {
      problem.hidden = true;
      list.later();
    },
    (parent, error) => {
      problem.hidden = false;
      fill(
        problem,
        el("span", null, `${visible(parent.path, 80)}: ${error.message}`),
        el(
          "button.plain",
          { type: "button", onclick: () => ((problem.hidden = true), list.later()) },
          "Try again",
        ),
      );
      failed.add(parent);
    },
  );
  const failed = new Set();
  const list = createTreeList(model, {
    onneed: (parent, index) =>
      failed.has(parent) && !problem.hidden ? undefined : loader.load(parent, index),
    onopen: open,
    onclose: close,
    onselect: (node) => go("tree", { path: node.path }),
    onstale: (node) => stale.add(node),
    onscroll: () => settleLive(),
  });
  const panel = createNodePanel({ onclose: () => go("tree"), onwritten: () => {} });
  const search = createSearch({ onpick: (path) => go("tree", { path }), onleave: () => list.focus() });
  const head = el(
    "div.tree-head",
    { "aria-hidden": "true" },
    el("span", null, "Name"),
    el("span", null, "Children"),
    el("span", null, "Data"),
  );
  const left = el("section.tree-side", { "aria-label": "Tree" }, search.element, problem, head, list.element);
  const element = el("div.view.tree-view", null, el("h1.unseen", null, "Tree"), left, panel.element);
  search.onshow((isShown) => (list.element.hidden = head.hidden = isShown));

  const stale = new Set();
  let changes = [];
  let gatherTimer = 0;
  let liveTimer = 0;
  let leave = null;
  let wanted = null;

  function open(node) {
    model.open(node);
    failed.delete(node);
    if (!node.isRead) loader.load(node, 0);
    settleLive();
  }

  function close(node) {
    model.close(node);
    settleLive();
  }

  /** Name to the live stream what is on the screen: the open nodes there, and the selected one. */
  function settleLive() {
    clearTimeout(liveTimer);
    liveTimer = setTimeout(() => {
      if (leave === null) return;
      const [from, to] = list.range();
      const parents = new Set(wanted ? [wanted] : []);
      for (let row = from; row < to; row++) parents.add(model.rowAt(row).parent?.path ?? "/");
      watchPaths([...parents]);
    }, 300);
  }

  function gather(change) {
    if (!change.path) return;
    changes.push(change);
    gatherTimer ||= setTimeout(applyChanges, GATHER_MS);
  }

  function applyChanges() {
    gatherTimer = 0;
    const byParent = new Map();
    const now = changes;
    changes = [];
    for (const { path, kind } of now) {
      if (path === wanted) panel.onchange(kind);
      if (path === "/") continue;
      const cut = path.lastIndexOf("/");
      const parentPath = path.slice(0, cut) || "/";
      const parent = model.find(parentPath);
      if (parent === null) continue;
      const name = path.slice(cut + 1);
      const told = byParent.get(parent) ?? { came: new Set(), went: new Set(), changed: new Set() };
      byParent.set(parent, told);
      if (kind === "created") told.came.add(name) && told.went.delete(name);
      else if (kind === "deleted") told.went.add(name) && told.came.delete(name);
      else told.changed.add(name);
    }
    for (const [parent, { came, went, changed }] of byParent) {
      // What went and came again between two looks is another node now.
      if (came.size || went.size) {
        if (!model.change(parent, came, went)) reread([parent]);
        if (!parent.isOpen) parent.hasFlash = true;
        parent.isStale = true;
      }
      for (const name of [...came, ...changed]) {
        const node = parent.byName.get(name);
        if (node) node.isStale = node.hasFlash = true;
      }
    }
    if (byParent.size) tell(now);
    if (model.rowOf(list.active) < 0) list.forgetActive();
    list.draw();
    readStale();
  }

  function tell(now) {
    const { path, kind } = now.at(-1);
    const words = {
      created: "was created",
      deleted: "was deleted",
      changed: "changed",
      acl: "has other rights",
    };
    announce(`${visible(path, 80)} ${words[kind] ?? "changed"}.`, now.length);
  }

  /**
   * Read the children of some parents again: at once where they are on the screen, and what is there
   * stays until then; the others when they are looked at.
   */
  function reread(parents) {
    const places = new Map(parents.map((parent) => [parent, new Set()]));
    const [from, to] = list.range();
    for (let row = from; row < to; row++) {
      const { parent, index } = model.rowAt(row);
      places.get(parent)?.add(index);
    }
    for (const [parent, kept] of places) {
      model.forget(parent, kept);
      for (const index of kept) loader.load(parent, index);
      if (parent === model.root && !kept.size) loader.load(parent, 0);
    }
  }

  async function readStale() {
    const nodes = [...stale].slice(0, STALE_AT_ONCE);
    stale.clear();
    if (!nodes.length) return;
    await Promise.all(
      nodes.map(async (node) => {
        node.isStale = false;
        try {
          const { stat, kind } = await get("node", { path: node.path, bytes: 0 });
          node.learn({ stat, kind });
        } catch (error) {
          if (error.status === undefined) throw error;
        }
      }),
    );
    list.draw();
    if (stale.size) setTimeout(readStale, GATHER_MS);
  }

  /** Open the way to a path, and select it. */
  async function reveal(path) {
    wanted = path;
    let node = model.root;
    const names = path === "/" ? [] : path.slice(1).split("/");
    for (const name of names) {
      if (!node.isOpen) open(node);
      let next = await loader.child(node, name);
      if (next === null && path === wanted) {
        // It may be newer than what was read here.
        model.forget(node);
        next = await loader.child(node, name);
      }
      if (path !== wanted) return;
      if (next === null) break;
      node = next;
    }
    list.choose(node.path === path ? node : null);
    settleLive();
  }

  /** Read everything anew that is open: another moment, another person, or a gap in the stream. */
  function refresh() {
    loader.stop();
    failed.clear();
    problem.hidden = true;
    reread(model.openNodes());
    readRoot();
  }

  function refreshAll() {
    refresh();
    if (wanted !== null) panel.show(wanted);
  }

  async function readRoot() {
    stale.add(model.root);
    await readStale();
    if (!model.root.isOpen) open(model.root);
    list.draw();
  }

  return {
    element,
    show(parameters) {
      const isBack = leave === null;
      if (isBack) {
        leave = [bus.on("changed", gather), bus.on("moment", refreshAll)];
        refresh();
      }
      const path = parameters.get("path") ?? null;
      element.classList.toggle("has-node", path !== null);
      if (path === null) {
        wanted = null;
        list.choose(null);
        panel.clear();
        settleLive();
      } else if (path !== wanted || isBack) {
        panel.show(path);
        reveal(path);
        // On a narrow screen the node takes the place of the tree, and the focus with it.
        if (left.offsetParent === null && !isBack) panel.focus();
      }
    },
    refresh: refreshAll,
    hide() {
      for (const end of leave ?? []) end();
      leave = null;
      clearTimeout(gatherTimer);
      gatherTimer = 0;
      changes = [];
      if (moment() === null) loader.stop();
    },
  };
}
