// Two models side by side, and their difference.

function startCompare() {
  const host = at("compare-grids");
  if (!host) return;
  const groups = Map.groupBy ? Map.groupBy(data.pairs, (p) => p.study) : grouped(data.pairs);
  const alone = (pair) => data.pairs.filter((other) => other.title === pair.title).length === 1;
  const optionOf = (p) => make("option", { value: p.id }, alone(p) ? p.title : `${p.title}, ${p.labels[0]}`);
  const choice = make("select", { id: "compare-measure" }, ...[...groups].map(([study, pairs]) =>
    make("optgroup", { label: titled(study) }, ...pairs.map(optionOf))));
  at("compare-choice").append(make("label", {}, "Measure", choice));
  const draw = () => drawPair(host, data.pairs.find((p) => p.id === choice.value));
  choice.addEventListener("input", draw);
  draw();
}

function grouped(pairs) {
  const found = new Map();
  for (const pair of pairs) found.set(pair.study, [...(found.get(pair.study) ?? []), pair]);
  return found;
}

function drawPair(host, pair) {
  const heads = pair.shape[1];
  const kinds = pair.kinds.length ? pair.kinds : undefined;
  const sets = pair.sides.map((side, i) => ({
    ...side, kinds, unit: pair.unit, title: pair.title, label: pair.labels[i],
  }));
  const scale = scaleOf(sets, pair.middle);
  const readout = make("p", { class: "readout" }, pair.reading);
  const say = (place) => { readout.textContent = pairWords(pair, sets, place, heads); };
  const panes = sets.map((set, i) => pane(data.sides[i], set.label, set, scale, heads, say));
  if (pair.difference) {
    const set = { ...pair.difference, unit: pair.unit, title: "Difference", label: "second minus first" };
    const outlined = set.sure?.includes(1) ? "Outlined: the interval excludes 0." : "No interval excludes 0.";
    const note = `. ${set.sure ? outlined : "No intervals."}`;
    panes.push(pane("Difference", "second minus first", set, scaleOf([set], 0), heads, say, note));
  }
  const warning = pair.same ? "" : make("p", { class: "warn" },
    "Measured over different data: a difference may come from the data as well as from the model.");
  host.replaceChildren(warning, make("div", { class: "panes" }, ...panes), readout, largest(pair, sets, heads));
}

function pane(title, label, set, scale, heads, say, note) {
  const place = make("div", {});
  const grid = buildGrid(place, {
    layers: set.values.length / heads, heads, label: `${title}: ${set.title}`, seen: say, opened: say,
  });
  paintGrid(grid, set, scale, heads);
  return make("div", { class: "pane" }, make("h3", {}, title), make("p", { class: "soft" }, label),
    place, legendOf(set, scale, note));
}

function pairWords(pair, sets, place, heads) {
  const values = sets.map((set, i) => `${data.sides[i]} ${told(set, place).value}${told(set, place).rest}`);
  const words = `${named(place, heads)}: ${values.join("; ")}.`;
  if (!pair.difference) return words;
  return `${words} Difference ${differenceAt(pair, place)}.`;
}

function differenceAt(pair, place) {
  const { values, low, high } = pair.difference;
  const bounds = low && low[place] !== null ? ` ${interval(low[place], high[place])}` : "";
  return `${shown(values[place])}${bounds}`;
}

function largest(pair, sets, heads) {
  if (!pair.difference) {
    const same = sets[0].values.filter((v, i) => v !== null && v === sets[1].values[i]).length;
    return make("p", {}, `The same kind for ${same} of ${sets[0].values.length} heads.`);
  }
  const order = pair.difference.values.map((v, i) => [v, i]).filter(([v]) => v !== null)
    .sort((a, b) => Math.abs(b[0]) - Math.abs(a[0])).slice(0, 10);
  const columns = ["Head", ...data.sides, "Difference and interval"];
  const rows = order.map(([, i]) => make("tr", {},
    make("td", {}, named(i, heads)), ...sets.map((set) => make("td", {}, told(set, i).value)),
    make("td", {}, differenceAt(pair, i), pair.difference.sure?.[i] ? " excludes 0" : "")));
  const table = make("table", {},
    make("caption", {}, `The ten largest differences${pair.unit ? `, in ${pair.unit}` : ""}`),
    make("thead", {}, make("tr", {}, ...columns.map((c) => make("th", { scope: "col" }, c)))),
    make("tbody", {}, ...rows));
  return make("div", { class: "wide" }, table);
}
