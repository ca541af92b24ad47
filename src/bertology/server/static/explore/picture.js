// Pictures to save: the same shapes as SVG (for papers) and as PNG, always on white.

import { PRINTED } from "./colour.js";
import { legible } from "./letters.js";
import { linesOf, rowHeight } from "./lines.js";

const INK = "#1c1f24";
const QUIET = "#565b63";
const MARK = "#d55e00";
const FONT = "DejaVu Sans, Helvetica, Arial, Noto Sans, sans-serif";
const LETTER = 6.6; // about so many pixels, at the size of labels
const widest = (tokens) => Math.max(40, 14 + LETTER * Math.max(...tokens.map((token) => token.length)));

const text = (x, y, value, more = {}) => ({ kind: "text", x, y, value, size: 11, fill: INK, ...more });

export function matrixPicture(map, title, full, filter) {
  const cell = map.size > 40 ? 11 : 18;
  const margin = Math.round(widest(map.tokens));
  const [left, top] = [margin, 36 + margin];
  const isWanted = (i) =>
    !filter || filter.token === (filter.direction === "from" ? Math.floor(i / map.size) : i % map.size);
  const side = cell * map.size;
  const shapes = [text(8, 22, title, { size: 14, bold: true })];
  map.weights.forEach((weight, i) => {
    const [x, y] = [left + (i % map.size) * cell, top + Math.floor(i / map.size) * cell];
    shapes.push({ kind: "rect", x, y, width: cell, height: cell, fill: PRINTED.css(isWanted(i) ? weight / full : 0) });
  });
  map.tokens.forEach((token, i) => {
    const middle = (i + 0.5) * cell;
    shapes.push(text(left - 5, top + middle + 4, token, { anchor: "end" }));
    shapes.push(text(left + middle + 4, top - 5, token, { turn: -90 }));
  });
  if (map.boundary !== null) {
    const at = map.boundary * cell;
    const dashed = { kind: "line", stroke: MARK, width: 1.5, opacity: 1, dashed: true };
    shapes.push({ ...dashed, x1: left, y1: top + at, x2: left + side, y2: top + at });
    shapes.push({ ...dashed, x1: left + at, y1: top, x2: left + at, y2: top + side });
  }
  shapes.push(...legend(left, top + side + 14, full));
  return { width: Math.max(left + side + 16, 420), height: top + side + 52, shapes };
}

export function linesPicture(map, title, full, filter) {
  const row = rowHeight(map.size);
  const wide = Math.round(widest(map.tokens));
  const [left, right, top] = [wide, wide + 260, 40];
  const shapes = [text(8, 22, title, { size: 14, bold: true })];
  for (const { row: from, column: to, share } of linesOf(map, filter, full)) {
    const [y1, y2] = [top + (from + 0.5) * row, top + (to + 0.5) * row];
    const look = { stroke: PRINTED.lines, width: 0.6 + 2 * share, opacity: share };
    shapes.push({ kind: "line", x1: left, y1, x2: right, y2, ...look });
  }
  map.tokens.forEach((token, i) => {
    const y = top + (i + 0.5) * row + 4;
    shapes.push(text(left - 6, y, token, { anchor: "end" }), text(right + 6, y, token));
  });
  const note = `A line of full strength is ${(100 * full).toFixed(1)} % of a token’s attention.`;
  shapes.push(text(8, top + row * map.size + 22, note, { fill: QUIET }));
  return { width: Math.max(right + wide, 420), height: top + row * map.size + 36, shapes };
}

function legend(x, y, full) {
  const steps = Array.from({ length: 60 }, (_, i) => ({
    kind: "rect", x: x + 2 * i, y, width: 2, height: 9, fill: PRINTED.css(i / 59),
  }));
  const most = `${(100 * full).toFixed(1)} % of a token’s attention`;
  return [...steps, text(x, y + 22, "0 %", { fill: QUIET }), text(x + 126, y + 9, most, { fill: QUIET })];
}

export function gridPicture(maps, title) {
  const [cell, gap, left, top] = [72, 6, 60, 62];
  const shapes = [text(8, 22, title, { size: 14, bold: true })];
  for (let layer = 0; layer < maps.layers; layer += 1) {
    const y = top + layer * (cell + gap);
    shapes.push(text(left - 8, y + cell / 2 + 4, `layer ${layer}`, { anchor: "end", fill: QUIET }));
    for (let head = 0; head < maps.heads; head += 1) {
      const x = left + head * (cell + gap);
      shapes.push({ kind: "image", x, y, side: cell, image: small(maps, layer, head) });
    }
  }
  for (let head = 0; head < maps.heads; head += 1) {
    const x = left + head * (cell + gap) + cell / 2;
    shapes.push(text(x, top - 8, `head ${head}`, { anchor: "middle", fill: QUIET }));
  }
  const height = top + maps.layers * (cell + gap);
  shapes.push(text(left, height + 16, "Each map from 0 % (pale) to its own maximum (dark). Layers and heads are numbered from 0.", { fill: QUIET }));
  return { width: left + maps.heads * (cell + gap) + 10, height: height + 30, shapes };
}

function small(maps, layer, head) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = maps.size;
  const context = canvas.getContext("2d");
  const image = context.createImageData(maps.size, maps.size);
  const pixels = new Uint32Array(image.data.buffer);
  maps.of(layer, head).forEach((byte, i) => {
    pixels[i] = PRINTED.pixels[byte];
  });
  context.putImageData(image, 0, 0);
  return canvas;
}

const escaped = (value) =>
  String(value).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

const SVG = {
  rect: (s) => `<rect x="${s.x}" y="${s.y}" width="${s.width}" height="${s.height}" fill="${s.fill}"/>`,
  line: (s) =>
    `<line x1="${s.x1}" y1="${s.y1}" x2="${s.x2}" y2="${s.y2}" stroke="${s.stroke}" ` +
    `stroke-width="${s.width.toFixed(2)}" stroke-opacity="${s.opacity.toFixed(3)}"` +
    `${s.dashed ? ' stroke-dasharray="5 4"' : ""}/>`,
  text: (s) =>
    `<text x="${s.x}" y="${s.y}" font-size="${s.size}" fill="${s.fill}" text-anchor="${s.anchor ?? "start"}"` +
    `${s.bold ? ' font-weight="bold"' : ""}` +
    `${s.turn ? ` transform="rotate(${s.turn} ${s.x} ${s.y})"` : ""}>${escaped(s.value)}</text>`,
  path: (s) =>
    `<path d="${s.d}" fill="${s.fill}" stroke="#ffffff" stroke-width="0.15" ` +
    `transform="translate(${s.x.toFixed(1)} ${s.y.toFixed(1)}) scale(${s.scale})"/>`,
  image: (s) =>
    `<image x="${s.x}" y="${s.y}" width="${s.side}" height="${s.side}" ` +
    `image-rendering="pixelated" href="${s.image.toDataURL()}"/>`,
};

export function toSvg({ width, height, shapes }) {
  const drawn = shapes.map((shape) => SVG[shape.kind](shape)).join("\n");
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ` +
    `viewBox="0 0 ${width} ${height}" font-family="${FONT}" shape-rendering="auto">\n` +
    `<rect width="${width}" height="${height}" fill="#ffffff"/>\n${drawn}\n</svg>\n`
  );
}

const DRAW = {
  rect(context, s) {
    context.fillStyle = s.fill;
    context.fillRect(s.x, s.y, s.width, s.height);
  },
  line(context, s) {
    context.strokeStyle = s.stroke;
    context.globalAlpha = s.opacity;
    context.lineWidth = s.width;
    context.setLineDash(s.dashed ? [5, 4] : []);
    context.beginPath();
    context.moveTo(s.x1, s.y1);
    context.lineTo(s.x2, s.y2);
    context.stroke();
  },
  text(context, s) {
    context.font = `${s.bold ? "bold " : ""}${s.size}px ${FONT}`;
    context.fillStyle = s.fill;
    context.textAlign = { start: "left", middle: "center", end: "right" }[s.anchor ?? "start"];
    context.translate(s.x, s.y);
    context.rotate(((s.turn ?? 0) * Math.PI) / 180);
    context.fillText(legible(s.value), 0, 0); // an SVG keeps the letters: its reader may have a font
  },
  path(context, s) {
    const outline = new Path2D(s.d);
    context.translate(s.x, s.y);
    context.scale(s.scale, s.scale);
    context.fillStyle = s.fill;
    context.strokeStyle = "#ffffff";
    context.lineWidth = 0.15;
    context.fill(outline);
    context.stroke(outline);
  },
  image(context, s) {
    context.imageSmoothingEnabled = false;
    context.drawImage(s.image, s.x, s.y, s.side, s.side);
  },
};

export function toPng({ width, height, shapes }) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * width, 2 * height]; // twice the size, so that prints are sharp
  const context = canvas.getContext("2d");
  context.scale(2, 2);
  context.fillStyle = "#ffffff";
  context.fillRect(0, 0, width, height);
  for (const shape of shapes) {
    context.save();
    DRAW[shape.kind](context, shape);
    context.restore();
  }
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}
