// One map as lines: tokens that attend on the left, tokens they attend to on the right. A stronger
// line is more attention. The idea is from BertViz (Vig 2019).

import { currentRamp } from "./colour.js";
import { element, typeScale } from "./elements.js";
import { legible } from "./letters.js";

export const ROW = 22; // pixels for each token
const LONG_ROW = 17; // if there are many tokens
const MANY = 40;
export const FAINTEST = 0.03; // share of the strongest line; weaker lines are not drawn

export const rowHeight = (size) => (size > MANY ? LONG_ROW : ROW);

// The lines to draw, the weakest first, so that strong lines are on top.
export function linesOf({ size, weights, peak }, only = null, full = peak) {
  const found = [];
  for (let row = 0; row < size; row += 1) {
    for (let column = 0; column < size; column += 1) {
      const weight = weights[row * size + column];
      const wanted = !only || only.token === (only.direction === "from" ? row : column);
      if (wanted && weight >= FAINTEST * peak) {
        found.push({ row, column, share: Math.min(1, weight / (full || 1)) });
      }
    }
  }
  return found.sort((a, b) => a.share - b.share);
}

export class Lines {
  constructor(root, { say, filter }) {
    this.root = root;
    this.acts = { say, filter };
    this.hovered = null;
    this.left = element("div", { class: "labels left", "aria-label": "Tokens that attend", role: "group" });
    this.right = element("div", { class: "labels right", "aria-label": "Tokens attended to", role: "group" });
    this.canvas = element("canvas", { "aria-hidden": "true" });
    root.append(this.left, this.canvas, this.right);
    for (const labels of [this.left, this.right]) {
      labels.addEventListener("keydown", (event) => this.#onKey(event, labels));
    }
    new ResizeObserver(() => this.map && this.#draw()).observe(root);
  }

  show(map, { scale, filter }) {
    const same = this.map?.tokens === map.tokens;
    Object.assign(this, { map, filter, full: scale === "common" ? 1 : map.full });
    this.hovered = same ? this.hovered : null;
    if (!same) this.#label();
    this.#draw();
  }

  #label() {
    const labels = (direction) =>
      this.map.tokens.map((token, index) => {
        const place = { token: index, direction };
        return element("button", {
          type: "button",
          tabindex: index ? -1 : 0, // Tab stops once; arrow keys move from there
          text: legible(token),
          title: token,
          on: {
            click: () => this.acts.filter(place),
            pointerenter: () => this.#hover(place),
            pointerleave: () => this.#hover(null),
            focus: () => this.#hover(place),
            blur: () => this.#hover(null),
          },
        });
      });
    this.left.replaceChildren(...labels("from"));
    this.right.replaceChildren(...labels("to"));
  }

  #onKey(event, labels) {
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (event.key === "Escape") this.acts.filter(null);
    else if (step) {
      const all = [...labels.children];
      const next = all[all.indexOf(document.activeElement) + step];
      if (next) {
        document.activeElement.tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
      }
    } else return;
    event.preventDefault();
  }

  #hover(place) {
    this.hovered = place;
    this.#draw();
    this.acts.say(place && this.#strongest(place));
  }

  #strongest({ token, direction }) {
    const { size, weights } = this.map;
    let best = null;
    for (let other = 0; other < size; other += 1) {
      const [row, column] = direction === "from" ? [token, other] : [other, token];
      const weight = weights[row * size + column];
      if (!best || weight > best.weight) best = { row, column, weight };
    }
    return best;
  }

  #draw() {
    const { canvas, map } = this;
    const ratio = Math.min(3, window.devicePixelRatio || 1);
    const row = rowHeight(map.size) * typeScale();
    const height = row * map.size;
    this.root.style.setProperty("--row", `${row}px`);
    const width = canvas.clientWidth;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.strokeStyle = currentRamp().lines;
    const only = this.hovered ?? this.filter;
    for (const { row: from, column: to, share } of linesOf(map, only, this.full)) {
      context.globalAlpha = share;
      context.lineWidth = 0.6 + 2 * share;
      context.beginPath();
      context.moveTo(0, (from + 0.5) * row);
      context.lineTo(width, (to + 0.5) * row);
      context.stroke();
    }
    this.#markLabels(only);
  }

  // The colour of labels on the other side shows how much attention they give or get.
  #markLabels(only) {
    const { size, weights } = this.map;
    const ramp = currentRamp();
    const tint = (labels, direction, weightOf) =>
      [...labels.children].forEach((label, i) => {
        const kept = this.filter?.direction === direction && this.filter.token === i;
        label.classList.toggle("kept", kept);
        label.setAttribute("aria-pressed", kept);
        const share = weightOf && only.token < size ? weightOf(i) / this.full : 0;
        label.style.borderColor = share > FAINTEST ? ramp.css(share) : "";
      });
    const to = only?.direction === "to";
    tint(this.left, "from", to ? (i) => weights[i * size + only.token] : null);
    tint(this.right, "to", only && !to ? (i) => weights[only.token * size + i] : null);
  }
}
