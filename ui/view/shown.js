/** Draws what the person shows: the sign while a camera or a window is on, and a picture of the talk, larger. */

import { byId, make, setText } from "./dom.js";

const SIGNS = {
  camera: "The camera is on. A picture is taken when you begin to speak or write.",
  screen: "A window is shared. A picture is taken when you begin to speak or write.",
};

export const NO_EYES = "The model that answers here cannot see pictures. Larger models can: see the name of the model at the top.";

/** The sign and the buttons; one that would be of no use says why when it is pressed. @param {"camera"|"screen"|null} source @param {boolean} open whether there is a link @param {boolean} sees whether the model takes pictures */
export function drawShowing(source, open, sees) {
  const sign = byId("showing");
  sign.hidden = source === null;
  setText(byId("showing-text"), source === null ? "" : SIGNS[source]);
  for (const name of ["camera", "screen"]) byId(name).setAttribute("aria-pressed", String(source === name));
  for (const name of ["choose", "camera", "screen"]) byId(name).setAttribute("aria-disabled", String(!sees));
  byId("blind").hidden = sees;
  document.body.toggleAttribute("data-blind", !sees);
  for (const name of ["choose", "now"]) byId(name).disabled = !open;
}

/** @param {import("../session.js").Picture} picture */
const size = ({ width, height }) => `${width} × ${height}`;

/** A small picture for the talk. @param {import("../session.js").Picture} picture @param {() => void} onLarger */
export function thumbnail(picture, onLarger) {
  const label = `${picture.frame ? "Picture from the camera or window" : "Picture"}, ${size(picture)}. Show it larger`;
  const image = picture.url === null ? make("span", { text: size(picture) }) : make("img", { src: picture.url, alt: "" });
  return make("button.shot", { type: "button", "aria-label": label, title: label, onclick: onLarger }, image);
}

/** The picture as the model got it, and what is known of how it was seen. @param {import("../session.js").Picture} picture @param {{tokens: number|null, ms: number|null}} seen */
export function showLarger(picture, { tokens, ms }) {
  if (picture.url === null) return;
  const facts = [size(picture)];
  if (tokens !== null) facts.push(`${tokens} tokens in this turn`);
  if (ms !== null) facts.push(`seen in ${Math.round(ms)} ms`);
  const image = byId("larger-image");
  image.src = picture.url;
  image.alt = `Picture, ${size(picture)}`;
  setText(byId("larger-facts"), facts.join(" · "));
  byId("larger").showModal();
}
