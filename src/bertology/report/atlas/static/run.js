// Starts the page: the menus, the grid, and the head and measure that the address names.

const MAPS = "maps"; // the one measure that is not a number: the mean map

function startHeads() {
  if (!at("grid") || !data.measures.length) return;
  const state = { measure: "", of: "", head: "" };
  const measures = data.means.length
    ? [...data.measures, { id: MAPS, study: data.means[0].study, title: "Mean attention map", sets: data.means }]
    : data.measures;
  const measure = () => measures.find((m) => m.id === state.measure);
  const set = () => measure().sets.find((s) => s.entry === state.of) ?? measure().sets[0];
  const [what, where] = choosers(measures);
  const readout = at("readout");
  let scale = null;

  const say = (place) => readout.replaceChildren(...readoutOf(measure(), set(), place));
  const grid = buildGrid(at("grid"), {
    layers: data.layers, heads: data.heads, label: "Heads by layer", seen: say, opened: (p) => open(p, true),
  });

  function paint() {
    where.replaceChildren(...measure().sets.map((s) => make("option", { value: s.entry }, s.label)));
    where.value = set().entry;
    what.value = state.measure;
    if (state.measure === MAPS) {
      paintMaps(grid, set(), data.heads);
      at("legend").replaceChildren(make("p", { class: "unit" },
        "Each cell is the head's mean map: rows attend to columns, from the start of the text to " +
        `its end; ${more().toLowerCase()} is more, each map on its own scale.`));
    } else {
      scale = scaleOf(measure().sets.filter((s) => s.unit === set().unit), set().middle);
      paintGrid(grid, set(), scale, data.heads);
      at("legend").replaceChildren(legendOf(set(), scale, sureNote(set())), ...below());
    }
    grid.table.setAttribute("aria-label", `Heads by layer: ${measure().title}, ${set().label}`);
    readout.replaceChildren(make("p", {}, set().reading || "Point at a head, or move over the grid with arrow keys."));
  }

  function below() {
    const gaps = set().values.includes(null) ? make("p", { class: "soft" }, "Hatched: not measured.") : "";
    const name = `${state.measure.replace("/", "-")}-${set().entry}`;
    const buttons = make("span", { class: "buttons" },
      ...pictureButtons(name, () => gridSvg(grid, set(), scale, data.heads)));
    return [gaps, make("p", { class: "soft" }, make("a", { href: `#${set().entry}` }, "Method, limits and tables"), " ", buttons)];
  }

  function open(place, moved) {
    state.head = `${Math.floor(place / data.heads)}.${place % data.heads}`;
    grid.cells.forEach((cell, i) => cell.classList.toggle("chosen", i === place));
    const title = openPanel(place, measure().study);
    reachable();
    if (moved) {
      writeAddress(state);
      title.focus({ preventScroll: true });
      if (at("panel").getBoundingClientRect().top > innerHeight - 120) title.scrollIntoView({ behavior: "smooth" });
    }
  }

  function follow() {
    const asked = readAddress();
    const known = measures.some((m) => m.id === asked?.measure);
    state.measure = known ? asked.measure : state.measure || data.measures[0].id;
    state.of = asked?.of ?? state.of;
    paint();
    const [layer, head] = (asked?.head ?? "").split(".").map(Number);
    if (layer >= 0 && layer < data.layers && head >= 0 && head < data.heads) open(layer * data.heads + head, false);
    if (asked) at("heads").scrollIntoView();
  }

  what.addEventListener("input", () => { state.measure = what.value; paint(); keep(); });
  where.addEventListener("input", () => { state.of = where.value; paint(); keep(); });
  function keep() {
    if (state.head) {
      const [layer, head] = state.head.split(".").map(Number);
      open(layer * data.heads + head, false);
    }
    state.of = set().entry;
    writeAddress(state);
  }
  follow();
  night.addEventListener("change", () => { paint(); keep(); }); // maps have other colours
  addEventListener("hashchange", () => readAddress() && follow());
  if (!state.head) at("panel").append(make("p", { class: "soft" }, "Choose a head to see its maps and its numbers in every study."));
}

function sureNote(set) {
  if (!set.sure) return "";
  const some = "Outlined: holds after correction for the number of heads.";
  return `. ${set.sure.includes(1) ? some : "No head holds after correction for the number of heads."}`;
}

function choosers(measures) {
  const what = make("select", { id: "measure" });
  for (const study of new Set(measures.map((m) => m.study))) {
    what.append(make("optgroup", { label: titled(study) },
      ...measures.filter((m) => m.study === study).map((m) => make("option", { value: m.id }, m.title))));
  }
  const where = make("select", { id: "of" });
  at("choose").append(make("label", {}, "Colour", what), make("label", {}, "Model and data", where));
  return [what, where];
}

function readoutOf(measure, set, place) {
  const name = make("b", {}, named(place, data.heads));
  if (measure.id === MAPS) return [make("p", {}, name, `: largest mean weight ${shown(peakOf(set, place))}.`)];
  const { value, rest } = told(set, place);
  const rank = rankOf(set, place);
  const there = set.values.filter((v) => v !== null).length;
  const standing = allAlike(set) ? " All heads are equal." : ` Rank ${rank} of ${there}.`;
  const marks = set.sure?.[place] === 1 ? " Holds after correction for the number of heads." : "";
  return [
    make("p", {}, name, ": ", make("b", {}, value), rest, ".", rank ? standing : "", marks),
    make("p", { class: "soft" }, set.reading),
  ];
}

// If a link leads to something in a closed section, the section is opened.
function unfold() {
  const target = location.hash.includes("=") ? null : at(decoded(location.hash.slice(1), decodeURIComponent));
  if (!target) return;
  if (target.matches("#claims-table tr")) showClaim(target);
  for (let box = target; box; box = box.parentElement) if (box.tagName === "DETAILS") box.open = true;
  target.scrollIntoView();
}

// Only elements that scroll can be reached with Tab.
function reachable() {
  for (const box of document.querySelectorAll(".wide")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}

// A picture in full size can be scrolled; see `reachable`.
function enlarged({ target }) {
  if (!target.matches("input.enlarge")) return;
  const paper = target.parentElement.querySelector(".paper");
  if (target.checked) paper.tabIndex = 0;
  else paper.removeAttribute("tabindex");
}

startHeads();
startClaims();
startCompare();
startPairs();
fillButtons();
startPlanes();
unfold();
addEventListener("hashchange", unfold);
addEventListener("change", enlarged);
addEventListener("resize", reachable);
addEventListener("toggle", reachable, true);
requestAnimationFrame(reachable);
addEventListener("beforeprint", () => {
  for (const picture of document.images) picture.loading = "eager";
});
