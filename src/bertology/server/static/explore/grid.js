// All heads on one screen: layers are rows, heads are columns. One canvas has the pictures. Above
// it is a grid of empty cells for the mouse, the keyboard and screen readers.

import { currentRamp } from "./colour.js";
import { element, nameOf, percent, typeScale } from "./elements.js";
import { isHeadOff } from "./state.js";

const GAP = 2; // pixels between maps
const LABEL = 30; // pixels for the numbers of the layers
const TOP = 20; // pixels for the numbers of the heads
const SMALLEST = 16;
const LARGEST = 54;
const RANKED = 10; // heads that get a number after a search

const NEXT = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const toIndex = (number) => (number < 0 ? null : number);

export class Grid {
  constructor(root, readout, { choose, toggle }) {
    this.root = root;
    this.readout = readout;
    this.acts = { choose, toggle };
    this.cells = new Map();
    this.marked = new Map(); // cell -> how it is marked now
    this.focused = { row: 0, column: 0 };
    root.addEventListener("keydown", (event) => this.#onKey(event));
    new ResizeObserver(() => this.#layout() && this.#paint()).observe(root.parentElement);
  }

  show(maps, { chosen, off, ranks, filter, scale, mode }) {
    this.maps = maps;
    this.options = { chosen, off, ranks, filter, scale, mode };
    if (this.shape !== `${maps.layers} ${maps.heads}`) this.#build();
    this.#layout();
    this.#paint();
    this.#mark();
    this.#say(this.pointed ?? null);
  }

  // Shown at once, before the answer comes. It must not delay the answer, so nothing else changes.
  showOff(off) {
    if (!this.maps) return;
    this.options.off = off;
    this.#mark();
  }

  #build() {
    const { layers, heads } = this.maps;
    this.shape = `${layers} ${heads}`;
    this.cells.clear();
    this.marked.clear();
    this.canvas = element("canvas", { "aria-hidden": "true" });
    const rows = [];
    for (let row = -1; row < layers; row += 1) {
      const cells = [];
      for (let column = -1; column < heads; column += 1) cells.push(this.#cell(row, column));
      rows.push(element("div", { role: "row" }, cells));
    }
    this.root.replaceChildren(element("div", { role: "rowgroup" }, rows), this.canvas);
    this.size = 0;
  }

  // Row and column -1 are the headings; each stands for the mean over its column or row.
  #cell(row, column) {
    const kind = row < 0 ? "columnheader" : column < 0 ? "rowheader" : "gridcell";
    const text = row < 0 ? (column < 0 ? "all" : column) : column < 0 ? row : undefined;
    const place = { layer: toIndex(row), head: toIndex(column) };
    const cell = element("div", { role: kind, tabindex: -1, text });
    cell.addEventListener("click", () => {
      this.focused = { row, column };
      this.acts.choose(place);
    });
    cell.addEventListener("pointerenter", () => this.#say(place));
    cell.addEventListener("focus", () => {
      this.focused = { row, column };
      this.#say(place);
    });
    cell.addEventListener("pointerleave", () => this.#say(null));
    cell.addEventListener("blur", () => this.#say(null));
    this.cells.set(`${row} ${column}`, cell);
    return cell;
  }

  #layout() {
    if (!this.maps) return false;
    const { layers, heads } = this.maps;
    const type = typeScale();
    const room = this.root.parentElement.clientWidth - LABEL * type - heads * GAP;
    const size = Math.min(Math.floor(LARGEST * type), Math.max(SMALLEST, Math.floor(room / heads)));
    const ratio = Math.min(3, window.devicePixelRatio || 1);
    if (size === this.size && ratio === this.ratio && type === this.type) return false;
    Object.assign(this, { size, ratio, type });
    const style = this.root.style;
    style.setProperty("--heads", heads);
    style.setProperty("--layers", layers);
    style.setProperty("--cell", `${size}px`);
    style.setProperty("--label", `${LABEL * type}px`);
    style.setProperty("--top", `${TOP * type}px`);
    style.setProperty("--gap", `${GAP}px`);
    const side = (count) => count * (size + GAP) - GAP;
    this.canvas.width = Math.round(side(heads) * ratio);
    this.canvas.height = Math.round(side(layers) * ratio);
    this.canvas.style.width = `${side(heads)}px`;
    this.canvas.style.height = `${side(layers)}px`;
    return true;
  }

  // Choosing a head changes no picture. With long texts, drawing takes most of the time.
  #paint() {
    const { maps, canvas, ratio, size } = this;
    const { filter, scale } = this.options;
    const wanted = [maps, filter, scale, currentRamp(), size, ratio];
    if (this.painted?.every((value, i) => value === wanted[i])) return;
    this.painted = wanted;
    const context = canvas.getContext("2d");
    const image = context.createImageData(canvas.width, canvas.height);
    const pixels = new Uint32Array(image.data.buffer);
    const side = Math.floor(size * ratio);
    const spans = this.#spans(side);
    const highest = maps.highest || 1;
    for (let layer = 0; layer < maps.layers; layer += 1) {
      for (let head = 0; head < maps.heads; head += 1) {
        const peak = maps.peaks[layer * maps.heads + head];
        const start =
          Math.round(layer * (size + GAP) * ratio) * canvas.width +
          Math.round(head * (size + GAP) * ratio);
        const factor = scale === "common" ? peak / highest : 1;
        this.#paintOne(maps.of(layer, head), { pixels, start, width: canvas.width }, spans, factor);
      }
    }
    context.putImageData(image, 0, 0);
  }

  // Which tokens each pixel of a small map stands for; several if there are more tokens than pixels.
  #spans(side) {
    const { size } = this.maps;
    const { filter } = this.options;
    const spread = Array.from({ length: side }, (_, i) => {
      const from = Math.floor((i * size) / side);
      return [from, Math.max(from + 1, Math.floor(((i + 1) * size) / side))];
    });
    // Only one row or column is shown: it fills the whole map with stripes.
    const one = filter && filter.token < size ? [[filter.token, filter.token + 1]] : null;
    const only = one && Array(side).fill(one[0]);
    return {
      rows: one && filter.direction === "from" ? only : spread,
      columns: one && filter.direction === "to" ? only : spread,
    };
  }

  // A pixel shows the largest of its weights, not their mean: thin diagonals must stay visible.
  #paintOne(bytes, { pixels, start, width }, { rows, columns }, factor) {
    const { size } = this.maps;
    const colours = currentRamp().pixels;
    for (let y = 0; y < rows.length; y += 1) {
      const [top, bottom] = rows[y];
      for (let x = 0; x < columns.length; x += 1) {
        const [left, right] = columns[x];
        let most = 0;
        for (let row = top; row < bottom; row += 1) {
          for (let at = row * size + left; at < row * size + right; at += 1) {
            if (bytes[at] > most) most = bytes[at];
          }
        }
        pixels[start + y * width + x] = colours[(most * factor) | 0];
      }
    }
  }

  #mark() {
    this.root.dataset.mode = this.options.mode;
    for (const [key, cell] of this.cells) {
      const marks = this.#marksOf(key);
      const kept = JSON.stringify(marks);
      if (this.marked.get(key) === kept) continue; // setting the same value again takes time too
      this.marked.set(key, kept);
      this.#markOne(cell, marks);
    }
  }

  #marksOf(key) {
    const { chosen, off, ranks } = this.options;
    const [row, column] = key.split(" ").map(Number);
    const place = { layer: toIndex(row), head: toIndex(column) };
    const isHead = row >= 0 && column >= 0;
    const rank = isHead && ranks?.get(key) <= RANKED ? ranks.get(key) : null;
    return {
      place,
      rank,
      isBehind: Boolean(ranks) && isHead && rank === null,
      isChosen: Boolean(chosen) && chosen.layer === place.layer && chosen.head === place.head,
      isOff: row >= 0 && (off.layers.includes(row) || (column >= 0 && isHeadOff(off, place))),
      isGone: Boolean(this.gone?.has(key)),
      isFocused: row === this.focused.row && column === this.focused.column,
    };
  }

  #markOne(cell, { place, rank, isBehind, isChosen, isOff, isGone, isFocused }) {
    cell.setAttribute("aria-selected", isChosen);
    cell.classList.toggle("off", isOff);
    cell.classList.toggle("behind", isBehind);
    cell.classList.toggle("gone", isGone);
    if (rank !== null) cell.dataset.rank = rank;
    else delete cell.dataset.rank;
    const known = [isGone && "pruned", isOff && "switched off", rank !== null && `rank ${rank}`];
    cell.setAttribute("aria-label", [nameOf(place), ...known.filter(Boolean)].join(", "));
    // Setting it on the cell with the focus makes the browser lay out the whole page again.
    if (cell.tabIndex !== (isFocused ? 0 : -1)) cell.tabIndex = isFocused ? 0 : -1;
  }

  #say(place) {
    this.pointed = place;
    if (!place || !this.maps) {
      this.readout.textContent = this.hint ?? "";
      return;
    }
    const { tokens } = this.maps;
    const detail = [nameOf(place)];
    if (place.layer !== null && place.head !== null) {
      const { row, column, weight } = this.maps.strongest(place.layer, place.head);
      detail.push(`most: ${tokens[row]} → ${tokens[column]}, ${percent(weight)}`);
    }
    this.readout.textContent = detail.join(" · ");
  }

  focusOn({ row, column }) {
    const cell = this.cells.get(`${row} ${column}`);
    if (!cell) return;
    this.cells.get(`${this.focused.row} ${this.focused.column}`).tabIndex = -1;
    cell.tabIndex = 0;
    cell.focus();
  }

  #onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || !this.maps) return;
    const { row, column } = this.focused;
    const place = { layer: toIndex(row), head: toIndex(column) };
    const step = NEXT[event.key];
    if (step) this.focusOn({ row: row + step[0], column: column + step[1] });
    else if (event.key === "Home") this.focusOn({ row, column: 0 });
    else if (event.key === "End") this.focusOn({ row, column: this.maps.heads - 1 });
    else if (event.key === "Enter" || event.key === " ") this.acts.choose(place);
    else if (event.key === "o") this.acts.toggle(place);
    else return;
    event.preventDefault();
    event.stopPropagation(); // the page itself also handles "o"
  }
}
