/* A change of a node: when, by whom, and what it was before and after. */

import { preview } from "../bytes.js";
import { comparable, shownDifference } from "../differences.js";
import { el, fill } from "../dom.js";
import { link } from "../router.js";
import { shownName, visible } from "../text.js";
import { ago } from "../units.js";
import { session, zxid } from "../words.js";

const WORDS = {
  created: "created",
  deleted: "deleted",
  changed: "changed",
  acl: "rights changed",
  gap: "gap",
};

/** Return what a kind of change is called. */
export function kindWord(kind) {
  return WORDS[kind] ?? visible(kind, 30);
}

/** Return a row of a list of changes. For a difference, `moments` are the two that it is between. */
export function changeRow(change, { isPathShown = true, moments = null } = {}) {
  const { path, kind, time_ms: time, before, after } = change;
  const body = el("div.change-body");
  const isHidden = Boolean(before?.hidden || after?.hidden);
  const isTold = !isHidden && Boolean(before?.data || after?.data);
  const name = isPathShown
    ? shownName(path, 120)
    : el("span.change-data", null, shownName(summary(before, after), 60));
  const details = el(
    "details.change",
    { ontoggle: () => details.open && !body.hasChildNodes() && fill(body, tell(before, after)) },
    el(
      "summary",
      null,
      el(`span.badge.${WORDS[kind] ? kind : "changed"}`, null, kindWord(kind)),
      name,
      time ? ago(time) : el("span"),
    ),
    el("p.hint", null, facts(change, moments)),
    body,
  );
  if (!isTold)
    fill(
      body,
      el(
        "p.hint",
        null,
        kind === "gap"
          ? `The history has a gap here. ${visible(change.reason ?? "", 300)}`
          : isHidden
            ? "You may not read its data."
            : kind === "acl"
              ? "Its data stayed the same."
              : "It had no data.",
      ),
    );
  return details;
}

/** Return by which write and by whom, and the way to the node, as far as that is known. */
function facts({ path, kind, zxid: number, session: who, identities, version }, moments) {
  const told = [];
  if (number) told.push(["write ", zxid(number)]);
  if (who)
    told.push([
      "by session ",
      session(who),
      identities?.length ? ` (${visible(identities.join(", "), 100)})` : "",
    ]);
  if (version !== null && version !== undefined) told.push(`version ${version}`);
  if (number)
    told.push(el("a", { href: link("tree", { path, at: number }) }, "Show the node right after it"));
  else if (moments)
    told.push(
      el(
        "a",
        { href: link("tree", { path, at: kind === "deleted" ? moments.from : moments.to }) },
        kind === "deleted" ? "Show the node as it was" : "Show the node",
      ),
    );
  return told.map((fact, index) => [index ? " · " : "", fact]);
}

function tell(before, after) {
  return shownDifference(comparable(before), comparable(after), "Data before and after");
}

function summary(before, after) {
  const shown = after ?? before;
  return preview(shown?.data) || (shown?.hidden ? "data that you may not read" : "no data");
}
