// How many labels each annotator gave, and how well any two of them agree.

import { get } from "./server.js";

const at = (id) => document.getElementById(id);
const nameOf = (coder) => `${coder.annotator}, pass ${coder.pass}`;

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text; // people typed these names, so they are set as text, never as HTML
  Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
  return made;
}

function table(caption, columns, rows) {
  const made = document.createElement("table");
  made.append(element("caption", caption));
  const head = made.createTHead().insertRow();
  columns.forEach((name) => head.append(element("th", name, { scope: "col" })));
  const body = made.createTBody();
  rows.forEach(([name, ...values], row) => {
    const line = body.insertRow();
    line.append(element("th", name, { scope: "row" }));
    values.forEach((value, column) => {
      const same = rows.length === values.length && row === column;
      line.append(element("td", value, same ? { class: "same" } : {}));
    });
  });
  const frame = element("div", "", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption });
  frame.append(made);
  return frame;
}

function showCoders({ coders, types }) {
  const rows = coders.map((coder) => {
    const counts = types.map((type) => coder.labels[type]);
    return [nameOf(coder), ...counts, counts.reduce((a, b) => a + b, 0)];
  });
  at("coders").append(
    element("h2", "Labels given"),
    table("How many maps of each type", ["", ...types, "all"], rows),
  );
}

function showComparison({ first, second, maps, same, kappa, table: counts }, types) {
  const value = kappa
    ? `κ = ${kappa.value.toFixed(2)} [${kappa.low.toFixed(2)}, ${kappa.high.toFixed(2)}]`
    : "κ is not defined: both gave all maps the same label";
  at("comparisons").append(
    element("h2", `${nameOf(first)} and ${nameOf(second)}`),
    element("p", `${value}; the same label for ${(100 * same).toFixed(0)} % of ${maps} maps.`),
    table(
      `Rows: ${nameOf(first)}. Columns: ${nameOf(second)}.`,
      ["", ...types],
      counts.map((row, i) => [types[i], ...row]),
    ),
  );
}

try {
  const found = await get("/annotate/api/agreement");
  at("status").textContent = found.comparisons.length
    ? ""
    : "There is nothing to compare yet: two annotators, or two passes, must label the same maps.";
  if (found.coders.length) showCoders(found);
  found.comparisons.forEach((comparison) => showComparison(comparison, found.types));
} catch (error) {
  at("status").textContent = "";
  at("trouble").textContent = error.message;
  at("trouble").hidden = false;
}
