// The grid as it is coloured now, with its title and legend, as a picture for a paper.

const SIDE = 24;
const [LEFT, TOP] = [34, 44];
const svgText = (x, y, text, more = {}) => make("svg:text", { x, y, ...more }, text);
const svgBox = (x, y, width, height, more) => make("svg:rect", { x, y, width, height, ...more });

function gridSvg(grid, set, scale, heads) {
  const layers = grid.cells.length / heads;
  const [width, height] = [Math.max(LEFT + heads * SIDE + 12, 420), TOP + layers * SIDE + 74];
  const look = { "font-family": "sans-serif", "font-size": 10, fill: "#222" };
  const frame = { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}` };
  const below = TOP + layers * SIDE + 18;
  const picture = make("svg:svg", { ...frame, ...look },
    svgBox(0, 0, width, height, { fill: "#fff" }),
    svgText(8, 16, set.title, { "font-weight": "bold", "font-size": 12 }),
    svgText(8, 29, `${data.model}, ${set.label}; rows: layers, columns: heads, from 0`, { fill: "#555" }),
    ...gridNumbers(layers, heads),
    ...grid.cells.map((cell, place) => gridCell(cell, place, set, heads)),
    ...(set.kinds ? kindsLegend(set, below) : scaleLegend(set, scale, below)));
  return new XMLSerializer().serializeToString(picture);
}

function gridNumbers(layers, heads) {
  const across = Array.from({ length: heads }, (_, i) =>
    svgText(LEFT + i * SIDE + SIDE / 2, TOP - 5, String(i), { "text-anchor": "middle" }));
  const down = Array.from({ length: layers }, (_, i) =>
    svgText(LEFT - 6, TOP + i * SIDE + SIDE / 2 + 4, String(i), { "text-anchor": "end" }));
  return [...across, ...down];
}

function gridCell(cell, place, set, heads) {
  const [x, y] = [LEFT + (place % heads) * SIDE, TOP + Math.floor(place / heads) * SIDE];
  const pieces = [svgBox(x, y, SIDE - 1, SIDE - 1, { fill: cell.style.background || "#bdbdbd" })];
  if (set.sure?.[place] === 1) {
    pieces.push(svgBox(x + 1.5, y + 1.5, SIDE - 4, SIDE - 4, { fill: "none", stroke: "#222" }));
  }
  if (cell.dataset.letters) {
    const centred = { "text-anchor": "middle", fill: cell.style.color };
    pieces.push(svgText(x + SIDE / 2 - 0.5, y + SIDE / 2 + 3.5, cell.dataset.letters, centred));
  }
  return make("svg:g", {}, ...pieces);
}

function kindsLegend(set, below) {
  return set.kinds.map((kind, i) => {
    const [x, y] = [LEFT + (i % 3) * 130, below + 16 * Math.floor(i / 3)];
    return make("svg:g", {}, svgBox(x, y, 10, 10, { fill: kindColour(i) }), svgText(x + 14, y + 9, kind));
  });
}

function scaleLegend(set, scale, below) {
  const range = scale.high - scale.low;
  const bar = Array.from({ length: 60 }, (_, i) =>
    svgBox(LEFT + 3 * i, below, 3.2, 10, { fill: css(mixed(scale.ramp, i / 59)) }));
  return [...bar,
    svgText(LEFT, below + 22, shownWithin(scale.low, range)),
    svgText(LEFT + 180, below + 22, shownWithin(scale.high, range), { "text-anchor": "end" }),
    svgText(LEFT + 192, below + 9, set.unit)];
}
