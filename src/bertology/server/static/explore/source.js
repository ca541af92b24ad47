// Where the text comes from: the user types it, or it is an example of ours or of a task.

import { get } from "../server.js";
import { at, element } from "./elements.js";

const PAUSE = 250; // milliseconds without a key before the model is asked
const SHORT = 60; // letters of an example in the menu

export class Source {
  constructor({ change, complain }) {
    Object.assign(this, { change, complain, waiting: null });
    for (const id of ["text", "pair"]) at(id).addEventListener("input", () => this.#soon());
    at("add-pair").addEventListener("click", () => this.#showPair(true));
    at("drop-pair").addEventListener("click", () => {
      at("pair").value = "";
      this.#showPair(false);
      this.#now();
    });
    at("examples").addEventListener("change", () => this.#pick());
    at("another").addEventListener("click", () => this.#fromTask(this.task, this.number + 1));
  }

  prepare({ examples, tasks, limits }) {
    this.examples = examples;
    const cut = (text) => (text.length > SHORT ? `${text.slice(0, SHORT)} …` : text);
    const groups = [
      ["Sentences", examples.map(({ text }, i) => [`example ${i}`, cut(text)])],
      ["From a task", tasks.map(({ name, title }) => [`task ${name}`, title])],
    ].filter(([, entries]) => entries.length);
    at("examples").replaceChildren(
      element("option", { value: "", text: "Examples …" }),
      ...groups.map(([label, entries]) =>
        element("optgroup", { label }, entries.map(([value, text]) => element("option", { value, text }))),
      ),
    );
    at("limits").textContent = `at most ${limits.tokens} tokens`;
  }

  // Whether the user has typed something that was not sent yet.
  get isTyping() {
    return this.waiting !== null;
  }

  get isEmpty() {
    return at("text").value.trim() === "";
  }

  show({ text, pair }) {
    if (this.isTyping) return; // the text in the fields is newer
    if (at("text").value !== text) at("text").value = text;
    if ((at("pair").value || null) !== pair) at("pair").value = pair ?? "";
    if (pair !== null) at("pair-field").hidden = false;
    at("add-pair").hidden = !at("pair-field").hidden;
  }

  #showPair(shown) {
    at("pair-field").hidden = !shown;
    at("add-pair").hidden = shown;
    if (shown) at("pair").focus();
    else at("add-pair").focus();
  }

  #soon() {
    clearTimeout(this.waiting);
    // Before the model is known, nothing can be asked.
    this.waiting = setTimeout(() => (this.examples ? this.#now() : this.#soon()), PAUSE);
  }

  #now(more = {}) {
    clearTimeout(this.waiting);
    this.waiting = null;
    this.change({ text: at("text").value, pair: at("pair").value.trim() ? at("pair").value : null, ...more });
  }

  #pick() {
    const [kind, ...rest] = at("examples").value.split(" ");
    if (kind === "task") this.#fromTask(rest.join(" "), 0);
    else if (kind === "example") this.#use(this.examples[Number(rest[0])], "");
  }

  async #fromTask(task, number) {
    Object.assign(this, { task, number });
    try {
      const found = await get(`/api/examples?task=${encodeURIComponent(task)}&number=${number}`);
      if (task !== this.task || number !== this.number) return;
      this.number = (found.number + 1) % found.total === 0 ? -1 : found.number; // back to the first
      const label = found.label === null || found.label === undefined ? "" : `; label: ${found.label}`;
      this.#use(found, `Example ${found.number + 1} of ${found.total}${label}`);
      at("another").hidden = false;
    } catch (error) {
      this.complain(error);
    }
  }

  #use({ text, pair, masked }, note) {
    at("text").value = text;
    at("pair").value = pair ?? "";
    at("pair-field").hidden = !pair;
    at("add-pair").hidden = Boolean(pair);
    at("example-note").textContent = note;
    at("another").hidden = !note;
    this.#now({ masked: masked ?? [] });
  }
}
