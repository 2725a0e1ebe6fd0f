/* Light and dark: as the system has it, until the person chooses. */

const CHOICES = [
  ["system", "as the system has them", "◐"],
  ["light", "light", "☀"],
  ["dark", "dark", "☾"],
];

/** Let a button change the colours: system, light, dark, and around again. */
export function startTheme(button) {
  let index = Math.max(
    0,
    CHOICES.findIndex(([name]) => name === stored()),
  );
  const apply = () => {
    const [name, words, sign] = CHOICES[index];
    if (name === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    button.textContent = sign;
    button.setAttribute("aria-label", `Colours: ${words}`);
    button.title = `Colours: ${words}`;
  };
  button.addEventListener("click", () => {
    index = (index + 1) % CHOICES.length;
    try {
      localStorage.setItem("theme", CHOICES[index][0]);
    } catch {
      // A browser that keeps nothing: the choice holds as long as the page is open.
    }
    apply();
  });
  apply();
}

function stored() {
  try {
    return localStorage.getItem("theme");
  } catch {
    return null;
  }
}
