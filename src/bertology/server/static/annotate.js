// Shows one map after the other and takes a key or a click for each. The server writes each label
// to the file at once.

import { AttentionMap } from "./attention-map.js";
import { get, post } from "./server.js";

const at = (id) => document.getElementById(id);
const buttons = [...at("types").querySelectorAll("button")];
const map = new AttentionMap(at("map"), at("cell"));

let state = null;
let shown = null; // the number of the map on the page; only this one can be labelled
let busy = true;

function say(done) {
  const skipped = state.skipped ? `, ${state.skipped} skipped` : "";
  const counted = `${state.labelled} of ${state.total} labelled${skipped}.`;
  at("status").textContent = [done, counted].filter(Boolean).join(" ");
  at("progress").max = state.total;
  at("progress").value = state.labelled;
  at("who").textContent = `${state.annotator}, pass ${state.pass}; labels go to ${state.file}`;
}

function complain(error) {
  at("trouble").textContent = error ? error.message : "";
  at("trouble").hidden = !error;
}

// Not `disabled`: a disabled button loses the focus, which users of the keyboard need.
function mark() {
  at("work").setAttribute("aria-busy", busy);
  for (const button of [...buttons, at("skip")]) {
    button.setAttribute("aria-disabled", shown === null);
  }
  for (const id of ["undo", "undo-last"]) {
    at(id).setAttribute("aria-disabled", !state?.can_undo);
  }
}

function showTexts({ text, text_b: second, boundary }) {
  at("text").textContent = text;
  at("text-b").textContent = second ?? "";
  at("text-b").hidden = second === null;
  at("has-boundary").hidden = boundary === null;
}

function finish() {
  const left = state.skipped
    ? `${state.skipped} were skipped; the same command shows them again.`
    : "For another pass, in another order, run the same command with the next number as --pass.";
  at("finished-text").textContent = `${state.labelled} of ${state.total} are labelled. ${left}`;
  at("finished-title").focus();
}

async function showCurrent() {
  shown = null;
  const over = state.current === null;
  at("work").hidden = over;
  at("finished").hidden = !over;
  if (over) {
    finish();
    return;
  }
  const found = await get(`/annotate/api/maps/${state.current}`);
  map.show(found);
  showTexts(found);
  shown = found.number;
}

// All actions go through here, one at a time. A key that is pressed while one runs is ignored: the
// user has not seen the next map yet.
async function proceed(step) {
  if (busy) return;
  busy = true;
  mark();
  try {
    const done = await step();
    complain(null);
    say(done);
    await showCurrent();
  } catch (error) {
    complain(error);
  }
  busy = false;
  mark();
}

function label(button) {
  if (shown === null) return;
  proceed(async () => {
    const name = button.dataset.label;
    state = await post("/annotate/api/label", { number: shown, label: name });
    return `Labelled ${name}.`;
  });
}

function skip() {
  if (shown === null) return;
  proceed(async () => {
    state = await post("/annotate/api/skip", { number: shown });
    return "Skipped.";
  });
}

function undo() {
  if (!state?.can_undo) return;
  proceed(async () => {
    state = await post("/annotate/api/undo", {});
    return "Back to the previous map.";
  });
}

function onKey(event) {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
  const button = buttons.find((b) => b.getAttribute("aria-keyshortcuts") === event.key);
  if (button) label(button);
  else if (event.key === "s") skip();
  else if (event.key === "u") undo();
}

document.addEventListener("keydown", onKey);
buttons.forEach((button) => button.addEventListener("click", () => label(button)));
at("skip").addEventListener("click", skip);
at("undo").addEventListener("click", undo);
at("undo-last").addEventListener("click", undo);

busy = false;
proceed(async () => {
  state = await get("/annotate/api/state");
  return "";
});
