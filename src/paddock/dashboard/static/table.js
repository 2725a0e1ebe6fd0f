/* A table whose rows are brought up to date in place, and which can be sorted.
 *
 * A column is {title, cell, value, isNumber, isWide, isSortable}. `cell(row)` returns what the cell shows, and
 * `value(row)` a text or number that is different when the cell should be; a cell is made again only
 * then, so focus, selection and hovering stay where they are. On a narrow screen each row is a card, with the
 * titles of the columns beside the values.
 */

import { el, fill, flash, reconcile } from "./dom.js";
import { count } from "./units.js";

const ROWS_AT_ONCE = 200;

/** Return a table: {element, update(rows)}. `key(row)` names a row. */
export function createTable({ label, columns, key, empty, sort = null, onrow = null }) {
  let rows = [];
  let order = sort;
  let limit = ROWS_AT_ONCE;
  const heads = columns.map((column, index) => head(column, index));
  const body = el("tbody", { role: "rowgroup" });
  const table = el(
    "table",
    { role: "table", "aria-label": label },
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, heads)),
    body,
  );
  const more = el("button.plain", {
    type: "button",
    hidden: true,
    onclick: () => ((limit += ROWS_AT_ONCE), draw()),
  });
  const none = el("div.empty", { hidden: true }, empty);
  const element = el(
    "div.table",
    null,
    el("div.scroll", { tabIndex: 0, role: "region", "aria-label": `${label}, scrollable` }, table),
    none,
    more,
  );

  function head(column, index) {
    const cell = el("th", { scope: "col", role: "columnheader", class: column.isNumber ? "number" : null });
    if (!column.value || column.isSortable === false) return fill(cell, column.title);
    return fill(cell, el("button.sort", { type: "button", onclick: () => sortBy(index) }, column.title));
  }

  function sortBy(index) {
    order = { index, isDown: order?.index === index ? !order.isDown : Boolean(columns[index].isNumber) };
    draw();
  }

  function sorted() {
    if (order === null) return rows;
    const { value } = columns[order.index];
    const sign = order.isDown ? -1 : 1;
    return [...rows].sort((a, b) => sign * compare(value(a), value(b)));
  }

  function draw() {
    heads.forEach((cell, index) => {
      if (order?.index === index) cell.setAttribute("aria-sort", order.isDown ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    });
    reconcile(body, sorted().slice(0, limit), { key, create, update });
    table.parentElement.hidden = rows.length === 0;
    none.hidden = rows.length > 0;
    more.hidden = rows.length <= limit;
    more.textContent = `Show more of ${count(rows.length, "row")}`;
  }

  function create() {
    return el(
      "tr",
      { role: "row" },
      columns.map((column) =>
        el("td", {
          role: "cell",
          class: [column.isNumber && "number", column.isWide && "wide"].filter(Boolean).join(" ") || null,
          "data-label": column.title,
        }),
      ),
    );
  }

  function update(element, row) {
    const isNew = element.cellValues === undefined;
    const values = columns.map((column) => (column.value ?? column.cell)(row));
    columns.forEach((column, index) => {
      if (!isNew && element.cellValues[index] === values[index]) return;
      fill(element.cells[index], column.cell(row));
    });
    element.cellValues = values;
    onrow?.(element, row, isNew);
  }

  return {
    element,
    update(wanted) {
      rows = wanted;
      draw();
    },
    /** Let a row flash, if it is there. */
    flash(name) {
      for (const row of body.children) if (row.reconcileKey === name) flash(row);
    },
  };
}

function compare(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return 1;
  if (b === null || b === undefined) return -1;
  return a < b ? -1 : 1;
}
