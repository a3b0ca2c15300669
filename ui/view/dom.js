/** The few lines of DOM building that every view needs. */

/** @param {string} id @returns {any} */
export function byId(id) {
  const element = document.getElementById(id);
  if (element === null) throw new Error(`index.html has no element #${id}; a view draws into it.`);
  return element;
}

/**
 * @param {string} tag `name` or `name.class`
 * @param {Record<string, any>} [fields] `on…` are listeners, `text` is text, the rest attributes; null leaves one out
 * @param {...(Node|string|null)} children
 * @returns {any}
 */
export function make(tag, fields = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length > 0) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(fields)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "text") element.textContent = value;
    else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children) if (child !== null) element.append(child);
  return element;
}

/** A button that is asked twice, because nothing brings it back. @param {string} text @param {string} label @param {string} sure @param {() => void} work */
export function twice(text, label, sure, work) {
  const button = make("button", { type: "button", text, "aria-label": label, onclick: () => {
    if (button.dataset.asked) return work();
    button.dataset.asked = "yes";
    button.removeAttribute("aria-label");
    setText(button, sure);
    return undefined;
  }, onblur: () => {
    delete button.dataset.asked;
    button.setAttribute("aria-label", label);
    setText(button, text);
  } });
  return button;
}

/** @param {string} tag @param {Record<string, any>} fields @param {...Node} children */
export function draw(tag, fields, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(fields)) {
    if (key === "text") element.textContent = value;
    else element.setAttribute(key, String(value));
  }
  element.append(...children);
  return element;
}

/** Set text only where it changed, so that screen readers and selections are left in peace. @param {Node} node @param {string} text */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** @param {number} bytes */
export function showBytes(bytes) {
  const units = ["B", "KB", "MB", "GB"];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value >= 99.5 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

/** @param {number} seconds */
export function showAge(seconds) {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}
