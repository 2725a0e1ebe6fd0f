/* The tree as far as it is open, and which row shows what. No elements, no requests.
 *
 * A node that is open has an array with a place for each of its children. A place is empty until its
 * page has been read, so the rows of 1,000,000 children exist at once, and the names when they are looked at.
 * A row is found by going down through the open nodes, of which there are few.
 *
 * Invariants: `children.length` is how many children the server says there are; a place that was not
 * read is null; `below` is the number of rows below a node; `openChildren` holds each open child by its
 * name, also while its place is empty.
 */

import { compareNames } from "./text.js";

let numbers = 0;

export class TreeNode {
  constructor(parent, name, facts) {
    this.id = ++numbers;
    this.parent = parent;
    this.name = name;
    this.path = parent === null ? "/" : parent.path === "/" ? `/${name}` : `${parent.path}/${name}`;
    this.level = parent === null ? 1 : parent.level + 1;
    this.index = 0;
    this.children = [];
    // The children that were read, by name.
    this.byName = new Map();
    this.openChildren = new Map();
    this.isOpen = false;
    this.isRead = false;
    this.below = 0;
    // Set by the view: it has changed, and its stat has to be read again; it is to flash.
    this.isStale = false;
    this.hasFlash = false;
    this.learn(facts);
  }

  learn({ stat, kind, has_children: hasChildren } = {}) {
    this.stat = stat ?? this.stat ?? null;
    this.kind = kind ?? this.kind ?? null;
    this.hasChildren = (stat ? stat.num_children > 0 : hasChildren) ?? this.hasChildren ?? false;
  }
}

export class TreeModel {
  constructor() {
    this.root = new TreeNode(null, "/", { has_children: true });
  }

  get rowCount() {
    return 1 + this.root.below;
  }

  /** Return what a row shows: {node, parent, index, level}. `node` is null where nothing was read yet. */
  rowAt(row) {
    if (row === 0) return { node: this.root, parent: null, index: 0, level: 1 };
    let parent = this.root;
    let offset = row - 1;
    for (;;) {
      let shift = 0;
      let inside = null;
      for (const child of openInOrder(parent)) {
        const place = child.index + shift;
        if (offset <= place) break;
        if (offset <= place + child.below) {
          inside = child;
          offset -= place + 1;
          break;
        }
        shift += child.below;
      }
      if (inside === null) {
        const index = offset - shift;
        return { node: parent.children[index] ?? null, parent, index, level: parent.level + 1 };
      }
      parent = inside;
    }
  }

  /** Return the row of a node, or -1 if it has none. */
  rowOf(node) {
    if (node === this.root) return 0;
    const { parent } = node;
    if (!parent.isOpen || !hasPlace(node)) return -1;
    const above = this.rowOf(parent);
    if (above < 0) return -1;
    let row = above + 1 + node.index;
    for (const sibling of openInOrder(parent)) if (sibling.index < node.index) row += sibling.below;
    return row;
  }

  /** Return a node that was read, or null. */
  find(path) {
    let node = this.root;
    if (path === "/") return node;
    for (const name of path.slice(1).split("/")) {
      const parent = node;
      node = parent.byName.get(name) ?? parent.openChildren.get(name) ?? null;
      if (node === null) return null;
    }
    return node;
  }

  open(node) {
    if (node.isOpen) return;
    node.isOpen = true;
    // Until the first page is there, the stat says how many rows there will be.
    if (!node.isRead) resize(node, node.stat?.num_children ?? 0);
    node.parent?.openChildren.set(node.name, node);
    this.recount(node);
  }

  close(node) {
    if (!node.isOpen) return;
    node.isOpen = false;
    node.parent?.openChildren.delete(node.name);
    this.recount(node);
  }

  /** Put a page of children into their places. */
  place(parent, offset, children, total) {
    parent.isRead = true;
    resize(parent, total);
    children.forEach((facts, position) => {
      const index = offset + position;
      if (index >= total) return;
      let node = parent.byName.get(facts.name) ?? parent.openChildren.get(facts.name);
      if (node === undefined) node = new TreeNode(parent, facts.name, facts);
      else {
        node.learn(facts);
        // It may have stood elsewhere before others came or went.
        if (node.index !== index && parent.children[node.index] === node) parent.children[node.index] = null;
      }
      node.index = index;
      parent.children[index] = node;
    });
    this.#settle(parent);
  }

  /**
   * Let children come and go, all at once: a busy parent has a thousand changes a second. Return
   * whether that is all; if not, some places are no longer known and their pages have to be read.
   */
  change(parent, came, went) {
    const isWhole = parent.byName.size === parent.children.length;
    const fresh = [...came].filter((name) => !parent.byName.has(name));
    const gone = [...went].filter((name) => isWhole === false || parent.byName.has(name));
    if (parent.stat)
      parent.stat = {
        ...parent.stat,
        num_children: Math.max(0, parent.stat.num_children + fresh.length - gone.length),
      };
    for (const name of went) parent.openChildren.delete(name);
    if (!parent.isOpen) {
      parent.hasChildren = parent.stat ? parent.stat.num_children > 0 : parent.hasChildren || came.size > 0;
      parent.isRead = false;
      return true;
    }
    const isSure = isWhole || (!fresh.length && gone.every((name) => parent.byName.has(name)));
    if (gone.length)
      parent.children = parent.children.filter((child) => child === null || !went.has(child.name));
    if (fresh.length && isWhole)
      parent.children = [...parent.children, ...fresh.map((name) => new TreeNode(parent, name, {}))].sort(
        (a, b) => compareNames(a.name, b.name),
      );
    this.#settle(parent);
    parent.hasChildren = parent.children.length > 0 || !isSure;
    return isSure;
  }

  /** Forget which children stand where, except in the places `keep`. Those that are open stay so. */
  forget(parent, keep = new Set()) {
    parent.children = parent.children.map((child, index) => (keep.has(index) ? child : null));
    parent.isRead = false;
    this.#settle(parent);
  }

  /** Return all open nodes, from the top. */
  openNodes() {
    const found = [];
    const visit = (node) => {
      if (!node.isOpen) return;
      found.push(node);
      for (const child of node.openChildren.values()) visit(child);
    };
    visit(this.root);
    return found;
  }

  recount(node) {
    for (let one = node; one !== null; one = one.parent) {
      one.below = 0;
      if (!one.isOpen) continue;
      one.below = one.children.length;
      for (const child of openInOrder(one)) one.below += child.below;
    }
  }

  #settle(parent) {
    parent.byName.clear();
    parent.children.forEach((child, index) => {
      if (child === null) return;
      child.index = index;
      parent.byName.set(child.name, child);
    });
    this.recount(parent);
  }
}

function resize(parent, length) {
  if (length < parent.children.length) parent.children.length = length;
  else if (length > parent.children.length)
    parent.children = parent.children.concat(new Array(length - parent.children.length).fill(null));
}

function hasPlace(node) {
  return node.parent.children[node.index] === node;
}

function openInOrder(parent) {
  const open = [...parent.openChildren.values()].filter((child) => child.isOpen && hasPlace(child));
  return open.sort((a, b) => a.index - b.index);
}
