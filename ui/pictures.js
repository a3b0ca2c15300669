/** What the person's hands show: files chosen, dropped or pasted, the camera, a window. */

import { byId } from "./view/dom.js";
import { NO_EYES } from "./view/shown.js";

const UNREADABLE = "This browser cannot read that file as a picture.";

/** Whether the model that answers takes pictures. @param {import("./session.js").State} state */
export const sees = (state) => state.session?.assistant?.sees !== false;

/** @param {DataTransfer|null} data */
const picturesIn = (data) => [...(data?.files ?? [])].filter((file) => file.type.startsWith("image/"));

/**
 * @param {{
 *   talk: import("./talk.js").Talk, view: import("./shown.js").View,
 *   state: () => import("./session.js").State, dispatch: (event: any) => void,
 * }} parts
 */
export function pictures({ talk, view, state, dispatch }) {
  const tell = (/** @type {string} */ text) => dispatch({ type: "page.notice", text });
  /** @param {Iterable<File>} files */
  const show = (files) => state().link === "open" && talk.show(files);
  const toggle = async (/** @type {import("./shown.js").Source} */ source) => {
    if (view.source === source) return view.close();
    if (!sees(state())) return tell(NO_EYES);
    const trouble = await view.open(source);
    return trouble === null ? undefined : tell(trouble);
  };

  byId("choose").addEventListener("click", () => (sees(state()) ? byId("file").click() : tell(NO_EYES)));
  byId("file").addEventListener("change", (/** @type {any} */ event) => {
    show([...event.target.files]);
    event.target.value = ""; // the same file may be chosen again
  });
  byId("camera").addEventListener("click", () => toggle("camera"));
  byId("screen").addEventListener("click", () => toggle("screen"));
  byId("screen").hidden = navigator.mediaDevices?.getDisplayMedia === undefined; // phones share no windows
  byId("now").addEventListener("click", () => talk.showNow());
  byId("off").addEventListener("click", () => view.close());
  addEventListener("paste", (event) => show(picturesIn(event.clipboardData)));
  for (const over of ["dragenter", "dragover"]) {
    addEventListener(over, (/** @type {any} */ event) => {
      if (!event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      document.body.classList.add("dropping");
    });
  }
  addEventListener("dragleave", (event) => event.relatedTarget === null && document.body.classList.remove("dropping"));
  addEventListener("drop", (event) => {
    document.body.classList.remove("dropping");
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault(); // else the browser leaves the page for the file
    const found = picturesIn(event.dataTransfer);
    if (found.length === 0) tell(UNREADABLE);
    else show(found);
  });
}
