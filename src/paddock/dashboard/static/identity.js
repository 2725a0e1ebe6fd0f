/* Who the person is to the service.
 *
 * The dashboard acts with what the person enters here, and shows what these credentials may see.
 * The page keeps none of it: the server of the dashboard has them until the login ends.
 */

import { post } from "./api.js";
import { field, openDialog } from "./dialog.js";
import { el } from "./dom.js";
import { bus, shared } from "./state.js";
import { shownName } from "./text.js";

/** Open the dialog, and call `onchange` when the person has become another one. */
export function openIdentity(onchange) {
  const names = shared.about.identity?.names ?? [];
  const scheme = el(
    "select",
    null,
    el("option", { value: "digest" }, "digest: a name and a password"),
    el("option", { value: "sasl" }, "SASL: a name and a password"),
    el("option", { value: "other" }, "another scheme"),
  );
  const other = el("input", { type: "text", autocomplete: "off", spellcheck: "false", maxlength: 100 });
  const user = el("input", { type: "text", autocomplete: "username", spellcheck: "false", required: true });
  const password = el("input", { type: "password", autocomplete: "current-password" });
  const otherField = field("Scheme", other);
  const userField = field("Name", user);
  const passwordField = field(
    "Password",
    password,
    "It goes to the dashboard's server only, and is forgotten when the login ends.",
  );
  const hasPassword = () => scheme.value !== "other";
  const show = () => {
    otherField.hidden = hasPassword();
    passwordField.hidden = !hasPassword();
    other.required = !hasPassword();
    userField.firstElementChild.textContent = hasPassword() ? "Name" : "Credentials";
  };
  scheme.addEventListener("change", show);
  show();
  const body = [
    el(
      "p",
      null,
      names.length
        ? ["The service knows you as ", names.map((name, index) => [index ? ", " : "", shownName(name)]), "."]
        : "You are nobody in particular: you see what everybody may see.",
    ),
    field("Scheme", scheme),
    otherField,
    userField,
    passwordField,
  ];
  const become = async (credentials) => {
    const answer = await post("identity", credentials);
    shared.about.identity = answer.identity ?? answer;
    bus.emit("about");
    onchange();
  };
  const actions = [
    {
      label: "Add this identity",
      kind: "primary",
      run: () =>
        become({
          scheme: hasPassword() ? scheme.value : other.value.trim(),
          credentials: hasPassword() ? `${user.value}:${password.value}` : user.value,
        }),
    },
  ];
  if (names.some((name) => !name.startsWith("ip:")))
    actions.push({ label: "Forget what was entered", run: () => become({}) });
  openDialog({ title: "Identity", body, actions });
}
