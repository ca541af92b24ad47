// The page of the explorer: what the user does, what the server is asked, and what is drawn.

import { get, post } from "../server.js";
import { Asking } from "./asking.js";
import { onSchemeChange } from "./colour.js";
import { at, element, isSame, nameOf } from "./elements.js";
import { Enlarged } from "./enlarged.js";
import { Exports } from "./export.js";
import { Grid } from "./grid.js";
import { Maps } from "./maps.js";
import { keptMasks } from "./masks.js";
import { clearPredictions, describeChange, showPredictions } from "./predictions.js";
import { Search } from "./search.js";
import { Source } from "./source.js";
import { isAnythingOff, isHeadOff, newState, readLink, turn, writeLink } from "./state.js";
import { Switches } from "./switches.js";
import { TokenRow } from "./tokens.js";

const TOP = 8; // predictions for each masked token
const AVERAGED = 32; // examples of a task, at most
const UNLINKED = 400; // milliseconds after which the address is updated at the latest
const FRAMELESS = 200; // milliseconds; if no frame comes in this time, the page stops waiting for it
const PATIENCE = 1500; // milliseconds until a busy server is asked again
const SCALES = {
  own: "to each map’s own maximum.",
  common: "to the largest weight of all maps.",
};

let state = newState();
let model = null;
let maps = null; // of the text
let means = null; // of a task, while its maps are shown in place of the text's
let ranks = null;
let linking = null; // a timer, while the address is not up to date
let predictionsSeen = null; // a promise, as soon as there are predictions
let mode = "look"; // what a click in the grid does: "look" or "switch"

const shownMaps = () => (state.page.mean && means ? means : maps);
const isGone = ({ layer, head }) => (model.gone ?? []).some(([l, h]) => l === layer && h === head);
const isOff = (place) => state.view.off.layers.includes(place.layer) || isHeadOff(state.view.off, place);
const predicts = () => model.can.masked || model.can.classes || model.value;

function complain(error) {
  at("trouble").textContent = error ? error.message : "";
  at("trouble").hidden = !error;
  dim(isStale(error));
}

// If a text cannot be read, the old maps stay, and the page says that they are old.
function isStale(error) {
  if (!maps) return false;
  const { text, pair } = state.view;
  return source.isEmpty || (Boolean(error) && (maps.text !== text || maps.pair !== pair));
}

function dim(stale) {
  for (const id of ["tokens", "panes"]) at(id).classList.toggle("stale", stale);
  at("stale-note").textContent = stale ? "Shown below: the last text that could be read." : "";
  at("mask-hint").hidden = stale || !model?.mask_token; // also if no model could be loaded
}

function say(text) {
  at("status").textContent = text;
}

// Browsers change the address slowly. So this waits until an answer is drawn, but not for long.
function keepLinkSoon() {
  clearTimeout(linking);
  linking = setTimeout(keepLink, UNLINKED);
}

function keepLink() {
  if (linking === null) return;
  clearTimeout(linking);
  linking = null;
  window.history.replaceState(null, "", writeLink(state));
}

// Soon after the next frame, when everything is visible. A page in the background has no frames.
function seen() {
  return new Promise((done) => {
    window.requestAnimationFrame(() => setTimeout(done));
    setTimeout(done, FRAMELESS);
  });
}

function mark(name) {
  return seen().then(() => performance.mark(name)); // a benchmark reads these marks
}

function link() {
  keepLink();
  return window.location.href;
}

// ---- drawing -------------------------------------------------------------------------------

function draw() {
  const shown = shownMaps();
  if (!shown) return;
  const { page, view } = state;
  page.chosen = within(page.chosen ?? maps.mostTelling(), shown);
  page.filter = isAwaited(shown) || fits(page.filter, shown) ? page.filter : null;
  const { chosen, look, scale } = page;
  const filter = fits(page.filter, shown) ? page.filter : null;
  grid.hint = filter
    ? `Stripes: attention ${filter.direction} ${shown.tokens[filter.token]}, in every head.`
    : "Layers from top to bottom, heads from left to right, both numbered from 0.";
  at("grid-scale").textContent = SCALES[scale];
  grid.show(shown, { chosen, off: view.off, ranks, filter, scale, mode });
  const task = shown === means && model.tasks.find(({ name }) => name === page.mean);
  const averaged =
    task && `Mean over ${means.examples} examples, by position in the text: 0 % is its beginning. ${task.title}`;
  at("copy-python").hidden = Boolean(task); // the lines are about one text
  enlarged.show(shown, { chosen, isOff: isOff(chosen), look, scale, filter, averaged });
  tokenRow.show(maps, view.masked, model.mask_token !== null);
}

// A link may name a token that the text does not have.
const fits = (filter, shown) => filter !== null && filter.token < shown.size;

// Whether other maps will replace these; a filter may belong to the other maps.
const isAwaited = (shown) => state.page.mean !== null && shown !== means;

// A link may name heads that another model has.
function within({ layer, head }, { layers, heads }) {
  const last = (index, count) => (index === null ? null : Math.min(index, count - 1));
  return { layer: last(layer, layers), head: last(head, heads) };
}

function drawControls() {
  source.show(state.view);
  switches.show(state.view.off);
  search.show(state.page.search, state.page.chosen);
  at("averaging").value = state.page.mean ?? "";
  document.querySelector(`input[name=level][value=${state.view.level}]`).checked = true;
}

// ---- asking --------------------------------------------------------------------------------

async function askMaps(signal) {
  performance.mark("maps-asked");
  const { view } = state;
  const buffer = await post("/api/maps", { view }, { signal, read: "arrayBuffer" });
  await predictionsSeen; // drawing the maps takes long and would delay the predictions
  if (signal.aborted) return;
  const { text, pair, level } = view;
  maps = Object.assign(new Maps(buffer), { text, pair, level });
  draw();
  mark("maps-drawn");
}

async function askPredictions(signal) {
  const { text, pair, masked } = state.view;
  const isTyped = (words) => model.mask_token !== null && words?.includes(model.mask_token);
  const hidden = masked.length > 0 || [text, pair].some(isTyped);
  if (!predicts() || (!hidden && !model.can.classes && !model.value)) {
    clearPredictions();
    return;
  }
  performance.mark("predictions-asked");
  const answer = await post("/api/predict", { view: state.view, top: TOP }, { signal });
  const originals = new Map();
  maps?.pieces.forEach((pieces, i) => pieces.forEach((piece) => originals.set(piece, maps.originals[i])));
  showPredictions(answer, { originals, asksNext: model.asks_next });
  predictionsSeen = mark("predictions-drawn");
  if (answer.after) say(describeChange(answer));
}

async function askMeans(signal) {
  if (!state.page.mean) return;
  const asked = { task: state.page.mean, examples: AVERAGED, off: state.view.off };
  if (isSame(means?.asked, asked)) return; // the mean does not depend on the text
  const buffer = await whenFree(() => post("/api/mean", asked, { signal, read: "arrayBuffer" }), signal);
  means = Object.assign(new Maps(buffer), { asked });
  draw();
}

// The server computes only a few means at once. If it is busy, wait and ask again; this is no error.
async function whenFree(question, signal) {
  for (;;) {
    try {
      return await question();
    } catch (error) {
      if (!error.isBusy || signal.aborted) throw error;
    }
    say("The server is busy. The mean will come in a moment.");
    await new Promise((done) => setTimeout(done, PATIENCE));
    signal.throwIfAborted();
  }
}

async function askSearch(signal) {
  const query = state.page.search;
  const found = query && (await post("/api/search", { view: state.view, query }, { signal }));
  ranks = found && Search.ranksOf(found);
  if (found) search.showFound(found);
  draw();
}

async function askOutliers(signal) {
  if (!switches.wantsOutliers) return;
  switches.showOutliers(await post("/api/outliers", { view: state.view }, { signal }), state.view.off);
}

// The small maps have 8 bits for each weight; the enlarged map has 16, since users read its numbers.
async function askExact(signal) {
  const { chosen, mean } = state.page;
  if (mean || !maps || chosen.layer === null || chosen.head === null || isGone(chosen)) return;
  maps.refine(chosen, await post("/api/map", { view: state.view, ...chosen }, { signal }));
  if (!signal.aborted) draw();
}

// Means take long, so they come last.
const AFTER_TEXT = [askMaps, askPredictions, askSearch, askOutliers, askExact, askMeans];
// After switching, users wait for the predictions, so these come first.
const AFTER_SWITCH = [askPredictions, askMaps, askSearch, askExact, askMeans];

const AFTER_MASK = [askPredictions, askMaps, askSearch, askOutliers, askExact];

const asking = new Asking({
  showBusy: (busy) => {
    at("panes").setAttribute("aria-busy", busy);
    if (!busy) keepLink();
  },
  showTrouble: complain, // the last drawing stays
});

// ---- doing ---------------------------------------------------------------------------------

function changeView(part, steps) {
  state.view = { ...state.view, ...part };
  keepLinkSoon();
  const asked = asking.askInTurn(steps); // first: the rest can be done while the server works
  drawControls();
  return asked;
}

function changeText({ text, pair, masked }) {
  if (text.trim() === "") {
    asking.drop();
    say("Type a text to see its maps.");
    return;
  }
  const ownMaps = maps?.text === state.view.text ? maps : null;
  state.page.filter = null;
  say("");
  changeView({ text, pair, masked: masked ?? keptMasks(state.view, { text, pair }, ownMaps) }, AFTER_TEXT);
}

// Asked separately, so that choosing another head does not delay or restart long questions.
function changePage(part, question = askExact) {
  state.page = { ...state.page, ...part };
  keepLinkSoon();
  drawControls();
  draw();
  return asking.ask(question);
}

function choose(place) {
  if (mode === "switch") {
    toggle(place);
    return;
  }
  changePage({ chosen: place });
  say(`${nameOf(place)} is shown.`);
}

function toggle(what) {
  if (!what || (what.dimension === undefined && what.layer === null)) {
    say("Only heads and layers can be switched off, not a mean over layers.");
    return;
  }
  if (isGone(what)) {
    say("This head was pruned, so it cannot be switched off.");
    return;
  }
  switchTo(turn(state.view.off, what));
}

function switchTo(off) {
  if (!isAnythingOff(off)) say("Everything is on again.");
  changeView({ off }, AFTER_SWITCH);
  grid.showOff(off);
  if (state.page.chosen) enlarged.name(state.page.chosen, isOff(state.page.chosen));
}

function mask(pieces, hide) {
  const others = state.view.masked.filter((piece) => !pieces.includes(piece));
  const masked = hide ? [...others, ...pieces].sort((a, b) => a - b) : others;
  return changeView({ masked }, AFTER_MASK);
}

function changeMode(next) {
  mode = next;
  document.querySelector(`input[name=mode][value=${mode}]`).checked = true;
  draw();
}

function onKey(event) {
  const typing = event.target.closest?.("input:not([type=radio], [type=checkbox]), textarea, select, dialog");
  if (typing || event.key !== "o" || event.ctrlKey || event.metaKey || event.altKey) return;
  toggle(state.page.chosen);
}

// ---- beginning -----------------------------------------------------------------------------

const grid = new Grid(at("grid"), at("pointed"), { choose, toggle });
const enlarged = new Enlarged({ change: (part) => changePage(part) });
const tokenRow = new TokenRow({ mask });
const source = new Source({ change: changeText, complain });
const search = new Search({
  ask: (query) => changePage({ search: query }, askSearch),
  choose: (place) => changePage({ chosen: place }),
});
const switches = new Switches({
  turn: toggle,
  clear: () => switchTo({ ...newState().view.off, how: state.view.off.how }),
  how: (how) => changeView({ off: { ...state.view.off, how } }, isAnythingOff(state.view.off) ? AFTER_SWITCH : []),
  outliers: () => asking.ask(askOutliers),
});
new Exports({ current: () => ({ maps: shownMaps(), model, ...state }), link, say, complain });

function describeModel() {
  const millions = (model.parameters / 1e6).toFixed(1);
  at("model").textContent =
    `${model.name}: ${model.family}, ${model.layers} layers × ${model.heads} heads, ` +
    `${model.hidden} dimensions, ${millions} million parameters`;
  document.title = `${model.name} · bertology explore`;
  at("annotate").hidden = !model.annotate;
  at("predicting").hidden = !predicts();
  at("levels").hidden = model.can.words === false;
  at("mask-hint").hidden = model.mask_token === null;
  at("averaging-field").hidden = model.tasks.length === 0;
  at("averaging").replaceChildren(
    element("option", { value: "", text: "this text" }),
    ...model.tasks.map(({ name, title }) =>
      element("option", { value: name, text: `mean of up to ${AVERAGED} examples: ${title}` }),
    ),
  );
}

// The first view: an example in which the verb is hidden, or else the last word.
async function welcome() {
  const example = model.examples[0];
  Object.assign(state.view, { text: example.text, pair: example.pair ?? null, masked: example.masked ?? [] });
  const { view } = state;
  drawControls();
  await asking.askInTurn(AFTER_TEXT);
  if (state.view !== view || source.isTyping) return; // the user has already changed something
  if (!maps || view.masked.length || model.mask_token === null) return;
  const words = maps.originals.flatMap((token, i) => (/^\p{L}{3,}$/u.test(token) ? [i] : []));
  const verb = words.find((i) => /^(are|is|was|were)$/.test(maps.originals[i]));
  state.page.chosen = null; // choose a head again, for the masked word
  if (words.length) await mask(maps.pieces[verb ?? words.at(-1)], true);
}

async function openLink() {
  const { hash } = window.location;
  const found = readLink(hash);
  const hows = model.hows.length ? model.hows : ["uniform"];
  for (const { off } of [state.view, found?.view ?? state.view]) {
    if (!hows.includes(off.how)) [off.how] = hows; // not every model supports all ways
  }
  if (!found) {
    await welcome();
    if (hash.length > 1) complain(new Error("This link cannot be read. Here is an example instead."));
  } else if (!isSame(found, state)) {
    state = found;
    drawControls();
    await asking.askInTurn(AFTER_TEXT);
  }
}

function listen() {
  document.addEventListener("keydown", onKey);
  window.addEventListener("hashchange", openLink);
  onSchemeChange(draw);
  for (const radio of document.querySelectorAll("input[name=mode]")) {
    radio.addEventListener("change", () => changeMode(radio.value));
  }
  for (const radio of document.querySelectorAll("input[name=level]")) {
    radio.addEventListener("change", () => {
      state.page.filter = null;
      changeView({ level: radio.value }, AFTER_TEXT);
    });
  }
  at("averaging").addEventListener("change", () => {
    means = null;
    changePage({ mean: at("averaging").value || null, filter: null }, askMeans);
  });
}

try {
  model = await get("/api/model");
  describeModel();
  source.prepare(model);
  switches.prepare(model);
  search.prepare(model);
  grid.gone = new Set((model.gone ?? []).map(([layer, head]) => `${layer} ${head}`));
  listen();
  await openLink();
} catch (error) {
  complain(error);
}
