// What the user looks at. All of it is in the address, so a link shows the same to everybody, and
// the server stores nothing.

const WHOLE = Number.isInteger;
const wholes = (value) => (Array.isArray(value) ? value.filter((x) => WHOLE(x) && x >= 0) : []);
const oneOf = (value, choices) => (choices.includes(value) ? value : choices[0]);

export const LEVELS = ["pieces", "words"];
export const LOOKS = ["matrix", "lines", "tree"];
export const TREES = ["undirected", "to-head", "to-dependent", "structural"];
export const SCALES = ["own", "common"];
export const JUDGED = ["all", "right", "wrong"];
export const POOLINGS = ["mean", "first", "last"];
export const PLANES = ["pca", "t-sne", "umap"];
export const DIRECTIONS = ["from", "to"];

const LONGEST_LINKED = 12_000; // characters of texts in which a word is looked for

// Where a tour is, whether it is presented, and which example of a corpus is shown.
const NO_LESSON = { tour: null, present: false, example: null };

export function newState() {
  return {
    view: {
      text: "",
      pair: null,
      masked: [],
      level: "pieces",
      off: { heads: [], layers: [], dimensions: [], how: "uniform" },
    },
    page: { chosen: null, look: "matrix", tree: TREES[0], scale: "own", filter: null, search: null, mean: null, contexts: null, why: null, ...NO_LESSON },
  };
}

export function writeLink({ view, page }) {
  const contexts = isLinked(page.contexts) ? page.contexts : null;
  return `#${encodeURIComponent(JSON.stringify({ ...view, page: { ...page, contexts } }))}`;
}

// Hundreds of texts are too much for an address.
export const isLinked = (contexts) => (contexts?.texts.length ?? 0) <= LONGEST_LINKED;

// A link may come from anywhere: invalid parts are left out; null if nothing can be used.
export function readLink(hash) {
  let found;
  try {
    found = JSON.parse(decodeURIComponent(hash.slice(1)));
  } catch {
    return null;
  }
  if (typeof found?.text !== "string" || found.text.trim() === "") return null;
  const state = newState();
  state.view.text = found.text;
  state.view.pair = typeof found.pair === "string" ? found.pair : null;
  state.view.masked = wholes(found.masked);
  state.view.level = oneOf(found.level, LEVELS);
  state.view.off = readOff(found.off ?? {});
  state.page = readPage(found.page ?? {});
  return state;
}

function readOff({ heads, layers, dimensions, how }) {
  const pairs = Array.isArray(heads) ? heads.map(wholes).filter((x) => x.length === 2) : [];
  const chosen = typeof how === "string" ? how : "uniform";
  return { heads: pairs, layers: wholes(layers), dimensions: wholes(dimensions), how: chosen };
}

function readPage({ chosen, look, tree, scale, filter, search, mean, contexts, why, tour, present, example }) {
  const number = (value) => (WHOLE(value) && value >= 0 ? value : null);
  const isObject = (value) => typeof value === "object" && value !== null;
  return {
    chosen: isObject(chosen) ? { layer: number(chosen.layer), head: number(chosen.head) } : null,
    look: oneOf(look, LOOKS),
    tree: oneOf(tree, TREES),
    scale: oneOf(scale, SCALES),
    filter:
      isObject(filter) && number(filter.token) !== null
        ? { token: filter.token, direction: oneOf(filter.direction, DIRECTIONS) }
        : null,
    search: isObject(search) ? readSearch(search) : null,
    mean: typeof mean === "string" ? mean : null,
    contexts: isObject(contexts) ? readContexts(contexts) : null,
    why: typeof why === "string" ? why : null,
    tour: number(tour),
    present: present === true,
    example: isObject(example) ? readExample(example) : null,
  };
}

function readContexts({ word, texts, layer, pooling, method, clusters }) {
  if (typeof word !== "string" || !word.trim()) return null;
  return {
    word,
    texts: typeof texts === "string" ? texts : "",
    layer: WHOLE(layer) ? layer : -1,
    pooling: oneOf(pooling, POOLINGS),
    method: oneOf(method, PLANES),
    clusters: WHOLE(clusters) ? clusters : 3,
  };
}

function readExample({ task, number, only }) {
  const known = typeof task === "string" && WHOLE(number) && number >= 0;
  return known ? { task, number, only: oneOf(only, JUDGED) } : null;
}

function readSearch({ kind, name, layer, head }) {
  if (kind === "similar" && [layer, head].every((x) => WHOLE(x) && x >= 0)) {
    return { kind, layer, head };
  }
  return ["relation", "pattern"].includes(kind) && typeof name === "string" ? { kind, name } : null;
}

export const isHeadOff = (off, { layer, head }) =>
  off.heads.some(([l, h]) => l === layer && h === head);

// The same switches with one changed: a head, a layer ({layer, head: null}) or a dimension.
export function turn(off, { layer, head, dimension }) {
  const over = (list, value) =>
    list.includes(value) ? list.filter((x) => x !== value) : [...list, value].sort((a, b) => a - b);
  if (dimension !== undefined) return { ...off, dimensions: over(off.dimensions, dimension) };
  if (layer === null) return off; // a head's number means nothing without its layer
  if (head === null) return { ...off, layers: over(off.layers, layer) };
  const heads = isHeadOff(off, { layer, head })
    ? off.heads.filter(([l, h]) => l !== layer || h !== head)
    : [...off.heads, [layer, head]].sort(([a, b], [c, d]) => a - c || b - d);
  return { ...off, heads };
}

export const isAnythingOff = (off) =>
  off.heads.length + off.layers.length + off.dimensions.length > 0;
