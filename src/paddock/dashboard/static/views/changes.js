/* A change of a node: when, by whom, and what it was before and after. */

import { preview } from "../bytes.js";
import { comparable, shownDifference } from "../differences.js";
import { el, fill } from "../dom.js";
import { link, nodeLink } from "../router.js";
import { shownName, visible } from "../text.js";
import { ago } from "../units.js";
import { session, zxid } from "../words.js";

const WORDS = { created: "created", deleted: "deleted", changed: "changed", acl: "rights changed" };

/** Return what a kind of change is called. */
export function kindWord(kind) {
  return WORDS[kind] ?? visible(kind, 30);
}

/** Return a row of a list of changes. */
export function changeRow(change, { isPathShown = true } = {}) {
  const { path, kind, time_ms: time, zxid: number, session: who, identities, version, before, after } = change;
  const body = el("div.change-body");
  const isHidden = Boolean(before?.hidden || after?.hidden);
  const isTold = !isHidden && Boolean(before?.data || after?.data);
  const details = el(
    "details.change",
    { ontoggle: () => details.open && !body.hasChildNodes() && fill(body, tell(before, after)) },
    el(
      "summary",
      null,
      el(`span.badge.${WORDS[kind] ? kind : "changed"}`, null, kindWord(kind)),
      isPathShown ? shownName(path, 120) : el("span.change-data", null, shownName(summary(before, after), 60)),
      time ? ago(time) : el("span"),
    ),
    el(
      "p.hint",
      null,
      number ? ["write ", zxid(number)] : null,
      who ? [" by session ", session(who)] : null,
      identities?.length ? [" (", visible(identities.join(", "), 100), ")"] : null,
      version !== null && version !== undefined ? `, version ${version}` : null,
      number ? [" · ", el("a", { href: link("tree", { path, at: number }) }, "Show the node right after it")] : isPathShown && kind !== "deleted" ? el("a", { href: nodeLink(path) }, "Show the node") : null,
    ),
    body,
  );
  if (!isTold) fill(body, el("p.hint", null, isHidden ? "You may not read its data." : kind === "acl" ? "Its data stayed the same." : "It had no data."));
  return details;
}

function tell(before, after) {
  return shownDifference(comparable(before), comparable(after), "Data before and after");
}

function summary(before, after) {
  const shown = after ?? before;
  return preview(shown?.data) || (shown?.hidden ? "data that you may not read" : "no data");
}
