// One map, enlarged: rows are tokens that attend, columns the tokens they attend to.

import { currentRamp } from "./colour.js";
import { element, typeScale } from "./elements.js";
import { legible } from "./letters.js";

const SMALLEST = 11; // pixels for each token, so that labels can be read; long texts scroll
const LARGEST = 34;
const LABEL = 84; // about so many pixels for the tokens at the side
const MARK = "#d55e00";
const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

export class Matrix {
  constructor(root, { say, filter }) {
    this.root = root;
    this.acts = { say, filter };
    this.cell = null;
    this.canvas = element("canvas", {
      tabindex: 0,
      role: "application",
      "aria-label":
        "Attention map. Arrow keys move over its cells, Enter shows only the row’s token, Escape shows all.",
      "aria-describedby": "cell",
    });
    this.top = element("div", { class: "labels top", "aria-hidden": "true" });
    this.side = element("div", { class: "labels side", "aria-hidden": "true" });
    root.append(element("div", { class: "corner", text: "from ↓ to →" }), this.top, this.side, this.canvas);
    this.canvas.addEventListener("pointermove", (event) => this.#point(event));
    this.canvas.addEventListener("pointerdown", (event) => this.#point(event));
    this.canvas.addEventListener("pointerleave", () => this.#choose(null));
    this.canvas.addEventListener("blur", () => this.#choose(null));
    this.canvas.addEventListener("keydown", (event) => this.#onKey(event));
    new ResizeObserver(() => this.map && this.#layout() && this.#draw()).observe(root);
  }

  show(map, { scale, filter }) {
    const same = this.map?.tokens === map.tokens;
    Object.assign(this, { map, filter, full: scale === "common" ? 1 : map.full });
    if (!same) this.#label();
    this.#layout();
    this.picture = this.#picture();
    if (this.cell && this.cell.row >= map.size) this.cell = null;
    this.#choose(this.cell);
    this.#markLabels();
  }

  #label() {
    const labels = (direction) =>
      this.map.tokens.map((token, index) =>
        element("span", {
          text: legible(token),
          title: token,
          on: { click: () => this.acts.filter({ token: index, direction }) },
        }),
      );
    this.side.replaceChildren(...labels("from"));
    this.top.replaceChildren(...labels("to"));
  }

  #layout() {
    const { size } = this.map;
    const type = typeScale();
    const room = this.root.clientWidth - LABEL * type;
    const cell = Math.floor(Math.min(LARGEST * type, Math.max(SMALLEST * type, room / size)));
    const ratio = Math.min(3, window.devicePixelRatio || 1);
    if (cell * size === this.width && ratio === this.ratio && size === this.laid) return false;
    Object.assign(this, { width: cell * size, ratio, laid: size });
    this.root.style.setProperty("--cell", `${cell}px`);
    this.canvas.width = this.canvas.height = Math.round(this.width * ratio);
    this.canvas.style.width = this.canvas.style.height = `${this.width}px`;
    return true;
  }

  #picture() {
    const { size, weights } = this.map;
    const small = new OffscreenCanvas(size, size);
    const context = small.getContext("2d");
    const image = context.createImageData(size, size);
    const pixels = new Uint32Array(image.data.buffer);
    const colours = currentRamp().pixels;
    for (let i = 0; i < weights.length; i += 1) {
      pixels[i] = colours[Math.min(255, Math.round((255 * weights[i]) / this.full))];
    }
    context.putImageData(image, 0, 0);
    return small;
  }

  #draw() {
    const { canvas, cell, map, filter } = this;
    const context = canvas.getContext("2d");
    const side = canvas.width / map.size;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.imageSmoothingEnabled = false;
    context.globalAlpha = filter ? 0.18 : 1;
    context.drawImage(this.picture, 0, 0, canvas.width, canvas.height);
    context.globalAlpha = 1;
    if (filter && filter.token < map.size) this.#drawOnly(context, side);
    if (map.boundary !== null) this.#drawBoundary(context, map.boundary * side);
    if (cell) {
      context.setLineDash([]);
      context.strokeStyle = MARK;
      context.lineWidth = 2 * this.ratio;
      context.strokeRect(cell.column * side, cell.row * side, side, side);
    }
  }

  #drawOnly(context, side) {
    const { token, direction } = this.filter;
    const { size } = this.map;
    const [x, y, w, h] = direction === "from" ? [0, token, size, 1] : [token, 0, 1, size];
    context.drawImage(this.picture, x, y, w, h, x * side, y * side, w * side, h * side);
  }

  #drawBoundary(context, at) {
    context.strokeStyle = MARK;
    context.lineWidth = 1.5 * this.ratio;
    context.setLineDash([5 * this.ratio, 4 * this.ratio]);
    context.beginPath();
    context.moveTo(at, 0);
    context.lineTo(at, this.canvas.height);
    context.moveTo(0, at);
    context.lineTo(this.canvas.width, at);
    context.stroke();
  }

  #choose(cell) {
    this.cell = cell;
    if (!this.map) return;
    this.#draw();
    this.#markLabels();
    const weight = cell && this.map.weights[cell.row * this.map.size + cell.column];
    this.acts.say(cell && { ...cell, weight });
  }

  #markLabels() {
    const { cell, filter } = this;
    const mark = (labels, at, kept) =>
      [...labels.children].forEach((label, i) => {
        label.classList.toggle("pointed", i === at);
        label.classList.toggle("kept", i === kept);
      });
    mark(this.side, cell?.row, filter?.direction === "from" ? filter.token : undefined);
    mark(this.top, cell?.column, filter?.direction === "to" ? filter.token : undefined);
  }

  #point(event) {
    if (!this.map) return;
    const box = this.canvas.getBoundingClientRect();
    const index = (at, start) =>
      Math.min(this.map.size - 1, Math.max(0, Math.floor(((at - start) / this.width) * this.map.size)));
    const cell = { row: index(event.clientY, box.top), column: index(event.clientX, box.left) };
    if (cell.row !== this.cell?.row || cell.column !== this.cell?.column) this.#choose(cell);
  }

  #onKey(event) {
    if (!this.map || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = STEPS[event.key];
    const within = (index) => Math.min(this.map.size - 1, Math.max(0, index));
    if (step) {
      const { row, column } = this.cell ?? { row: -step[0], column: -step[1] };
      this.#choose({ row: within(row + step[0]), column: within(column + step[1]) });
    } else if (event.key === "Enter" && this.cell) {
      this.acts.filter({ token: this.cell.row, direction: "from" });
    } else if (event.key === "Escape") {
      this.acts.filter(null);
    } else {
      return;
    }
    event.preventDefault();
  }
}
