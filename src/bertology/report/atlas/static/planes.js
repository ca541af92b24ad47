// Figures whose points can be walked over: one plane at a time, of a table of the page.

const METHODS = { pca: "PCA", "t-sne": "t-SNE", umap: "UMAP" };

function planeValue(column, value) {
  if (column === "layer" && value === -1) return "embeddings";
  return METHODS[value] ?? String(value);
}

function startPlanes() {
  for (const host of document.querySelectorAll("[data-points]")) fillPlane(host, JSON.parse(host.dataset.points));
}

function fillPlane(host, columns) {
  const table = tableOf(host.dataset.table);
  const column = (name) => table.values[table.columns.indexOf(name)];
  const keys = columns.planes.map(column);
  const rows = new Map(); // plane -> its rows
  keys[0].forEach((_, row) => {
    const key = JSON.stringify(keys.map((values) => values[row]));
    if (!rows.has(key)) rows.set(key, []);
    rows.get(key).push(row);
  });
  const known = [...rows.keys()].map((key) => JSON.parse(key));
  // The last layer of the first word: embeddings know no context, so that they show little of what the text says.
  const same = (key) => key.every((value, i) => columns.planes[i] === "layer" || value === known[0][i]);
  let now = known.filter(same).at(-1);
  const plane = new Plane({ noun: inWords(columns.group), of: "points" });
  const picks = columns.planes.map((name, i) => {
    const values = [...new Set(known.map((key) => key[i]))];
    const options = values.map((value, n) => make("option", { value: n }, planeValue(name, value)));
    const pick = make("select", { disabled: values.length < 2 }, ...options);
    pick.addEventListener("change", () => turn(i, values[Number(pick.value)]));
    return { pick, values, label: make("label", {}, titled(name), pick) };
  });

  // Not every word has every layer and method: the plane that shares most with the last one is shown.
  function turn(i, value) {
    const shared = (key) => key.filter((v, j) => v === now[j]).length;
    const fitting = known.filter((key) => key[i] === value);
    now = fitting.reduce((best, key) => (shared(key) > shared(best) ? key : best));
    draw();
  }

  const title = () =>
    now.map((value, i) => (columns.planes[i] === "layer" && value !== -1 ? "layer " : "") + planeValue(columns.planes[i], value)).join(", ");

  function draw() {
    picks.forEach(({ pick, values }, i) => (pick.value = values.indexOf(now[i])));
    const own = rows.get(JSON.stringify(now));
    const of = (name) => own.map((row) => column(name)[row]);
    plane.show({
      x: of(columns.x), y: of(columns.y), groups: of(columns.group).map(String), texts: of(columns.text).map(String),
      starts: of(columns.start), ends: of(columns.end),
    }, title());
  }

  host.replaceChildren(make("div", { class: "choose" }, ...picks.map(({ label }) => label)), plane.element);
  draw();
  host.closest("figure").querySelector(".buttons").append(
    ...pictureButtons(host.dataset.name, () => pictureSvg(plane.picture(`${title()}: ${data.model}`))));
}

// Shapes as an SVG file.
function pictureSvg({ width, height, shapes }) {
  const drawn = {
    line: ({ x1, y1, x2, y2, stroke, width: wide }) => make("svg:line", { x1, y1, x2, y2, stroke, "stroke-width": wide }),
    text: ({ x, y, value, size, fill, bold }) => svgText(x, y, value, { "font-size": size, fill, "font-weight": bold ? "bold" : null }),
    path: ({ x, y, d, scale, fill }) =>
      make("svg:path", { d, fill, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${scale})`, stroke: "#fff", "stroke-width": 0.15 }),
  };
  const frame = { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "sans-serif" };
  const inside = shapes.map((shape) => drawn[shape.kind](shape));
  return new XMLSerializer().serializeToString(
    make("svg:svg", frame, svgBox(0, 0, width, height, { fill: "#fff" }), ...inside));
}
