// Points in a plane, with a colour and a shape for each group: read by mouse, by touch and by keyboard.
// The atlas and the explorer share this file. Texts come from anywhere and are only ever set as text.

// The same colours and shapes, in the same order, as in figures/points.py; on dark pages lighter ones.
const LIGHT = ["#0072b2", "#c25400", "#007a5a", "#b0568a", "#3d3d3d", "#8a6d00", "#5a4fb5"];
const DARK = ["#6cb6f0", "#ff9a4d", "#4fd0a5", "#eaa5cd", "#dddddd", "#e3c565", "#b9b3ff"];
const [OTHER_LIGHT, OTHER_DARK] = ["#6b6b6b", "#a3abb5"];
const NAMED = 10; // groups that look like no other; the rest are small dots

// Outlines of radius 1: lines between corners, or a circle.
const round = (n) => Math.round(1000 * n) / 1000;
const star = (corners, inner, turn) =>
  Array.from({ length: corners * (inner ? 2 : 1) }, (_, i) => {
    const angle = (2 * Math.PI * i) / (corners * (inner ? 2 : 1)) + turn;
    const radius = inner && i % 2 ? inner : 1.15;
    return [round(radius * Math.cos(angle)), round(radius * Math.sin(angle))];
  });
const UP = -Math.PI / 2;
const PLUS = [[-0.35, -1], [0.35, -1], [0.35, -0.35], [1, -0.35], [1, 0.35], [0.35, 0.35], [0.35, 1], [-0.35, 1],
  [-0.35, 0.35], [-1, 0.35], [-1, -0.35], [-0.35, -0.35]];
const turned = (corners) => corners.map(([x, y]) => [round((x - y) * 0.707), round((x + y) * 0.707)]);
const outline = (corners) => `M${corners.map((corner) => corner.join(" ")).join("L")}Z`;
const CIRCLE = "M1 0A1 1 0 1 1 -1 0A1 1 0 1 1 1 0Z";
const SHAPES = [
  CIRCLE, outline(star(3, 0, UP)), outline(star(4, 0, Math.PI / 4)), outline(star(4, 0, 0)),
  outline(star(3, 0, -UP)), outline(PLUS), outline(turned(PLUS)), outline(star(5, 0.5, UP)),
];
const lookOf = (rank, isDark) =>
  rank < NAMED
    ? { d: SHAPES[rank % SHAPES.length], colour: (isDark ? DARK : LIGHT)[rank % LIGHT.length], size: 1 }
    : { d: CIRCLE, colour: isDark ? OTHER_DARK : OTHER_LIGHT, size: 0.55 };

function node(name, settings = {}, ...inside) {
  const isDrawn = ["svg", "path"].includes(name);
  const made = isDrawn ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(settings)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  made.append(...inside);
  return made;
}

const EDGE = 14; // pixels between the outermost points and the frame
const NEAR = 14; // pixels at which a point is under the mouse
const SAME = 0.5; // pixels: marks that lie on each other, such as embeddings of one word at one position
const STEP = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
const ABOUT = 60; // characters beside the marked word in the label at a point
const scheme = matchMedia("(prefers-color-scheme: dark)");
const paper = matchMedia("print");
let planes = 0; // for ids

// Groups with their numbers of points, the largest first.
function ranked(groups) {
  const counts = new Map();
  for (const group of groups) counts.set(group, (counts.get(group) ?? 0) + 1);
  const order = ([a, n], [b, m]) => m - n || (a < b ? -1 : 1);
  return [...counts].sort(order).map(([name, count]) => ({ name, count }));
}

// A text with its marked part; `most` characters on each side, or all of it.
function marked(text, start, end, most = Infinity) {
  if (start === null || end === null) return [text];
  const letters = [...text]; // places count characters, as Python does
  const [from, to] = [Math.max(0, start - most), Math.min(letters.length, end + most)];
  const piece = (a, b) => letters.slice(a, b).join("");
  return [
    `${from > 0 ? "…" : ""}${piece(from, start)}`,
    node("mark", {}, piece(start, end)),
    `${piece(end, to)}${to < letters.length ? "…" : ""}`,
  ];
}

// Words in lines of at most so many characters.
const lines = (text, most) => text.match(new RegExp(`\\S.{0,${most - 1}}(?=\\s|$)`, "gu")) ?? [];

export class Plane {
  #points = null; // { x, y, groups, texts, starts, ends }
  #groups = []; // { name, count }, the largest first
  #rank = []; // of each point's group
  #hidden = new Set(); // names of groups
  #place = []; // pixels of each point
  #chosen = null;
  #base = document.createElement("canvas"); // all points, without the chosen one

  // Set `onread` to hear of each text that is read; null: none. `noun` is what a group is called, such as "sense"; `of` what points are, such as "occurrences".
  constructor({ noun = "group", of = "points" } = {}) {
    Object.assign(this, { noun, of });
    planes += 1;
    const keys = `plane-keys-${planes}`;
    this.legend = node("div", { class: "plane-legend", role: "group" });
    this.canvas = node("canvas", { tabindex: "0", role: "application", "aria-describedby": keys });
    this.label = node("div", { class: "plane-label", "aria-hidden": "true", hidden: "" });
    this.readout = node("p", { class: "plane-readout", "aria-live": "polite" });
    this.help = node("p", { class: "plane-keys", id: keys });
    this.frame = node("div", { class: "plane-frame" }, this.canvas, this.label);
    this.element = node("div", { class: "plane" }, this.legend, this.frame, this.readout, this.help);
    this.canvas.addEventListener("pointermove", (event) => this.#point(event));
    this.canvas.addEventListener("pointerdown", (event) => this.#point(event));
    this.canvas.addEventListener("pointerleave", () => (this.label.hidden = true));
    this.canvas.addEventListener("keydown", (event) => this.#press(event));
    this.canvas.addEventListener("blur", () => (this.label.hidden = true));
    new ResizeObserver(() => this.#lay()).observe(this.frame);
    for (const media of [scheme, paper]) media.addEventListener("change", () => this.#restyle());
  }

  // Other points; the same one stays chosen where texts are the same, as in another layer.
  show(points, name) {
    const same = this.#points && this.#points.texts.length === points.texts.length &&
      this.#points.texts.every((text, i) => text === points.texts[i] && points.starts[i] === this.#points.starts[i]);
    const words = this.#groups.map((group) => group.name).join("\n");
    this.#points = points;
    this.name = name;
    this.#groups = ranked(points.groups);
    const ranks = new Map(this.#groups.map((group, i) => [group.name, i]));
    this.#rank = points.groups.map((group) => ranks.get(group));
    if (words !== this.#groups.map((group) => group.name).join("\n")) this.#hidden.clear();
    if (!same) this.#chosen = null;
    this.#restyle();
    this.#tell();
  }

  // What is drawn, for files: shapes on white paper, the legend below.
  picture(title, note = "") {
    const [width, side, top] = [640, 440, 34];
    const text = (x, y, value, more = {}) => ({ kind: "text", x, y, value, size: 11, fill: "#222222", ...more });
    const shapes = [text(10, 20, title, { size: 13, bold: true })];
    const frame = [[0, 0, 1, 0], [1, 0, 1, 1], [1, 1, 0, 1], [0, 1, 0, 0]];
    const line = { kind: "line", stroke: "#6b6b6b", width: 0.8, opacity: 1 };
    for (const [x1, y1, x2, y2] of frame) {
      const [left, right] = [10, width - 20];
      shapes.push({ ...line, x1: left + x1 * right, y1: top + y1 * side, x2: left + x2 * right, y2: top + y2 * side });
    }
    const radius = this.#radius();
    const places = this.#places(width - 20, side);
    for (const i of this.#inOrder()) {
      const { d, colour, size } = lookOf(this.#rank[i], false);
      shapes.push({ kind: "path", x: 10 + places[i][0], y: top + places[i][1], d, scale: radius * size, fill: colour });
    }
    let y = top + side + 20;
    for (const { label, rank, isShown } of this.#entries()) {
      if (!isShown) continue;
      const { d, colour, size } = lookOf(rank, false);
      shapes.push({ kind: "path", x: 18, y: y - 4, d, scale: 4.5 * size, fill: colour }, text(30, y, label));
      y += 16;
    }
    for (const line of lines(note, 104)) shapes.push(text(10, (y += 14) - 10, line, { fill: "#555555", size: 10 }));
    return { width, height: y + 8, shapes };
  }

  // ---- groups --------------------------------------------------------------------------------

  // One for each named group, and one for all others together.
  #entries() {
    const told = (name) => name || "no name";
    const found = this.#groups.slice(0, NAMED).map(({ name, count }, rank) => ({
      names: [name], rank, label: `${told(name)} (${count})`, isShown: !this.#hidden.has(name),
    }));
    const rest = this.#groups.slice(NAMED);
    if (rest.length) {
      const count = rest.reduce((sum, group) => sum + group.count, 0);
      const names = rest.map((group) => group.name);
      found.push({ names, rank: NAMED, label: `${rest.length} others (${count})`, isShown: !this.#hidden.has(names[0]) });
    }
    return found;
  }

  #showLegend() {
    const entries = this.#entries();
    const active = [...this.legend.children].indexOf(document.activeElement);
    const buttons = entries.map(({ names, rank, label, isShown }) => {
      const { d, colour, size } = lookOf(rank, this.#isDark);
      const sign = node("svg", { viewBox: "-1.3 -1.3 2.6 2.6", "aria-hidden": "true" },
        node("path", { d, fill: colour, transform: `scale(${size})` }));
      const turn = () => this.#hide(names, isShown);
      return node("button", { type: "button", "aria-pressed": String(isShown), onclick: turn }, sign, node("span", {}, label));
    });
    if (entries.length > 1) {
      const some = entries.some(({ isShown }) => isShown);
      const all = this.#groups.map((group) => group.name);
      buttons.push(node("button", { type: "button", class: "plane-all", onclick: () => this.#hide(all, some) },
        some ? "Hide all" : "Show all"));
    }
    this.legend.replaceChildren(...buttons);
    if (active >= 0) this.legend.children[Math.min(active, buttons.length - 1)].focus(); // they are new ones
  }

  #hide(names, isHidden) {
    for (const name of names) {
      if (isHidden) this.#hidden.add(name);
      else this.#hidden.delete(name);
    }
    if (this.#chosen !== null && !this.#isShown(this.#chosen)) this.#choose(null);
    this.#restyle();
    this.#tell(); // fewer marks, or more, lie where the chosen one does
  }

  #isShown(i) {
    return !this.#hidden.has(this.#points.groups[i]);
  }

  // ---- drawing -------------------------------------------------------------------------------

  get #isDark() {
    return scheme.matches && !paper.matches;
  }

  #radius() {
    const { length } = this.#points.x;
    return length < 150 ? 6 : length < 600 ? 4.5 : 3.4;
  }

  // One scale for both axes, so that distances can be compared.
  #places(width, height) {
    const { x, y } = this.#points;
    const ends = (values) => values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);
    const [[left, right], [low, high]] = [ends(x), ends(y)];
    const room = [width - 2 * EDGE, height - 2 * EDGE];
    const scale = Math.min(room[0] / (right - left || 1e-9), room[1] / (high - low || 1e-9), 1e12);
    const shift = [(width - scale * (right - left)) / 2, (height - scale * (high - low)) / 2];
    return x.map((value, i) => [shift[0] + scale * (value - left), shift[1] + scale * (high - y[i])]);
  }

  // Those that are shown; small groups lie on top of large ones.
  #inOrder() {
    const shown = this.#rank.map((_, i) => i).filter((i) => this.#isShown(i));
    return shown.sort((a, b) => this.#rank[a] - this.#rank[b]);
  }

  #restyle() {
    if (!this.#points) return;
    const { length } = this.#points.x;
    const many = this.#groups.length;
    this.canvas.setAttribute("aria-label",
      `${this.name}: ${length} ${this.of} in a plane, ${many} ${this.noun}${many === 1 ? "" : "s"}`);
    this.legend.setAttribute("aria-label", `Show or hide by ${this.noun}`);
    this.help.textContent =
      "Point at a mark to read it. Keys: arrows go to the nearest mark in their direction, Page Down and Page Up " +
      `to the next of the same ${this.noun}, Home and End to the first and last of it, Escape to none.`;
    this.#showLegend();
    this.#lay();
  }

  #lay() {
    const width = this.frame.clientWidth;
    if (!this.#points || !width) return; // not seen yet
    const height = Math.round(Math.min(Math.max(0.66 * width, 260), 520));
    const dense = window.devicePixelRatio || 1;
    for (const canvas of [this.canvas, this.#base]) {
      [canvas.width, canvas.height] = [Math.round(width * dense), Math.round(height * dense)];
    }
    this.canvas.style.height = `${height}px`;
    this.#place = this.#places(width, height);
    const pen = this.#base.getContext("2d");
    pen.scale(dense, dense);
    pen.strokeStyle = getComputedStyle(this.frame).backgroundColor; // parts marks that overlap
    const outlines = new Map();
    for (const i of this.#inOrder()) this.#mark(pen, i, this.#radius(), outlines);
    this.#paint();
  }

  #mark(pen, i, radius, outlines = new Map()) {
    const { d, colour, size } = lookOf(this.#rank[i], this.#isDark);
    if (!outlines.has(d)) outlines.set(d, new Path2D(d));
    const [x, y] = this.#place[i];
    pen.save();
    pen.translate(x, y);
    pen.scale(radius * size, radius * size);
    pen.fillStyle = colour;
    pen.lineWidth = 0.7 / radius;
    pen.fill(outlines.get(d));
    pen.stroke(outlines.get(d));
    pen.restore();
  }

  #paint() {
    const pen = this.canvas.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.drawImage(this.#base, 0, 0);
    if (this.#chosen === null || !this.#place[this.#chosen]) return;
    const dense = window.devicePixelRatio || 1;
    pen.scale(dense, dense);
    const look = getComputedStyle(this.frame);
    const [x, y] = this.#place[this.#chosen];
    pen.strokeStyle = look.backgroundColor;
    this.#mark(pen, this.#chosen, 1.7 * this.#radius());
    pen.strokeStyle = look.color;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.arc(x, y, 2.1 * this.#radius() + 3, 0, 2 * Math.PI);
    pen.stroke();
  }

  // ---- reading -------------------------------------------------------------------------------

  // How many marks lie where this one does, by group; nothing where it lies alone.
  #crowd(i) {
    if (!this.#place[i]) return [];
    const [x, y] = this.#place[i];
    const here = this.#inOrder().filter((j) => Math.hypot(this.#place[j][0] - x, this.#place[j][1] - y) < SAME);
    if (here.length < 2) return [];
    const parts = ranked(here.map((j) => this.#points.groups[j])).map(({ name, count }) => `${count} ${name || "no name"}`);
    return [node("small", {}, ` (${here.length} marks lie here: ${parts.join(", ")})`)];
  }

  #tell() {
    const i = this.#chosen;
    if (i === null) {
      this.readout.textContent = "";
      this.label.hidden = true;
      this.onread?.(null);
      return;
    }
    const { groups, texts, starts, ends } = this.#points;
    const group = node("b", {}, groups[i] || "no name");
    this.readout.replaceChildren(group, ": ", node("bdi", {}, ...marked(texts[i], starts[i], ends[i])), ...this.#crowd(i));
    this.onread?.(texts[i]);
  }

  #labelAt() {
    const i = this.#chosen;
    const [x, y] = this.#place[i];
    const { groups, texts, starts, ends } = this.#points;
    this.label.replaceChildren(node("b", {}, groups[i] || "no name"),
      node("span", { dir: "auto" }, ...marked(texts[i], starts[i], ends[i], ABOUT), ...this.#crowd(i)));
    this.label.hidden = false;
    const { clientWidth: width, clientHeight: height } = this.frame;
    const [wide, high] = [this.label.offsetWidth, this.label.offsetHeight];
    const below = y + 14 + high < height;
    this.label.style.left = `${Math.max(0, Math.min(x - wide / 2, width - wide))}px`;
    this.label.style.top = `${below ? y + 14 : Math.max(0, y - 14 - high)}px`;
  }

  #choose(i) {
    if (i === this.#chosen && !this.label.hidden) return;
    this.#chosen = i;
    this.#tell();
    this.#paint();
    if (i !== null) this.#labelAt();
  }

  // The nearest to a place of those that `fits` allows, of equally near ones that on top; null if there is none.
  #nearest([x, y], fits, most = Infinity) {
    let [best, least] = [null, most];
    for (const i of this.#inOrder().reverse()) {
      const [dx, dy] = [this.#place[i][0] - x, this.#place[i][1] - y];
      const apart = Math.hypot(dx, dy);
      if (apart < least && fits(dx, dy)) [best, least] = [i, apart];
    }
    return best;
  }

  #point({ offsetX, offsetY }) {
    if (!this.#points) return;
    const found = this.#nearest([offsetX, offsetY], () => true, NEAR);
    if (found === null) this.label.hidden = true;
    else this.#choose(found);
  }

  #press(event) {
    if (!this.#points || event.ctrlKey || event.metaKey || event.altKey) return;
    const found = event.key === "Escape" ? null : this.#from(event.key);
    if (found === undefined || (event.key === "Escape" && this.#chosen === null)) return;
    event.preventDefault();
    this.#choose(found);
  }

  // Where a key leads; undefined if nowhere.
  #from(key) {
    const here = this.#chosen;
    if (key in STEP) {
      const [right, down] = STEP[key];
      const { clientWidth: width, clientHeight: height } = this.frame;
      if (here === null) return this.#nearest([width / 2, height / 2], () => true) ?? undefined;
      const ahead = (dx, dy) => dx * right + dy * down;
      const aside = (dx, dy) => Math.abs(dx * down) + Math.abs(dy * right);
      const at = this.#place[here];
      return this.#nearest(at, (dx, dy) => ahead(dx, dy) > 0 && aside(dx, dy) <= ahead(dx, dy)) ??
        this.#nearest(at, (dx, dy) => ahead(dx, dy) > 0) ?? here;
    }
    const order = this.#inOrder();
    const own = here === null ? order : order.filter((i) => this.#rank[i] === this.#rank[here]);
    const next = { PageDown: own.indexOf(here) + 1, PageUp: own.indexOf(here) - 1, Home: 0, End: own.length - 1 }[key];
    return next === undefined || !own.length ? undefined : own[Math.max(0, Math.min(next, own.length - 1))];
  }
}
