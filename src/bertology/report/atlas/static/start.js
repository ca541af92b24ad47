// Shared by the files that follow: the data, elements, numbers as text, and the address.

const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);

// A table by columns; texts that come often are written once in the data.
function tableOf(key) {
  const { columns, values } = data.tables[key];
  return { columns, values: values.map((column) => (column.texts ? column.rows.map((i) => column.texts[i]) : column)) };
}

// An element; everything that is not an element becomes text, so nothing in the data is ever HTML.
function make(tag, settings = {}, ...inside) {
  const spaced = tag.startsWith("svg:");
  const made = spaced
    ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(settings)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...inside.filter((piece) => piece !== null && piece !== undefined && piece !== ""));
  return made;
}

// Three digits, a true minus sign, and no trailing zeros.
function shown(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  const text = size >= 1000 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
  return text.replace("-", "−");
}

// As many digits as make sense for the range of the values.
function shownWithin(value, range) {
  const decimals = Math.min(Math.max(2 - Math.floor(Math.log10(range || 1)), 0), 12);
  return shown(Number(value.toFixed(decimals)));
}

// A bound that says on which side of 0 a number lies, and no more.
const end = (value) => (value && Math.abs(value) < 1e-9 ? `${value > 0 ? ">" : "<"}0` : shown(value));
const interval = (low, high) => `[${end(low)}, ${end(high)}]`;
const inWords = (name) => name.replaceAll("-", " ").replaceAll("_", " ");
const titled = (name) => inWords(name).replace(/^./, (letter) => letter.toUpperCase());
const per = (level) => `${Number((100 * level).toPrecision(4))} % interval`;

// The entry of one head in a set, in parts: value, unit, interval, marks.
function told(set, place) {
  const value = set.values[place];
  if (value === null) return { value: "not measured", rest: "" };
  if (set.kinds) return { value: set.kinds[value] ?? "unknown", rest: "" };
  let rest = set.unit ? ` ${set.unit}` : "";
  if (set.low && set.low[place] !== null && set.high[place] !== null) {
    rest += `, ${per(set.level ?? 0.95)} ${interval(set.low[place], set.high[place])}`;
  }
  return { value: shown(value), rest };
}

// The address holds what is shown: #head=3.5&measure=head-ablation/effect&of=r-1a2b3c
function readAddress() {
  const text = decoded(location.hash.slice(1), decodeURI);
  return text.includes("=") ? Object.fromEntries(new URLSearchParams(text)) : null;
}

// An address that was cut or has a typing error is ignored; the page must still work.
function decoded(text, decode) {
  try {
    return decode(text);
  } catch {
    return "";
  }
}

function writeAddress(state) {
  const kept = Object.entries(state).filter(([, value]) => value);
  const text = kept.map(([name, value]) => `${name}=${encodeURI(value)}`).join("&");
  try {
    history.replaceState(null, "", `#${text}`);
  } catch {
    // Some browsers do not change the address of a local file; the page works without it.
  }
}
