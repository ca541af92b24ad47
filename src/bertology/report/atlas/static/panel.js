// The panel with all results on one head.

function openPanel(place, current) {
  const heads = data.heads;
  const host = at("panel");
  const maps = [
    ...data.means.map((set) => meanFigure(set, place)),
    ...data.examples.map((set) => exampleFigure(set, place)),
  ];
  const title = make("h3", { tabindex: "-1", id: "panel-title" }, named(place, heads));
  const studies = [...new Set(data.measures.map((measure) => measure.study))];
  host.replaceChildren(
    title,
    maps.length ? make("div", { class: "attentions" }, ...maps) : "",
    ...claimsAround(place),
    make("h4", {}, "Its numbers in every study"),
    ...studies.map((study) => studyScores(study, place, study === current)),
  );
  return title;
}

// Filled when the user opens it: the rows of all studies are tens of thousands of elements.
function studyScores(study, place, opened) {
  const sets = data.measures.filter((measure) => measure.study === study).flatMap((measure) => measure.sets);
  const host = make("div", { class: "wide" });
  const fill = () => {
    if (host.firstChild) return;
    const head = make("tr", {}, ...["What", "Here", "Among all heads"].map((t) => make("th", { scope: "col" }, t)));
    const rows = sets.map((set) => scoreRow(set, place));
    host.append(make("table", { class: "scores" }, make("thead", {}, head), make("tbody", {}, ...rows)));
  };
  const box = make("details", { open: opened, ontoggle: () => box.open && fill() },
    make("summary", {}, `${titled(study)} (${sets.length})`), host);
  if (opened) fill();
  return box;
}

function scoreRow(set, place) {
  const { value, rest } = told(set, place);
  return make("tr", {},
    make("td", {}, set.title, make("div", { class: "soft" }, make("a", { href: `#${set.entry}` }, set.label))),
    make("td", {}, make("b", {}, value), rest, ...marksOf(set, place)),
    make("td", {}, set.kinds ? sameKind(set, place) : strip(set, place)));
}

function sameKind(set, place) {
  const kind = set.values[place];
  return kind === null ? "" : `as ${set.values.filter((v) => v === kind).length} of ${set.values.length}`;
}

// The position of the head between the lowest and the highest value.
function strip(set, place) {
  const value = set.values[place];
  const there = set.values.filter((v) => v !== null);
  if (value === null || !there.length) return "";
  const [low, high] = [Math.min(...there), Math.max(...there)];
  const x = (v) => 5 + (110 * (v - low)) / (high - low || 1);
  const all = there.map((v) => make("svg:line", { x1: x(v), x2: x(v), y1: 4, y2: 12 }));
  const rank = allAlike(set) ? "all equal" : `${rankOf(set, place)} of ${there.length}`;
  return make("div", { class: "strip" },
    make("svg:svg", { viewBox: "0 0 120 16", "aria-hidden": "true" }, ...all,
      make("svg:circle", { cx: x(value), cy: 8, r: 4 })),
    make("span", { class: "soft" }, rank));
}

// Why the head stands out in a set, as small labels.
function marksOf(set, place) {
  return standsOut(set, place).map((text) => make("span", { class: "chip mark" }, text));
}

function standsOut(set, place) {
  const marks = [];
  if (set.sure?.[place] === 1) marks.push("holds after correction");
  const rank = rankOf(set, place);
  const there = set.values.filter((v) => v !== null);
  const alone = there.filter((v) => v === set.values[place]).length === 1;
  if (!alone || there.length < 2) return marks; // a value that several heads share is no extreme
  if (rank === 1) marks.push("highest");
  if (rank === there.length) marks.push("lowest");
  return marks;
}

// Verdicts based on results in which this head stands out.
function claimsAround(place) {
  const found = new Map();
  for (const measure of data.measures) {
    for (const set of measure.sets) {
      if (!standsOut(set, place).length) continue;
      for (const [id, statement, outcome] of data.claims[set.entry] ?? []) {
        if (outcome !== "not-applicable") found.set(`${id} ${set.entry}`, [id, statement, outcome, set.label]);
      }
    }
  }
  if (!found.size) return [];
  const rows = [...found.values()].map(([id, statement, outcome, label]) =>
    make("li", {}, make("span", { class: `chip ${outcome}` }, outcome.replace("-", " ")), " ",
      make("a", { href: `#claim-${id}` }, statement), make("span", { class: "soft" }, ` ${label}`)));
  return [make("details", {},
    make("summary", {}, `Claims judged on results in which this head stands out (${rows.length})`),
    make("ul", { class: "plain" }, ...rows))];
}
