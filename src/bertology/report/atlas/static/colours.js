// From values to colours, the same as in the figures.

function mixed(ramp, share) {
  const stops = data.colours[ramp];
  const place = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const below = Math.floor(place);
  const above = Math.min(below + 1, stops.length - 1);
  return stops[below].map((c, i) => Math.round(c + (stops[above][i] - c) * (place - below)));
}

const css = (rgb) => `rgb(${rgb.join(" ")})`;

// One scale for all sets of a measure in one unit, so that the same colour means the same on other data.
function scaleOf(sets, middle) {
  const values = sets.flatMap((set) => set.values).filter((value) => value !== null);
  let low = values.length ? Math.min(...values) : 0;
  let high = values.length ? Math.max(...values) : 1;
  if (middle !== null && middle !== undefined) {
    const reach = Math.max(high - middle, middle - low) || 1e-3;
    return { ramp: "diverging", low: middle - reach, high: middle + reach, middle };
  }
  if (low === high) [low, high] = [low - 1e-3 * Math.max(1, Math.abs(low)), high];
  return { ramp: "sequential", low, high, middle: null };
}

function colourOf(value, scale) {
  return mixed(scale.ramp, (value - scale.low) / (scale.high - scale.low));
}

const kindColour = (kind) => data.colours.kinds[kind % data.colours.kinds.length];

// Dark or light letters, whichever has the higher contrast with the cell.
function inkOn(rgb) {
  const [r, g, b] = rgb.map((c) => (c / 255 <= 0.04045 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  const light = 0.2126 * r + 0.7152 * g + 0.0722 * b;
  return 1.05 / (light + 0.05) > (light + 0.05) / 0.0553 ? "#ffffff" : "#111111";
}

const rgbOf = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

// One or two letters for each kind, for readers who cannot see its colour.
function lettersOf(kinds) {
  const found = [];
  kinds.forEach((kind, i) => {
    const words = kind.split(/[^\p{L}\d]+/u).filter(Boolean);
    const initials = words.slice(0, 2).map((word) => word[0].toUpperCase()).join("");
    found.push(found.includes(initials) ? String(i + 1) : initials);
  });
  return found;
}

// The legend: a bar with its ends, or a list of kinds; always with the unit.
function legendOf(set, scale, note) {
  if (set.kinds) {
    const letters = lettersOf(set.kinds);
    const rows = set.kinds.map((kind, i) => {
      const n = set.values.filter((value) => value === i).length;
      const colour = kindColour(i);
      const swatch = make("span", { class: "swatch", "aria-hidden": "true" }, letters[i]);
      swatch.style.background = colour;
      swatch.style.color = inkOn(rgbOf(colour));
      return make("li", {}, swatch, `${kind} (${n})`);
    });
    return make("ul", { class: "legend kinds" }, ...rows);
  }
  const stops = [0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1];
  const bar = make("div", { class: "bar", "aria-hidden": "true" });
  bar.style.background = `linear-gradient(to right, ${stops.map((s) => css(mixed(scale.ramp, s))).join(", ")})`;
  const [low, middle, high] = [scale.low, scale.middle, scale.high].map((value) =>
    value === null ? "" : make("span", {}, shownWithin(value, scale.high - scale.low)));
  const ends = make("div", { class: "ends" }, low, middle, high);
  return make("div", { class: "scale" }, bar, ends, make("p", { class: "unit" }, set.unit || "no unit", note ?? ""));
}
