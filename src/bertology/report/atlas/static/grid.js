// The grid of heads: a table for mouse and arrow keys, coloured by the measure that was chosen.

function buildGrid(host, { layers, heads, label, seen, opened, rows, columns, corner = "layer", axis = "head" }) {
  const cells = [];
  const top = make("tr", {}, make("th", { scope: "col", class: "corner" }, corner));
  for (let head = 0; head < heads; head += 1) top.append(make("th", { scope: "col" }, columns?.[head] ?? String(head)));
  const body = make("tbody", {});
  for (let layer = 0; layer < layers; layer += 1) {
    const row = make("tr", { role: "row" }, make("th", { scope: "row" }, rows?.[layer] ?? String(layer)));
    for (let head = 0; head < heads; head += 1) {
      const cell = make("td", { role: "gridcell", tabindex: cells.length ? "-1" : "0" });
      cells.push(cell);
      row.append(cell);
    }
    body.append(row);
  }
  const table = make("table", { class: "heads", role: "grid", "aria-label": label },
    make("thead", {}, top), body);
  table.style.setProperty("--heads", heads);
  host.replaceChildren(make("div", { class: "axis", "aria-hidden": "true" }, axis), table);

  const placeOf = (cell) => cells.indexOf(cell);
  const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };
  function focus(place) {
    cells.forEach((cell, i) => cell.setAttribute("tabindex", i === place ? "0" : "-1"));
    cells[place].focus();
  }
  table.addEventListener("keydown", (event) => {
    const place = placeOf(event.target);
    if (place < 0) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      opened(place);
    }
    let [layer, head] = [Math.floor(place / heads), place % heads];
    if (event.key in step) {
      layer = Math.min(Math.max(layer + step[event.key][0], 0), layers - 1);
      head = Math.min(Math.max(head + step[event.key][1], 0), heads - 1);
    } else if (event.key === "Home") head = 0;
    else if (event.key === "End") head = heads - 1;
    else return;
    event.preventDefault();
    focus(layer * heads + head);
  });
  const about = (event) => {
    const cell = event.target.closest?.("td");
    if (cell) seen(placeOf(cell));
  };
  table.addEventListener("mouseover", about);
  table.addEventListener("focusin", about);
  table.addEventListener("click", (event) => {
    const cell = event.target.closest("td");
    if (cell) opened(placeOf(cell));
  });
  return { table, cells, focus };
}

const named = (place, heads) => `Layer ${Math.floor(place / heads)}, head ${place % heads}`;

function paintGrid(grid, set, scale, heads) {
  const letters = set.kinds ? lettersOf(set.kinds) : null;
  const nameOf = set.nameOf ?? ((place) => named(place, heads));
  grid.cells.forEach((cell, place) => {
    const value = set.values[place];
    const { value: words, rest } = told(set, place);
    const sure = set.sure?.[place] === 1;
    cell.className = [value === null ? "none" : "", sure ? "sure" : ""].join(" ").trim();
    cell.setAttribute("aria-label", `${nameOf(place)}: ${words}${rest}${sure ? ", marked" : ""}`);
    cell.style.background = "";
    cell.replaceChildren();
    cell.removeAttribute("data-letters"); // shown by the style: the label says it in words
    if (value === null) return;
    const colour = set.kinds ? rgbOf(kindColour(value)) : colourOf(value, scale);
    cell.style.background = css(colour);
    cell.style.color = inkOn(colour);
    if (letters) cell.dataset.letters = letters[value] ?? "";
  });
}

function allAlike(set) {
  const there = set.values.filter((v) => v !== null);
  return there.length > 1 && there.every((v) => v === there[0]);
}

// The rank of a head among all: 1 is the highest value.
function rankOf(set, place) {
  const value = set.values[place];
  if (value === null || set.kinds) return null;
  return 1 + set.values.filter((other) => other !== null && other > value).length;
}
