// The page of the explorer: what the user does, what the server is asked, and what is drawn.

import { get, post } from "../server.js";
import { AVERAGED, describeModel, endsOf } from "./about.js";
import { Address } from "./address.js";
import { Asking, whenFree } from "./asking.js";
import { onSchemeChange } from "./colour.js";
import { Contexts } from "./contexts.js";
import { at, isSame, nameOf } from "./elements.js";
import { Enlarged } from "./enlarged.js";
import { Exports } from "./export.js";
import { Grid } from "./grid.js";
import { Maps } from "./maps.js";
import { keptMasks } from "./masks.js";
import { clearPredictions, describeChange, showPredictions } from "./predictions.js";
import { Presenting } from "./presenting.js";
import { Search } from "./search.js";
import { Source } from "./source.js";
import { isAnythingOff, isHeadOff, newState, readLink, turn, writeLink } from "./state.js";
import { Switches } from "./switches.js";
import { TokenRow } from "./tokens.js";
import { HeadTree } from "./tree.js";
import { Tour, aboutTour } from "./tour.js";
import { Why } from "./why.js";
import { SINK, SUBJECT, WorthSeeing, bestOf, isClear } from "./worth-seeing.js";

const TOP = 8; // predictions for each masked token
const FRAMELESS = 200; // milliseconds; if no frame comes in this time, the page stops waiting for it
const SCALES = {
  own: "to each map’s own maximum.",
  common: "to the largest weight of all maps.",
};

let state = newState();
let model = null;
let maps = null; // of the text
let means = null; // of a task, while its maps are shown in place of the text's
let ranks = null;
let predictionsSeen = null; // a promise, as soon as there are predictions
let isChosen = false; // whether the user has chosen a head
let change = ""; // what the last switching off changed, in one sentence
let mode = "look"; // what a click in the grid does: "look" or "switch"

const address = new Address(() => writeLink(state));
const shownMaps = () => (state.page.mean && means ? means : maps);
const isGone = ({ layer, head }) => (model.gone ?? []).some(([l, h]) => l === layer && h === head);
const isOff = (place) => state.view.off.layers.includes(place.layer) || isHeadOff(state.view.off, place);
const predicts = () => model.can.masked || model.can.classes || model.value;
// A classifier has no use for hidden words; a model without any head shows what they do to its maps.
const canMask = () =>
  model.live && model.mask_token !== null && (model.can.masked || !(model.can.classes || model.value));

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
  at("mask-hint").hidden = stale || !model || !canMask(); // also if no model could be loaded
}

function say(text) {
  at("status").textContent = text;
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
  enlarged.show(shown, { chosen, isOff: isOff(chosen), look, scale, filter, averaged, tree: headTree.of(state, model) });
  tokenRow.show(maps, view.masked, canMask());
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
  why.show(state.page.why);
  presenting.show(state.page.present);
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
  const isTyped = (words) => model.can.masked && words?.includes(model.mask_token);
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
  change = answer.after ? describeChange(answer) : "";
  if (change) say(change);
}

async function askWhy(signal) {
  await why.ask(state, signal);
}

async function askMeans(signal) {
  if (!state.page.mean) return;
  const asked = { task: state.page.mean, examples: AVERAGED, off: state.view.off };
  if (isSame(means?.asked, asked)) return; // the mean does not depend on the text
  const buffer = await whenFree(() => post("/api/mean", asked, { signal, read: "arrayBuffer" }), {
    signal,
    onBusy: () => say("The server is busy. The mean will come in a moment."),
  });
  means = Object.assign(new Maps(buffer), { asked });
  draw();
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
  if (!model.live || mean || !maps || chosen.layer === null || chosen.head === null || isGone(chosen)) return;
  maps.refine(chosen, await post("/api/map", { view: state.view, ...chosen }, { signal }));
  if (!signal.aborted) draw();
}

async function askChosen(signal) {
  await askExact(signal);
  if (maps && (await headTree.ask(state, model, signal))) draw();
}

async function askBest(query, signal) {
  if (query.kind === "relation" && !model.can.words) return null; // its words are not known
  return bestOf(await post("/api/search", { view: state.view, query }, { signal }));
}

async function askWorth(signal) {
  const [subject, sink] = [await askBest(SUBJECT, signal), await askBest(SINK, signal)];
  if (!signal.aborted) worth.show({ subject, sink, end: endsOf(maps)[1] });
}

// Means take long, so they come last.
const AFTER_TEXT = [askMaps, askPredictions, askSearch, askOutliers, askChosen, askWorth, askWhy, askMeans];
// After switching, users wait for the predictions, so these come first.
const AFTER_SWITCH = [askPredictions, askMaps, askSearch, askChosen, askWorth, askWhy, askMeans];

const AFTER_MASK = [askPredictions, askMaps, askSearch, askOutliers, askChosen, askWorth, askWhy];

const asking = new Asking({
  showBusy: (busy) => {
    at("panes").setAttribute("aria-busy", busy);
    if (!busy) address.keep();
  },
  showTrouble: complain, // the last drawing stays
});

// ---- doing ---------------------------------------------------------------------------------

function changeView(part, steps) {
  state.view = { ...state.view, ...part };
  address.keepSoon();
  const asked = asking.askInTurn(steps); // first: the rest can be done while the server works
  drawControls();
  return asked;
}

function changeText({ text, pair, masked, example = null }) {
  tour.end({ focus: false });
  if (text.trim() === "") {
    asking.drop();
    say("Type a text to see its maps.");
    return;
  }
  const ownMaps = maps?.text === state.view.text ? maps : null;
  Object.assign(state.page, { filter: null, example });
  say("");
  changeView({ text, pair, masked: masked ?? keptMasks(state.view, { text, pair }, ownMaps) }, AFTER_TEXT);
}

// Asked separately, so that choosing another head does not delay or restart long questions.
function changePage(part, question = askChosen) {
  state.page = { ...state.page, ...part };
  address.keepSoon();
  drawControls();
  draw();
  return asking.ask(question);
}

function choose(place) {
  if (mode === "switch") {
    toggle(place);
    return;
  }
  isChosen = true;
  changePage({ chosen: place });
  say(`${nameOf(place)} is shown.`);
}

function toggle(what) {
  if (!model.live) return; // a copy of the page cannot ask the model
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
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.key === "o") toggle(state.page.chosen);
  else if (event.key === "p") present(!state.page.present);
  else if (event.key === "Escape" && tour.isOn) tour.end();
  else if (event.key === "Escape" && state.page.present) present(false);
}

function present(isOn) {
  state.page.present = isOn;
  presenting.show(isOn);
  address.keepSoon();
  draw(); // other sizes of type need other sizes of maps
}

// ---- the tour ------------------------------------------------------------------------------

// The sentence of the tour: the first one of the page, whole, and nothing off.
function tourView() {
  const { text, pair } = model.examples[0];
  const { off } = newState().view;
  return { ...newState().view, text, pair: pair ?? null, off: { ...off, how: state.view.off.how } };
}

// What the tour talks about; null if there are no maps.
async function findForTour() {
  const none = new AbortController().signal;
  return maps && aboutTour({ maps, model, ask: (query) => askBest(query, none) });
}

async function showStep(number, { view, page }) {
  const off = view.off ? { heads: [view.off] } : {};
  const wanted = { ...tourView(), ...view };
  wanted.off = { ...tourView().off, ...off };
  const { layer = null, head = null } = page.chosen ?? state.page.chosen ?? {};
  const { present: isPresented, contexts: planes, why: method } = state.page;
  const kept = { present: isPresented, contexts: planes, why: method, tour: number, chosen: { layer, head } };
  const isOther = !isSame(wanted.text, state.view.text) || !isSame(wanted.pair, state.view.pair);
  state.page = { ...newState().page, ...page, ...kept };
  ranks = null;
  if (isOther) source.restore(null);
  await changeView(wanted, isOther ? AFTER_TEXT : AFTER_SWITCH);
  return change;
}

// ---- beginning -----------------------------------------------------------------------------

const grid = new Grid(at("grid"), at("pointed"), { choose, toggle });
const headTree = new HeadTree(post);
const enlarged = new Enlarged({ change: (part) => changePage(part) });
const tokenRow = new TokenRow({ mask });
const why = new Why({ change: (method) => changePage({ why: method }, askWhy) });
const worth = new WorthSeeing({ choose: (place) => choose(place) });
const presenting = new Presenting({ change: present });
const tour = new Tour({
  prepare: async () => {
    await showStep(0, { view: {}, page: {} });
    return findForTour();
  },
  find: findForTour,
  show: showStep,
  ended: () => {
    state.page.tour = null;
    address.keepSoon();
  },
});
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
const contexts = new Contexts({
  changed: (kept) => {
    state.page.contexts = kept;
    address.keepSoon();
  },
  look: (words) => {
    changeText({ text: words, pair: null });
    at("text").focus();
  },
});
new Exports({ current: () => ({ maps: shownMaps(), model, ...state }), link: () => address.link, say, complain });

// The first view: an example of the user's own data; else a sentence in which the verb is hidden,
// and the head that goes from the verb to its subject.
async function welcome() {
  const own = model.tasks.find((task) => task.own);
  if (own) {
    await source.begin(own.name);
    if (maps || state.view.text) return; // else it could not be read, and the page says why
  }
  const example = model.examples[0];
  Object.assign(state.view, { text: example.text, pair: example.pair ?? null });
  const { view } = state;
  drawControls();
  await asking.askInTurn(AFTER_TEXT);
  if (state.view !== view || source.isTyping || !maps) return; // the user has changed something
  const subject = isChosen || !maps ? null : await askBest(SUBJECT, new AbortController().signal);
  const verb = subject?.from ?? [];
  const words = maps.originals.flatMap((token, i) => (/^\p{L}{3,}$/u.test(token) ? [i] : []));
  const hidden = verb.length ? verb : words.length ? maps.pieces[words.at(-1)] : [];
  if (!isChosen) state.page.chosen = isClear(subject) ? placeOf(subject) : null;
  if (canMask() && hidden.length) await mask(hidden, true);
  else if (!isChosen) await changePage({});
}

const placeOf = ({ layer, head }) => ({ layer, head });

async function openLink() {
  const { hash } = window.location;
  const found = readLink(hash);
  if (found && !model.live) found.view = { ...tourView(), level: found.view.level }; // its only text
  const hows = model.hows.length ? model.hows : ["uniform"];
  for (const { off } of [state.view, found?.view ?? state.view]) {
    if (!hows.includes(off.how)) [off.how] = hows; // not every model supports all ways
  }
  if (!found) {
    await welcome();
    if (hash.length > 1) complain(new Error("This link cannot be read. Here is an example instead."));
  } else if (!isSame(found, state)) {
    state = found;
    if (!canMask()) state.view.masked = [];
    const { tour: step, example } = state.page;
    drawControls();
    source.restore(example);
    contexts.restore(state.page.contexts);
    await asking.askInTurn(AFTER_TEXT);
    if (step !== null && step < Tour.length) await tour.resume(step);
    else tour.end({ focus: false });
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
  describeModel(model, { predicts: predicts(), canMask: canMask() });
  source.prepare(model);
  switches.prepare(model);
  search.prepare(model);
  contexts.prepare(model);
  why.prepare(model);
  grid.gone = new Set((model.gone ?? []).map(([layer, head]) => `${layer} ${head}`));
  listen();
  await openLink();
} catch (error) {
  complain(error);
}
