// Figures as SVG and PNG, tables as CSV and LaTeX, without a server.

function save(name, content, type) {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

const button = (text, label, act) =>
  make("button", { type: "button", "aria-label": label, onclick: act }, text);

// Three times its size, so that prints are sharp.
function savePng(name, svg) {
  const picture = new Image();
  picture.onload = () => {
    const canvas = make("canvas", { width: 3 * picture.width, height: 3 * picture.height });
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => save(`${name}.png`, blob), "image/png");
  };
  picture.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

function pictureButtons(name, svgOf) {
  return [
    button("SVG", `Save ${inWords(name)} as SVG`, () => save(`${name}.svg`, svgOf(), "image/svg+xml")),
    button("PNG", `Save ${inWords(name)} as PNG`, () => savePng(name, svgOf())),
  ];
}

function csvOf({ columns, values }) {
  const quoted = (value) => {
    const text = value === null ? "" : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const rows = (values[0] ?? []).map((_, i) => values.map((column) => quoted(column[i])).join(","));
  return [columns.map(quoted).join(","), ...rows, ""].join("\n");
}

// LaTeX as the command writes it. LaTeX would read a bracket at the start of a row as a length, and
// fonts with the old encoding have other characters in place of < > |.
const SPECIAL = {
  "\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "[": "{[}", "]": "{]}",
  "<": "\\textless{}", ">": "\\textgreater{}", "|": "\\textbar{}",
};
const latexText = (text) => text.trim().replace(/\s+/g, " ")
  .replace(/[\\~^[\]<>|&%$#_{}]/g, (sign) => SPECIAL[sign] ?? `\\${sign}`);

function latexNumber(value) {
  const [digits, power] = value.toExponential(3).split("e").map(Number);
  if (power < -4 || power > 3) return `$${digits} \\times 10^{${power}}$`;
  return `$${Number(value.toPrecision(4))}$`;
}

function latexCell(value, counts) {
  if (value === null) return "--";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "number") return latexText(value);
  return counts ? `$${value}$` : latexNumber(value);
}

const PAGE = 40; // rows that fit on a page; longer tables are long tables of LaTeX, over several pages

function latexOf({ columns, values }) {
  const numeric = values.map((column) => column.every((v) => v === null || typeof v === "number"));
  const counts = values.map((column) => column.every((v) => typeof v !== "number" || Number.isSafeInteger(v)));
  const rows = (values[0] ?? []).map((_, i) => `${values.map((column, c) => latexCell(column[i], counts[c])).join(" & ")} \\\\`);
  const long = rows.length > PAGE;
  const setting = long ? "longtable" : "tabular";
  return [
    `% needs \\usepackage{booktabs${long ? ",longtable" : ""}}`,
    `\\begin{${setting}}{${numeric.map((n) => (n ? "r" : "l")).join("")}}`,
    "\\toprule", `${columns.map((c) => latexText(c.replaceAll("_", " "))).join(" & ")} \\\\`, "\\midrule",
    ...(long ? ["\\endhead"] : []), ...rows, "\\bottomrule", `\\end{${setting}}`, "",
  ].join("\n");
}

function wholeTable({ columns, values }) {
  const head = make("tr", {}, ...columns.map((c) => make("th", { scope: "col" }, inWords(c))));
  const cell = (v) => (typeof v === "number" ? String(Number(v.toPrecision(4))).replace("-", "−") : v === null ? "–" : String(v));
  const rows = (values[0] ?? []).map((_, i) => make("tr", {}, ...values.map((column) => make("td", {}, cell(column[i])))));
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
}

function fillButtons() {
  for (const host of document.querySelectorAll(".buttons[data-figure]")) {
    const picture = host.closest("figure").querySelector("img");
    if (!picture) continue; // points that the page draws itself
    // What is saved is for paper, also where the page is dark.
    const dark = /@media\(prefers-color-scheme:dark\)\{.*?\}\}/;
    const svgOf = () => decodeURIComponent(picture.src.slice(picture.src.indexOf(",") + 1)).replace(dark, "");
    host.append(...pictureButtons(host.dataset.figure, svgOf));
  }
  for (const host of document.querySelectorAll(".buttons[data-table]")) {
    const table = tableOf(host.dataset.table);
    const name = host.dataset.table.replace("/", "-");
    const all = button("All rows", `Show all rows of ${host.dataset.name}`, () => {
      host.closest(".numbers").querySelector(".wide").replaceChildren(wholeTable(table));
      all.remove();
    });
    host.append(all,
      button("CSV", `Save ${host.dataset.name} as CSV`, () => save(`${name}.csv`, csvOf(table), "text/csv")),
      button("LaTeX", `Save ${host.dataset.name} as LaTeX`, () => save(`${name}.tex`, latexOf(table), "text/x-tex")));
  }
  document.querySelectorAll(".profile").forEach((figure, i) => {
    const chart = figure.querySelector("svg:not(.key)");
    const name = `layers-${i + 1}`;
    figure.querySelector(".unit-line").append(
      make("span", { class: "buttons" }, ...pictureButtons(name, () => chartSvg(chart))));
  });
}

// A chart's colours come from the style of the page, so they are copied into the saved file.
const LINES = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#6b6b6b"];
function chartSvg(chart) {
  const copy = chart.cloneNode(true);
  const rules = LINES.map((c, i) => `.line-${i}{fill:${c};stroke:${c}}`).join("");
  const style = `text{font:10px sans-serif;fill:#222}.rule{stroke:#ddd}.zero{stroke:#777}polyline{fill:none;stroke-width:1.5}${rules}`;
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const [, , width, height] = chart.getAttribute("viewBox").split(" ");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.prepend(make("svg:style", {}, style));
  return new XMLSerializer().serializeToString(copy);
}
