/* Elements of the page, made from text and never from markup.
 *
 * Names and data of nodes come from strangers. Everything here ends in a text node or in an
 * attribute from a fixed list, so there is no way for them to become markup. Nothing in this
 * folder uses innerHTML.
 */

const SVG = "http://www.w3.org/2000/svg";
const AS_PROPERTY = new Set(["value", "checked", "disabled", "hidden", "open", "selected", "tabIndex"]);
const AS_ATTRIBUTE =
  /^(aria-|data-)|^(id|class|role|type|title|name|for|href|download|scope|colspan|min|max|step|rows|placeholder|autocomplete|spellcheck|datetime|alt|label|maxlength|required|dir|src|list|inputmode|autofocus)$/;

/** Return an element: `el("p.note", {title: "…"}, "text", child)`. A child that is null or false is left out. */
export function el(kind, properties, ...children) {
  const [tag, ...classes] = kind.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  set(element, properties ?? {});
  element.append(...wanted(children));
  return element;
}

/** Return an element of SVG. Its attributes are numbers and words of ours. */
export function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...wanted(children));
  return element;
}

/** Replace what an element holds. */
export function fill(element, ...children) {
  element.replaceChildren(...wanted(children));
  return element;
}

/** Set the text of an element, unless it has it already: a screen reader reads each change. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Bring the children of `parent` in line with `items`, and keep the elements of those that stay. */
export function reconcile(parent, items, { key, create, update }) {
  const before = new Map();
  for (const child of parent.children) before.set(child.reconcileKey, child);
  let place = parent.firstElementChild;
  for (const item of items) {
    const name = String(key(item));
    let child = before.get(name);
    if (child === undefined) {
      child = create(item);
      child.reconcileKey = name;
    }
    before.delete(name);
    update?.(child, item);
    if (child === place) place = place.nextElementSibling;
    else parent.insertBefore(child, place);
  }
  for (const child of before.values()) child.remove();
}

/** Let an element flash once; the style sheet leaves that out where less motion is wanted. */
export function flash(element) {
  element.classList.remove("flash");
  void element.offsetWidth; // Begins the animation anew.
  element.classList.add("flash");
}

function set(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (AS_PROPERTY.has(name)) element[name] = value;
    else if (!AS_ATTRIBUTE.test(name)) throw new Error(`no attribute of ours: ${name}`);
    else if (name.startsWith("aria-")) element.setAttribute(name, String(value));
    else if (value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
}

function wanted(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}
