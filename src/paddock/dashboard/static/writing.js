/* Changes by the person: set, create, delete, rights. Only where the dashboard allows them.
 *
 * Rules:
 * - A write carries the version that was shown. If it is another one by now, both are shown, and the
 *   person decides; nothing is overwritten unseen.
 * - A delete first says what would go, and takes no more than that.
 * - The dialog stays with what was entered until the write is done.
 */

import { announce } from "./announce.js";
import { post } from "./api.js";
import { asText, decode, encodeText } from "./bytes.js";
import { field, openDialog } from "./dialog.js";
import { comparable, shownDifference } from "./differences.js";
import { el, fill } from "./dom.js";
import { shownName, visible } from "./text.js";
import { bytes, count } from "./units.js";
import { aclList } from "./words.js";

const TEXT_MAX = 1_000_000;
const PERMISSIONS = ["read", "write", "create", "delete", "admin"];

/** Set the data of a node. */
export function openSet(node, done) {
  const text = asText(decode(node.data));
  if (node.is_cut || text === null || node.size > TEXT_MAX || text.includes("\r"))
    return refuse(
      "Set data",
      node.is_cut
        ? "The data is longer than what was read. Read all of it first, or use `paddock set`."
        : text?.includes("\r")
          ? "Some lines of this data end with a carriage return, which a browser would leave out. Use `paddock set` with a file."
          : "This data is not text. Use `paddock set` with a file.",
    );
  const input = el("textarea", { rows: 12, spellcheck: "false", dir: "auto" });
  input.value = text;
  const conflict = el("div.conflict", { hidden: true });
  let { version } = node.stat;
  const dialog = openDialog({
    title: "Set data",
    isWide: true,
    body: [
      el("p", null, shownName(node.path, 300)),
      field(
        "Data",
        input,
        `Version ${version} is shown. The write is refused if there is another one by then.`,
      ),
      conflict,
    ],
    actions: [{ label: "Set", kind: "primary", run: write }],
  });

  async function write() {
    try {
      await post("set", { path: node.path, data: encodeText(input.value), version });
    } catch (error) {
      if (error.status !== 409 || error.body.current === undefined) throw error;
      showConflict(error);
      return false;
    }
    announce(`${visible(node.path, 80)} was set.`);
    done();
    return true;
  }

  function showConflict(error) {
    const { current } = error.body;
    conflict.hidden = false;
    if (!current) {
      fill(
        conflict,
        el("h3", null, "It was deleted meanwhile"),
        el("p", null, "Your text is still here. Copy it, and create the node again if it should be there."),
      );
      dialog.buttons[0].hidden = true;
      return;
    }
    const theirs = comparable(current);
    // What is compared may be shorter than what is there, or bytes that are written out.
    const whole = current.is_cut || current.data === null ? null : asText(decode(current.data));
    const canTake = whole !== null && whole.length <= TEXT_MAX && !whole.includes("\r");
    fill(
      conflict,
      el(
        "h3",
        null,
        `It has changed meanwhile: version ${current.stat.version} now, version ${version} when you began`,
      ),
      el(
        "div.both",
        null,
        el(
          "div",
          null,
          el("h4", null, "There now"),
          el("pre.text", { tabIndex: 0 }, theirs.slice(0, 5000) || "no data"),
        ),
        el(
          "div",
          null,
          el("h4", null, "Yours"),
          el("pre.text", { tabIndex: 0 }, input.value.slice(0, 5000) || "no data"),
        ),
      ),
      el("h4", null, "From what is there now to yours"),
      shownDifference(theirs, input.value),
      el(
        "div.actions",
        null,
        canTake && el("button.plain", { type: "button", onclick: take }, "Take what is there now"),
        el("button.danger", { type: "button", onclick: keep }, "Overwrite it with mine"),
      ),
    );
    dialog.buttons[0].hidden = true;
    conflict.scrollIntoView({ block: "nearest" });

    function take() {
      input.value = whole;
      settle();
    }

    function keep() {
      settle();
      dialog.buttons[0].click();
    }

    function settle() {
      version = current.stat.version;
      conflict.hidden = true;
      dialog.buttons[0].hidden = false;
    }
  }
}

/** Create a child of a node. */
export function openCreate(parent, done) {
  const name = el("input", { type: "text", required: true, autocomplete: "off", spellcheck: "false" });
  const data = el("textarea", { rows: 5, spellcheck: "false", dir: "auto" });
  const kind = el(
    "select",
    null,
    el("option", { value: "persistent" }, "persistent: stays until it is deleted"),
    el("option", { value: "container" }, "container: goes after its last child"),
    el("option", { value: "ttl" }, "TTL: goes after a time without changes"),
  );
  const ttl = el("input", { type: "number", min: 1, value: 3600, inputmode: "numeric" });
  const sequence = el("input", { type: "checkbox" });
  const ttlField = field("Time to live, in seconds", ttl);
  ttlField.hidden = true;
  kind.addEventListener("change", () => {
    ttlField.hidden = kind.value !== "ttl";
    sequence.disabled = kind.value === "container";
  });
  const prefix = parent.path === "/" ? "/" : `${parent.path}/`;
  openDialog({
    title: "Create a child",
    body: [
      field(el("span", null, "Name, below ", shownName(parent.path, 80)), name),
      field("Data", data),
      field(
        "Kind",
        kind,
        "An ephemeral node would belong to the dashboard's own session, so that is not offered.",
      ),
      ttlField,
      el("label.check", null, sequence, " with a sequence number after its name"),
    ],
    actions: [
      {
        label: "Create",
        kind: "primary",
        run: async () => {
          const body = {
            path: prefix + name.value,
            data: encodeText(data.value),
            kind: kind.value,
            is_sequential: sequence.checked && !sequence.disabled,
          };
          if (kind.value === "ttl") body.ttl_ms = Number(ttl.value) * 1000;
          const answer = await post("create", body);
          announce(`${visible(answer.path ?? body.path, 80)} was created.`);
          done();
        },
      },
    ],
  });
}

/** Delete a node and all below it, after a look at what would go. */
export async function openDelete(node, done) {
  const body = el("div.dialog-body", null, el("p", null, "Looking at what would go…"));
  const dialog = openDialog({
    title: "Delete",
    body,
    actions: [{ label: "Delete", kind: "danger", run: remove }],
  });
  const [button] = dialog.buttons;
  let plan = null;
  button.disabled = true;
  await look();

  async function look() {
    try {
      plan = await post("delete", { path: node.path, preview: true });
    } catch (error) {
      if (error.status === undefined) throw error;
      fill(body, el("p.problem-text", { role: "alert" }, error.message));
      return;
    }
    const rest = plan.count - (plan.paths?.length ?? 0);
    fill(
      body,
      el(
        "p",
        null,
        plan.count === 1
          ? ["This node goes: ", shownName(node.path, 300)]
          : [
              el("strong", null, count(plan.count, "node")),
              " go: ",
              shownName(node.path, 200),
              " and all below it.",
            ],
      ),
      plan.data_bytes ? el("p.hint", null, `${bytes(plan.data_bytes)} of data with them.`) : null,
      plan.ephemeral_count
        ? el(
            "p.warn-text",
            null,
            `${count(plan.ephemeral_count, "of them belongs", "of them belong")} to sessions that are alive, whose clients count on them.`,
          )
        : null,
      plan.is_complete === false ? el("p.warn-text", null, "There is more than was looked at.") : null,
      plan.count > 1
        ? el(
            "div.preview",
            { tabIndex: 0, role: "region", "aria-label": "What goes" },
            el(
              "ul",
              null,
              plan.paths.map((path) => el("li", null, shownName(path, 200))),
            ),
            rest > 0 ? el("p.hint", null, `and ${count(rest, "other")}`) : null,
          )
        : null,
      el("p.hint", null, "This cannot be taken back."),
    );
    button.textContent = plan.count === 1 ? "Delete this node" : `Delete ${count(plan.count, "node")}`;
    button.disabled = false;
  }

  async function remove() {
    try {
      await post("delete", {
        path: node.path,
        version: plan.version ?? node.stat.version,
        is_recursive: plan.count > 1,
        count: plan.count,
      });
    } catch (error) {
      if (error.status !== 409) throw error;
      await look();
      throw error;
    }
    announce(`${visible(node.path, 80)} was deleted.`);
    done();
  }
}

/** Change who may do what. */
export function openAcl(node, done) {
  const rows = el("div.acl-rows");
  const conflict = el("div.conflict", { role: "alert" });
  const add = (entry) => rows.append(aclRow(entry));
  let version = node.stat.aversion;
  node.acl.forEach(add);
  openDialog({
    title: "Who may do what",
    isWide: true,
    body: [
      el("p", null, shownName(node.path, 300)),
      rows,
      el(
        "button.plain.start",
        { type: "button", onclick: () => add({ scheme: "digest", id: "", permissions: ["read"] }) },
        "Add somebody",
      ),
      el(
        "p.hint",
        null,
        "Rights hold for this node alone, not for what is below it. Who takes “admin” from everybody can no longer change this.",
      ),
      conflict,
    ],
    actions: [
      {
        label: "Set these rights",
        kind: "primary",
        run: async () => {
          const acl = [...rows.children].map((row) => row.entry());
          if (!acl.length)
            throw new Error("Somebody must be named. With nobody, no one could ever change this node again.");
          try {
            await post("acl", { path: node.path, acl, version });
          } catch (error) {
            const current = error.body?.current;
            if (error.status !== 409 || !current?.acl || !current.stat) throw error;
            // Both are shown: theirs here, and above what the person has chosen.
            version = current.stat.aversion;
            fill(
              conflict,
              el("h3", null, "The rights were changed meanwhile. There now:"),
              aclList(current.acl),
              el("p.hint", null, "“Set these rights” replaces them with yours."),
            );
            return false;
          }
          announce(`The rights of ${visible(node.path, 80)} were set.`);
          done();
          return true;
        },
      },
    ],
  });
}

function aclRow({ scheme, id, permissions }) {
  const schemeInput = el("input", {
    type: "text",
    value: scheme,
    "aria-label": "Scheme",
    spellcheck: "false",
    autocomplete: "off",
  });
  const idInput = el("input", {
    type: "text",
    value: id,
    "aria-label": "Who",
    spellcheck: "false",
    autocomplete: "off",
  });
  const boxes = PERMISSIONS.map((name) => {
    const box = el("input", { type: "checkbox", checked: permissions.includes(name) });
    return { name, box, label: el("label.check", null, box, ` ${name}`) };
  });
  const row = el(
    "fieldset.acl-row",
    null,
    el("legend.unseen", null, "A right"),
    schemeInput,
    idInput,
    el(
      "div.boxes",
      null,
      boxes.map(({ label }) => label),
    ),
    el(
      "button.quiet",
      { type: "button", "aria-label": "Remove this right", onclick: () => row.remove() },
      "Remove",
    ),
  );
  row.entry = () => ({
    scheme: schemeInput.value.trim(),
    id: idInput.value.trim(),
    permissions: boxes.filter(({ box }) => box.checked).map(({ name }) => name),
  });
  return row;
}

function refuse(title, why) {
  openDialog({ title, body: el("p", null, why), actions: [] });
}
