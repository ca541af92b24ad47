// The tree of a head over the words of a text: the maximum spanning tree of its attention; or that of
// a structural probe of a layer: the minimum spanning tree of distances between states. Arcs of
// the annotated tree, where there is one, are above the words, those that were found below.

import { at, isSame, nameOf, typeScale } from "./elements.js";
import { apart, legible, runsLeft } from "./letters.js";

const STRUCTURAL = "structural";
const SVG = "http://www.w3.org/2000/svg";
const [GAP, LINE, TYPE] = [16, 20, 14]; // pixels: between words, for the words, their type

function drawn(name, attributes, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

// Longer arcs are higher, but not by as much as they are longer.
const heightOf = (one, other) => 10 + 15 * Math.abs(one - other) ** 0.75;
const tallest = (heads) =>
  Math.max(0, ...heads.map((head, word) => (head < 0 ? 0 : heightOf(head, word)))) + 8;

// Whether a tree has an arc; turned either way, if its direction does not matter.
const has = (heads, word, head, directed) => heads[word] === head || (!directed && heads[head] === word);

const askedFor = ({ view, page }) => ({ view, ...page.chosen, tree: page.tree });

function whyNone({ view, page }, model) {
  if (page.mean) return "A tree is of one text. Choose the maps of this text above the grid.";
  if (view.pair !== null) return "A tree is of one text. Remove the second one.";
  if (!model.can.words) return "The words of this model’s pieces are not known, so there is no tree.";
  return page.tree === STRUCTURAL && !model.structural ? howToGet(model.name) : "";
}

const howToGet = (name) =>
  "No structural probe of this model is in the store. Train one, which takes a minute or two: " +
  `bertology run structural-probe --model ${name} --corpus grammar (or a treebank, such as ud-ewt). ` +
  "Then start the explorer again, with the same --store.";

// What the server answered, as long as it is about what is shown.
export class HeadTree {
  constructor(post) {
    this.post = post;
    this.known = null;
  }

  of(state, model) {
    const isKnown = isSame(this.known?.asked, askedFor(state));
    return { kind: state.page.tree, why: whyNone(state, model), found: isKnown ? this.known : null };
  }

  // Whether there is a new one.
  async ask(state, model, signal) {
    const asked = askedFor(state);
    const isWanted = model.live && state.page.look === "tree" && !whyNone(state, model);
    if (!isWanted || isSame(this.known?.asked, asked)) return false;
    const found = await this.post("/api/tree", asked, { signal });
    this.known = { ...found, asked };
    return !signal.aborted;
  }
}

export class Tree {
  constructor({ change }) {
    this.context = document.createElement("canvas").getContext("2d");
    at("tree-kind").addEventListener("change", () => change({ tree: at("tree-kind").value }));
  }

  // `tree` is null while it is not known, and `why` says why there is none.
  show(tree, { kind, chosen, why }) {
    at("tree-kind").value = kind;
    tree = why ? null : tree;
    at("tree-note").textContent = why || (tree ? describe(tree) : "Looking …");
    at("tree-arcs").textContent = tree ? listed(tree) : "";
    at("tree").querySelector("details").hidden = !tree;
    at("tree-frame").hidden = !tree;
    const name = tree?.source ? "a structural probe" : nameOf(chosen);
    if (tree) at("tree-frame").replaceChildren(this.#draw(tree, `The tree of ${name}`));
  }

  #draw({ words: all, heads, gold, directed }, name) {
    const words = all.map(legible);
    const size = TYPE * typeScale();
    this.context.font = `${size}px system-ui, sans-serif`;
    const widths = words.map((word) => this.context.measureText(word).width + GAP);
    let right = 0;
    const places = widths.map((width) => (right += width) - width / 2);
    if (runsLeft(words)) places.forEach((place, i) => (places[i] = right - place)); // it begins on the right
    const [above, below] = [gold ? tallest(gold) : 0, tallest(heads)];
    const line = LINE * typeScale();
    const [width, height] = [Math.ceil(right), Math.ceil(above + line + below)];
    const made = drawn("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": name });
    words.forEach((word, i) =>
      made.append(drawn("text", { x: places[i], y: above + line * 0.72, "font-size": size, "text-anchor": "middle" }, word)),
    );
    const arcs = (of, base, side, kindOf) =>
      of.forEach((head, word) => {
        if (head < 0) return;
        const pair = { from: places[head], to: places[word], top: base + side * heightOf(head, word), base };
        made.append(...arc(pair, side, kindOf(word, head), side > 0 && !directed));
      });
    if (gold) arcs(gold, above, -1, () => "gold");
    const isRight = (word, head) => !gold || has(gold, word, head, directed);
    arcs(heads, above + line, 1, (word, head) => (isRight(word, head) ? "right" : "wrong"));
    return made;
  }
}

// From a head to what hangs from it; ends keep off the middle of words, where others end.
function arc({ from, to, top, base }, side, kind, isPlain) {
  const step = 4 * Math.sign(to - from);
  const [start, end] = [from + step, to - step];
  const bend = base + (top - base) / 0.75; // a cubic reaches three quarters of its inner points
  const inward = 0.12 * (end - start);
  const d = `M${start} ${base}C${start + inward} ${bend} ${end - inward} ${bend} ${end} ${base}`;
  const found = [drawn("path", { d, class: `arc ${kind}` })];
  if (!isPlain) {
    const points = `${end},${base} ${end - 3.5},${base + side * 7} ${end + 3.5},${base + side * 7}`;
    found.push(drawn("polygon", { points, class: `tip ${kind}` }));
  }
  return found;
}

function describe({ words, heads, gold, directed, by, source }) {
  const arcs = heads.flatMap((head, word) => (head < 0 ? [] : [[word, head]]));
  const read = source ? ` Read off by ${source}.` : "";
  const most = source ? "are shortest between states" : "add up to the most attention between words";
  if (!gold) return `Arcs that ${most}; punctuation is left out.${read}`;
  const right = arcs.filter(([word, head]) => has(gold, word, head, directed)).length;
  return (
    `Above: annotated (${by}). Below: ${right} of ${arcs.length} arcs are annotated, too; ` +
    `the broken ones are not. ${words.length} words, without punctuation.${read}`
  );
}

function listed({ words, heads, gold, directed }) {
  const told = heads.flatMap((head, word) => {
    if (head < 0) return [];
    const mark = !gold || has(gold, word, head, directed) ? "" : " (not annotated)";
    return [`${apart(words[head])} ${directed ? "→" : "–"} ${apart(words[word])}${mark}`];
  });
  return told.join(", ");
}
