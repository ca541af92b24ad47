// What the page says about the model, and which of its parts this model has no use for.

import { at, element } from "./elements.js";
import { legible } from "./letters.js";

export const AVERAGED = 32; // examples of a task, at most

export function describeModel(model, { predicts, canMask }) {
  const millions = (model.parameters / 1e6).toFixed(1);
  at("model").textContent =
    `${model.name}: ${model.family}, ${model.layers} layers × ${model.heads} heads, ` +
    `${model.hidden} dimensions, ${millions} million parameters`;
  document.title = `${model.name} · bertology ${model.live ? "explore" : "view"}`;
  at("annotate").hidden = !model.annotate;
  at("predicting").hidden = !predicts;
  at("levels").hidden = model.can.words === false;
  at("mask-hint").hidden = !canMask;
  at("no-predictions").classList.toggle("never", !canMask); // there is no word to hide
  at("averaging-field").hidden = model.tasks.length === 0;
  at("averaging").replaceChildren(
    element("option", { value: "", text: "this text" }),
    ...model.tasks.map(({ name, title }) =>
      element("option", { value: name, text: `mean of up to ${AVERAGED} examples: ${title}` }),
    ),
  );
  if (!model.live) showText(model.examples[0]);
}

// A page that is one file has one text, which cannot be changed.
function showText({ text, pair }) {
  document.querySelector("h1").textContent = "The attention of a model to one text";
  at("kept-text").textContent = legible(pair ? `${text}\n${pair}` : text);
  at("copy-link").hidden = window.location.protocol === "about:"; // a cell of a notebook
  const frame = frameOf();
  const fit = () => (frame.style.height = `${document.body.scrollHeight + 8}px`);
  if (frame) new ResizeObserver(fit).observe(document.body);
}

// The frame that a notebook shows the page in, if it lets the page see it.
function frameOf() {
  try {
    return window.frameElement;
  } catch {
    return null;
  }
}

// The special tokens at the beginning and at the end of a text, or null.
export function endsOf({ originals, special }) {
  const known = originals.filter((_, i) => special[i]);
  const first = special[0] ? originals[0] : null;
  return [first, known.length && special.at(-1) ? known.at(-1) : null];
}
