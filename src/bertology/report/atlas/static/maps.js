// Attention maps from bytes: one byte for each weight, relative to the largest weight of the map.

function weightsOf(set) {
  if (!set.bytes) {
    const text = atob(set.weights);
    set.bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  }
  return set.bytes;
}

function mapOf(set, place) {
  const size = set.size * set.size;
  return weightsOf(set).subarray(place * size, (place + 1) * size);
}

// Maps are pictures of mostly nothing: on a dark page nothing is dark, and more is lighter.
const night = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => night.matches;
const more = () => (isDark() ? "Lighter" : "Darker");

function drawMap(canvas, set, place) {
  canvas.width = canvas.height = set.size;
  const pen = canvas.getContext("2d");
  const picture = pen.createImageData(set.size, set.size);
  const ramp = isDark() ? "night" : "sequential";
  mapOf(set, place).forEach((weight, i) => {
    picture.data.set([...mixed(ramp, weight / 255), 255], 4 * i);
  });
  pen.putImageData(picture, 0, 0);
  return canvas;
}

const peakOf = (set, place) => set.peaks[place] ?? 0;
const weightAt = (set, place, row, column) =>
  (mapOf(set, place)[row * set.size + column] / 255) * peakOf(set, place);

const LABELLED = 40; // tokens that have room for their names beside a map

// The mean maps of all heads in the cells of the grid.
function paintMaps(grid, set, heads) {
  grid.cells.forEach((cell, place) => {
    cell.className = "picture";
    cell.removeAttribute("data-letters");
    cell.style.background = "";
    cell.setAttribute("aria-label",
      `${named(place, heads)}: mean map, largest weight ${shown(peakOf(set, place))}`);
    cell.replaceChildren(drawMap(make("canvas", { "aria-hidden": "true" }), set, place));
  });
}

function meanFigure(set, place) {
  const where = (i) => `${Math.round((100 * (i + 0.5)) / set.size)} %`;
  const names = Array.from({ length: set.size }, (_, i) => where(i));
  return mapFigure(set, place, names, {
    title: "Mean map",
    about: `${set.label}, mean over ${set.examples} examples. Rows attend to columns, both from ` +
      "the start of the text (left, top) to its end.",
    label: `Mean attention map over ${set.examples} examples`,
  });
}

function exampleFigure(set, place) {
  return mapFigure(set, place, set.tokens, {
    title: "One text",
    about: "Rows attend to columns.",
    label: "Attention map of one text; rows attend to columns",
    tokens: set.tokens,
  });
}

// A map, and in words the cell under the mouse or the one chosen with arrow keys.
function mapFigure(set, place, names, { title, about, label, tokens = null }) {
  const canvas = drawMap(
    make("canvas", { tabindex: "0", role: "img", "aria-label": `${label}. Arrow keys move over its cells.` }),
    set, place);
  const start = `${more()} is more; the maximum is ${shown(peakOf(set, place))}. Point at a cell.`;
  const words = make("p", { class: "cell", "aria-live": "polite" }, start);
  let [row, column] = [0, 0];
  const read = () => {
    words.textContent = `${names[row]} → ${names[column]}: ${shown(weightAt(set, place, row, column))}`;
  };
  canvas.addEventListener("mousemove", (event) => {
    const box = canvas.getBoundingClientRect();
    const cell = (here, from, length) =>
      Math.min(Math.max(Math.floor(((here - from) / length) * set.size), 0), set.size - 1);
    row = cell(event.clientY, box.top, box.height);
    column = cell(event.clientX, box.left, box.width);
    read();
  });
  const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
  canvas.addEventListener("keydown", (event) => {
    if (!(event.key in step)) return;
    event.preventDefault();
    row = Math.min(Math.max(row + step[event.key][0], 0), set.size - 1);
    column = Math.min(Math.max(column + step[event.key][1], 0), set.size - 1);
    read();
  });
  const shownTokens = tokens && tokens.length <= LABELLED
    ? make("div", { class: "tokens" },
      make("div", { class: "columns", "aria-hidden": "true" }, ...tokens.map((t) => make("span", {}, t))),
      make("div", { class: "rows", "aria-hidden": "true" }, ...tokens.map((t) => make("span", {}, t))), canvas)
    : canvas;
  const text = tokens && tokens.length > LABELLED ? `${about} ${tokens.join(" ")}` : about;
  return make("figure", { class: shownTokens === canvas ? "attention" : "attention worded" }, shownTokens,
    make("figcaption", {}, make("b", {}, `${title}. `), text), words);
}
