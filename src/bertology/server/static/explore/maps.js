// All attention maps of one text, as the server packs them: a length, a header, and one byte for
// each weight.

// If all weights are equal, every cell is the maximum, and the map would look dark. It has no
// pattern, so it must not look as if it had one.
const isFlat = (weights, peak) => weights.every((weight) => weight > 0.95 * peak);

export class Maps {
  constructor(buffer) {
    const length = new DataView(buffer).getUint32(0, true);
    const header = new TextDecoder().decode(new Uint8Array(buffer, 4, length));
    Object.assign(this, JSON.parse(header));
    this.bytes = new Uint8Array(buffer, 4 + length);
    this.originals ??= this.tokens;
    this.pieces ??= this.tokens.map((_, i) => [i]);
    this.made = new Map();
  }

  get highest() {
    return Math.max(...this.peaks);
  }

  of(layer, head) {
    const cells = this.size * this.size;
    const index = layer * this.heads + head;
    return this.bytes.subarray(index * cells, (index + 1) * cells);
  }

  // One map; if layer or head is null, the mean over all of them.
  map({ layer, head }) {
    const key = `${layer} ${head}`;
    if (!this.made.has(key)) this.made.set(key, this.#mean(layer, head));
    return this.made.get(key);
  }

  #mean(layer, head) {
    const layers = layer === null ? [...Array(this.layers).keys()] : [layer];
    const heads = head === null ? [...Array(this.heads).keys()] : [head];
    const peakOf = ([l, h]) => this.peaks[l * this.heads + h];
    // A pruned head has no attention and is left out of means.
    const used = layers.flatMap((l) => heads.map((h) => [l, h])).filter((place) => peakOf(place) > 0);
    const weights = new Float32Array(this.size * this.size);
    for (const place of used) {
      const scale = peakOf(place) / 255 / used.length;
      const bytes = this.of(...place);
      for (let i = 0; i < weights.length; i += 1) weights[i] += bytes[i] * scale;
    }
    return this.#describe(weights);
  }

  #describe(weights) {
    const { tokens, size, boundary } = this;
    const peak = weights.reduce((a, b) => Math.max(a, b), 0);
    return { tokens, size, boundary, weights, peak, full: isFlat(weights, peak) ? 1 : peak || 1 };
  }

  // The same map with 16 bits for each weight, which the server sends for one head at a time.
  refine({ layer, head }, { weights, peak }) {
    const bytes = Uint8Array.from(atob(weights), (c) => c.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    const exact = Float32Array.from(
      { length: bytes.length / 2 },
      (_, i) => (view.getUint16(2 * i, true) / 65535) * peak,
    );
    if (exact.length === this.size ** 2) this.made.set(`${layer} ${head}`, this.#describe(exact));
  }

  strongest(layer, head) {
    const bytes = this.of(layer, head);
    let best = 0;
    for (let i = 1; i < bytes.length; i += 1) if (bytes[i] > bytes[best]) best = i;
    const [row, column] = [Math.floor(best / this.size), best % this.size];
    return { row, column, weight: (bytes[best] / 255) * this.peaks[layer * this.heads + head] };
  }

  // The strongest link between two different words.
  strongestWords({ layer, head }) {
    const bytes = this.of(layer, head);
    const isWord = (i) => !this.special[i] && /\p{L}/u.test(this.originals[i]);
    let best = { row: 0, column: 0, byte: -1 };
    bytes.forEach((byte, i) => {
      const [row, column] = [Math.floor(i / this.size), i % this.size];
      if (byte > best.byte && row !== column && isWord(row) && isWord(column)) best = { row, column, byte };
    });
    const weight = (Math.max(0, best.byte) / 255) * this.peaks[layer * this.heads + head];
    return { from: this.originals[best.row], to: this.originals[best.column], weight };
  }

  // The head to show first: the one with most attention from masked words (or from all words) to
  // other words.
  mostTelling() {
    const isWord = (token, i) => !this.special[i] && /\p{L}/u.test(token);
    const words = this.originals.flatMap((token, i) => (isWord(token, i) ? [i] : []));
    const seen = words.filter((i) => !this.masked.includes(i));
    const rows = this.masked.length ? this.masked : words;
    let best = { layer: 0, head: 0, score: -1 };
    for (let layer = 0; layer < this.layers; layer += 1) {
      for (let head = 0; head < this.heads; head += 1) {
        const score = this.#decidedness(layer, head, rows, seen);
        if (score > best.score) best = { layer, head, score };
      }
    }
    return { layer: best.layer, head: best.head };
  }

  #columnMean(bytes, column) {
    let sum = 0;
    for (let at = column; at < bytes.length; at += this.size) sum += bytes[at];
    return sum / this.size;
  }

  #decidedness(layer, head, rows, columns) {
    const bytes = this.of(layer, head);
    const usual = columns.map((column) => this.#columnMean(bytes, column));
    let sum = 0;
    for (const row of rows) {
      let most = 0;
      columns.forEach((column, i) => {
        // Attention to neighbours depends on the position only, and what all tokens look at does not
        // depend on who looks: both say little about this word.
        const beyond = bytes[row * this.size + column] - usual[i];
        if (Math.abs(row - column) > 3) most = Math.max(most, beyond);
      });
      sum += most;
    }
    return (sum / (rows.length || 1)) * this.peaks[layer * this.heads + head];
  }
}
