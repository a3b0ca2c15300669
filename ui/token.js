/** The token of a server that asks for one. */

import { byId } from "./view/dom.js";

const KEPT = "token";
/** A websocket carries the token as the name of a protocol, and refuses any other character by throwing. */
const CARRIED = /^[\w!#$%&'*+.^`|~-]+$/;

/**
 * From the address (`#token=…`), or as it was kept on this device: an installed page opens without it. It does not stay in
 * the address, which is seen, copied and bookmarked.
 * @returns {string|null} null, too, for one that cannot be sent: the server then asks for one
 */
export function ownToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    localStorage.setItem(KEPT, given);
    history.replaceState(null, "", location.pathname + location.search);
  }
  const token = given || localStorage.getItem(KEPT);
  return token !== null && CARRIED.test(token) ? token : null;
}

/**
 * Let the person type the token, if that is why the server cannot be reached: browsers hide why a websocket was refused,
 * and an installed page has no line for an address.
 * @param {import("./asker.js").Asker} asker
 */
export async function askForToken(asker) {
  const error = await asker.ask("GET", "/v1/models").then(() => null, (reason) => reason);
  const dialog = byId("locked");
  if (error?.status !== 401 || dialog.open) return;
  dialog.showModal();
  byId("unlock").onsubmit = () => {
    localStorage.setItem(KEPT, byId("token").value.trim());
    location.reload();
  };
}
