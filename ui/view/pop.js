/** Sheets that a word opens (`details.pop`): one at a time, closed by Escape and by a press beside it. */

export function pops() {
  const all = () => /** @type {HTMLDetailsElement[]} */ ([...document.querySelectorAll("details.pop[open]")]);
  /** @param {(pop: HTMLDetailsElement) => boolean} which */
  const close = (which) => {
    for (const pop of all()) if (which(pop)) pop.open = false;
  };
  addEventListener("pointerdown", (event) => close((pop) => !pop.contains(/** @type {Node} */ (event.target))), true);
  addEventListener("focusin", (event) => close((pop) => !pop.contains(/** @type {Node} */ (event.target))));
  addEventListener("keydown", (event) => {
    const open = event.key === "Escape" ? all()[0] : undefined;
    if (!open) return;
    event.stopImmediatePropagation(); // this key was for the sheet
    open.open = false;
    open.querySelector("summary")?.focus();
  }, true);
  return () => close(() => true);
}
