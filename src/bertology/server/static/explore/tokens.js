// The text as the model sees it. A click hides a token behind [MASK].

import { at, element } from "./elements.js";
import { adviceFor, legible, runsLeft } from "./letters.js";

const SAID = { true: ", hidden", mixed: ", partly hidden", false: "" };

// The value of `aria-pressed`. A word may have some hidden pieces and others that are not.
function pressed(pieces, masked) {
  const hidden = pieces.filter((piece) => masked.includes(piece)).length;
  if (hidden === 0) return "false";
  return hidden === pieces.length ? "true" : "mixed";
}

// Special tokens are counted as tokens, as in the model's limit, but not as words.
function counted({ size, special, level }) {
  const [count, name] = level === "words" ? [special.filter((x) => !x).length, "word"] : [size, "token"];
  return `${count} ${name}${count === 1 ? "" : "s"}`;
}

// Errors and predictions name tokens by their number.
const numbered = (pieces) => `Token${pieces.length > 1 ? "s" : ""} ${pieces.join(", ")}, counted from 0`;

export class TokenRow {
  constructor({ mask }) {
    this.mask = mask;
    at("tokens").addEventListener("keydown", (event) => this.#onKey(event));
  }

  show(maps, masked, canMask) {
    const hidden = maps.pieces.map((pieces) => pressed(pieces, masked));
    const shown = JSON.stringify([maps.originals, hidden, canMask, maps.level]);
    if (this.shown === shown) return; // the focus stays where it is
    const focused = [...at("tokens").children].indexOf(document.activeElement?.closest("li"));
    this.shown = shown;
    at("tokens-title").textContent = counted(maps);
    at("tokens").dir = runsLeft(maps.originals) ? "rtl" : "ltr";
    const advice = adviceFor(maps.originals);
    at("fonts-note").textContent = advice;
    at("fonts-note").hidden = !advice;
    const items = maps.originals.map((token, i) => this.#item(token, i, maps, hidden[i], canMask));
    at("tokens").replaceChildren(...items.map((item) => element("li", {}, [item])));
    const first = items.find((item) => item.tagName === "BUTTON");
    const again = items[focused];
    const stop = again?.tagName === "BUTTON" ? again : first;
    if (stop) stop.tabIndex = 0;
    // The list may scroll: without buttons in it, the keyboard must reach the list itself.
    if (stop) at("tokens").removeAttribute("tabindex");
    else at("tokens").tabIndex = 0;
    if (focused >= 0) again?.focus();
  }

  #item(token, index, maps, hidden, canMask) {
    const second = maps.boundary !== null && index === maps.boundary ? "second" : "";
    if (!canMask || maps.special[index]) {
      return element("span", { text: legible(token), class: `token ${maps.special[index] ? "special" : ""} ${second}` });
    }
    return element("button", {
      type: "button",
      class: `token ${second}`,
      text: legible(token),
      tabindex: -1,
      title: numbered(maps.pieces[index]),
      "aria-pressed": hidden,
      "aria-label": `${token}${SAID[hidden]}`,
      on: { click: () => this.mask(maps.pieces[index], hidden !== "true") },
    });
  }

  #onKey(event) {
    const onwards = at("tokens").dir === "rtl" ? -1 : 1;
    const step = { ArrowLeft: -onwards, ArrowRight: onwards }[event.key];
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
