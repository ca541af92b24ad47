// One attention map on a canvas: darker is more; the darkest cell is the map's maximum.

const SIDE = 1040; // about so many pixels; the page shows the drawing smaller
const FULL = 65535; // what the server sends for the maximum
const DARK = [11, 26, 56];
const BOUNDARY = "#d55e00";

function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Uint16Array.from({ length: bytes.length / 2 }, (_, i) => view.getUint16(2 * i, true));
}

export class AttentionMap {
  constructor(canvas, caption) {
    this.canvas = canvas;
    this.caption = caption;
    this.map = null;
    canvas.addEventListener("pointermove", (event) => this.#point(event));
    canvas.addEventListener("pointerdown", (event) => this.#point(event));
    canvas.addEventListener("pointerleave", () => this.#choose(null));
    canvas.addEventListener("keydown", (event) => this.#step(event));
    canvas.addEventListener("blur", () => this.#choose(null));
  }

  clear() {
    this.map = null;
    this.cell = null;
    this.caption.textContent = "";
    this.canvas.getContext("2d").clearRect(0, 0, this.canvas.width, this.canvas.height);
  }

  show(map) {
    this.map = { ...map, size: map.tokens.length, weights: unpack(map.weights) };
    this.scale = Math.max(1, Math.floor(SIDE / this.map.size));
    this.canvas.width = this.canvas.height = this.map.size * this.scale;
    this.picture = this.#picture();
    this.#choose(null);
  }

  #picture() {
    const { size, weights } = this.map;
    const small = new OffscreenCanvas(size, size);
    const context = small.getContext("2d");
    const image = context.createImageData(size, size);
    weights.forEach((weight, i) => {
      DARK.forEach((dark, c) => {
        image.data[4 * i + c] = Math.round(255 + ((dark - 255) * weight) / FULL);
      });
      image.data[4 * i + 3] = 255;
    });
    context.putImageData(image, 0, 0);
    return small;
  }

  #draw() {
    const { canvas, scale } = this;
    const context = canvas.getContext("2d");
    context.imageSmoothingEnabled = false;
    context.drawImage(this.picture, 0, 0, canvas.width, canvas.height);
    if (this.map.boundary !== null) {
      const at = this.map.boundary * scale;
      context.strokeStyle = BOUNDARY;
      context.lineWidth = 3;
      context.setLineDash([12, 9]);
      context.beginPath();
      context.moveTo(at, 0);
      context.lineTo(at, canvas.height);
      context.moveTo(0, at);
      context.lineTo(canvas.width, at);
      context.stroke();
    }
    if (this.cell) {
      const wide = Math.max(scale, 12); // the cells of long texts are too small for a frame
      const middle = (index) => (index + 0.5) * scale - wide / 2;
      context.setLineDash([]);
      context.strokeStyle = BOUNDARY;
      context.lineWidth = 4;
      context.strokeRect(middle(this.cell.column), middle(this.cell.row), wide, wide);
    }
  }

  #choose(cell) {
    this.cell = cell;
    if (!this.map) return;
    this.#draw();
    if (!cell) {
      this.caption.textContent = "Point at a cell to see its tokens.";
      return;
    }
    const { tokens, weights, peak, size } = this.map;
    const weight = (weights[cell.row * size + cell.column] / FULL) * peak;
    // textContent, never HTML: tokens come from text files and can be anything.
    this.caption.textContent =
      `${tokens[cell.row]} → ${tokens[cell.column]}: ${weight.toFixed(3)} ` +
      `(row ${cell.row + 1}, column ${cell.column + 1} of ${size})`;
  }

  #point(event) {
    if (!this.map) return;
    const box = this.canvas.getBoundingClientRect();
    const index = (at, start, length) =>
      Math.min(this.map.size - 1, Math.max(0, Math.floor(((at - start) / length) * this.map.size)));
    this.#choose({
      row: index(event.clientY, box.top, box.height),
      column: index(event.clientX, box.left, box.width),
    });
  }

  #step(event) {
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const step = steps[event.key];
    if (!step || !this.map) return;
    event.preventDefault();
    const within = (index) => Math.min(this.map.size - 1, Math.max(0, index));
    const { row, column } = this.cell ?? { row: -step[0], column: -step[1] };
    this.#choose({ row: within(row + step[0]), column: within(column + step[1]) });
  }
}
