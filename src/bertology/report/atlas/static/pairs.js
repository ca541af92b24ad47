// Layers of one model against layers of another, where a study compared the two.

function startPairs() {
  const host = at("pairs-grid");
  if (!host) return;
  const twice = (grid) => data.layerPairs.filter((other) => other.title === grid.title).length > 1;
  const choice = make("select", { id: "pairs-measure" }, ...data.layerPairs.map((grid) =>
    make("option", { value: grid.id }, twice(grid) ? `${grid.title}, ${grid.label}` : grid.title)));
  at("pairs-choice").append(make("label", {}, "Measure", choice));
  const draw = () => drawLayers(host, data.layerPairs.find((grid) => grid.id === choice.value));
  choice.addEventListener("input", draw);
  draw();
}

function drawLayers(host, grid) {
  const [down, across] = data.sides;
  const wide = grid.columns.length;
  const layer = (name) => (name === "input" ? "the input" : `layer ${name}`);
  const nameOf = (place) =>
    `${down}, ${layer(grid.rows[Math.floor(place / wide)])}; ${across}, ${layer(grid.columns[place % wide])}`;
  const set = { ...grid, nameOf };
  const scale = { ramp: "sequential", low: Math.min(0, ...grid.values.filter((v) => v !== null)), high: 1, middle: null };
  const readout = make("p", { class: "readout" }, grid.reading);
  const say = (place) => { readout.textContent = `${nameOf(place)}: ${told(set, place).value}${told(set, place).rest}.`; };
  const place = make("div", {});
  const built = buildGrid(place, {
    layers: grid.rows.length, heads: wide, label: `${grid.title}: ${down} downwards, ${across} to the right`,
    rows: grid.rows.map(shortLayer), columns: grid.columns.map(shortLayer), corner: "", axis: across,
    seen: say, opened: say,
  });
  paintGrid(built, set, scale, wide);
  const note = `. Over ${grid.label}.`;
  host.replaceChildren(make("div", { class: "pane" }, make("h4", {}, `${grid.title}: ${down} downwards`),
    place, legendOf(set, scale, note), readout));
}

const shortLayer = (name) => (name === "input" ? "in" : name);
