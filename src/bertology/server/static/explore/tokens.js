// The text as the model sees it. A click hides a token behind [MASK].

import { at, element } from "./elements.js";

export class TokenRow {
  constructor({ mask }) {
    this.mask = mask;
    at("tokens").addEventListener("keydown", (event) => this.#onKey(event));
  }

  show(maps, masked, canMask) {
    const hidden = maps.pieces.map((pieces) => pieces.length > 0 && pieces.every((p) => masked.includes(p)));
    const shown = JSON.stringify([maps.originals, hidden, canMask]);
    if (this.shown === shown) return; // the focus stays where it is
    const focused = [...at("tokens").children].indexOf(document.activeElement?.closest("li"));
    this.shown = shown;
    at("tokens-title").textContent = `${maps.size} tokens`;
    const items = maps.originals.map((token, i) => this.#item(token, i, maps, hidden[i], canMask));
    at("tokens").replaceChildren(...items.map((item) => element("li", {}, [item])));
    const first = items.find((item) => item.tagName === "BUTTON");
    const again = items[focused];
    const stop = again?.tagName === "BUTTON" ? again : first;
    if (stop) stop.tabIndex = 0;
    if (focused >= 0) again?.focus();
  }

  #item(token, index, maps, hidden, canMask) {
    const second = maps.boundary !== null && index === maps.boundary ? "second" : "";
    if (!canMask || maps.special[index]) {
      return element("span", { text: token, class: `token special ${second}` });
    }
    return element("button", {
      type: "button",
      class: `token ${second}`,
      text: token,
      tabindex: -1,
      "aria-pressed": hidden,
      "aria-label": hidden ? `${token}, hidden` : token,
      on: { click: () => this.mask(maps.pieces[index], !hidden) },
    });
  }

  #onKey(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    const buttons = [...at("tokens").querySelectorAll("button")];
    const next = buttons[buttons.indexOf(document.activeElement) + step];
    event.preventDefault();
    if (!next) return;
    document.activeElement.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }
}
