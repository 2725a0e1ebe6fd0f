/* Stats, rights and kinds of nodes, in words. */

import { el } from "./dom.js";
import { sessionLink } from "./router.js";
import { shownName, visible } from "./text.js";
import { ago, bytes, count } from "./units.js";

const KINDS = {
  persistent: "Stays until it is deleted.",
  ephemeral: "Goes when the session that owns it ends.",
  container: "Goes when its last child has gone.",
  ttl: "Goes when it had no child and no change for its time to live.",
};
const ALL = ["read", "write", "create", "delete", "admin"];
const VERBS = {
  read: "read it and list its children",
  write: "set its data",
  create: "create children",
  delete: "delete children",
  admin: "change these rights",
};
const SHORT_VERBS = {
  read: "read",
  write: "write",
  create: "create children",
  delete: "delete children",
  admin: "change rights",
};

/** Return a server's version. Paddock calls itself a ZooKeeper too, whose clients ask for that one. */
export function versionWords(version) {
  return visible(String(version ?? "–").replace(/^.*-paddock-/, ""), 40);
}

export function kindWords(kind) {
  return KINDS[kind] ?? "";
}

/** Return what a stat says as a list of terms and facts. */
export function statList(stat, size) {
  const rows = [
    ["Created", [ago(stat.ctime_ms), " by the write ", zxid(stat.czxid)]],
    [
      "Data changed",
      stat.version === 0 ? "never since" : [ago(stat.mtime_ms), " by the write ", zxid(stat.mzxid)],
    ],
    ["Data", [bytes(size ?? stat.data_length), `, version ${stat.version}`]],
    [
      "Children",
      [
        count(stat.num_children, "child", "children"),
        stat.cversion
          ? `, ${count(stat.cversion, "coming and going", "comings and goings")}, the last by the write `
          : "",
        stat.cversion ? zxid(stat.pzxid) : "",
      ],
    ],
    ["Rights changed", stat.aversion === 0 ? "never since" : count(stat.aversion, "time")],
  ];
  return factList(rows);
}

/** Return rows of terms and facts as a list of definitions. */
export function factList(rows) {
  return el(
    "dl.facts",
    null,
    rows
      .filter(([, fact]) => fact !== null && fact !== undefined && fact !== false)
      .map(([term, fact]) => el("div", null, el("dt", null, term), el("dd", null, fact))),
  );
}

export function zxid(text) {
  return el("code.zxid", { title: "zxid: the number of a write" }, text ?? "–");
}

/** Return a session as a link to it. */
export function session(id) {
  if (!id) return el("span.none", { title: "not known" }, "–");
  return el("a.session", { href: sessionLink(id) }, visible(id, 24));
}

/** Return an ACL as sentences. */
export function aclList(acl) {
  return el(
    "ul.acl",
    null,
    acl.map((entry) => el("li", null, el("strong", null, who(entry)), ` ${may(entry.permissions)}.`)),
  );
}

function who({ scheme, id }) {
  if (scheme === "world") return "Everybody";
  if (scheme === "auth") return "Who created it";
  if (scheme === "ip") return ["Clients at ", shownName(id)];
  if (scheme === "digest")
    return [shownName(id.split(":")[0]), el("span.hint", { title: visible(id, 200) }, " (by password)")];
  return [shownName(`${scheme}:${id}`)];
}

function may(permissions) {
  if (!permissions.length) return "may do nothing";
  if (ALL.every((one) => permissions.includes(one))) return "may do everything";
  if (permissions.length === 1) return `may only ${VERBS[permissions[0]] ?? visible(permissions[0])}`;
  const verbs = permissions.map((one) => SHORT_VERBS[one] ?? visible(one));
  return `may ${verbs.slice(0, -1).join(", ")} and ${verbs.at(-1)}`;
}
