/* A dialog: a question to the person, on top of the page.
 *
 * It is the browser's own `dialog`, so the focus stays inside, Escape closes it, and the focus goes
 * back to where it was.
 */

import { el, fill } from "./dom.js";

let numbers = 0;

/**
 * Open a dialog. `body` are its elements; `actions` are {label, kind, run}, where `run` may return a
 * promise and closes the dialog unless it returns false or throws. An error is shown in the dialog.
 */
export function openDialog({ title, body, actions, isWide = false }) {
  const problem = el("p.problem-text", { role: "alert" });
  const heading = `dialog-${++numbers}`;
  const buttons = actions.map(({ label, kind, run }, index) =>
    el(
      `button.${kind ?? "plain"}`,
      { type: index === 0 ? "submit" : "button", onclick: index === 0 ? null : () => act(run) },
      label,
    ),
  );
  const cancel = el(
    "button.quiet",
    { type: "button", onclick: () => dialog.close() },
    actions.length ? "Cancel" : "Close",
  );
  const content = el("div.dialog-body", null, body);
  const footer = el("footer", null, cancel, [...buttons].reverse());
  const form = el("form", { onsubmit: submit }, el("h2", { id: heading }, title), content, problem, footer);
  const dialog = el(
    `dialog${isWide ? ".wide" : ""}`,
    { "aria-labelledby": heading, onclose: () => dialog.remove() },
    form,
  );

  async function submit(event) {
    event.preventDefault();
    if (actions.length) await act(actions[0].run);
  }

  async function act(run) {
    fill(problem);
    setBusy(true);
    try {
      if ((await run()) !== false) dialog.close();
    } catch (error) {
      fill(problem, error.message);
    } finally {
      setBusy(false);
    }
  }

  function setBusy(isBusy) {
    for (const button of buttons) button.disabled = isBusy;
    dialog.classList.toggle("busy", isBusy);
  }

  document.body.append(dialog);
  dialog.showModal();
  return { element: dialog, body: content, problem, buttons, close: () => dialog.close() };
}

/** Return a field with its label, and a sentence below it. */
export function field(label, input, hint) {
  const id = `field-${++numbers}`;
  input.id = id;
  if (hint) input.setAttribute("aria-describedby", `${id}-hint`);
  return el(
    "div.field",
    null,
    el("label", { for: id }, label),
    input,
    hint && el("p.hint", { id: `${id}-hint` }, hint),
  );
}
