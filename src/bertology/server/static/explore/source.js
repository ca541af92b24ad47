// Where the text comes from: the user types it, or it is an example of ours or of a corpus.

import { get } from "../server.js";
import { at, element } from "./elements.js";
import { JudgedExamples } from "./judged.js";

const PAUSE = 250; // milliseconds without a key before the model is asked
const SHORT = 60; // letters of an example in the menu

export class Source {
  constructor({ change, complain }) {
    Object.assign(this, { change, complain, waiting: null, example: null });
    this.judged = new JudgedExamples({ change: () => this.#fromTask(this.example.task, null) });
    for (const id of ["text", "pair"]) at(id).addEventListener("input", () => this.#soon());
    at("add-pair").addEventListener("click", () => this.#showPair(true));
    at("drop-pair").addEventListener("click", () => {
      at("pair").value = "";
      this.#showPair(false);
      this.#now();
    });
    at("examples").addEventListener("change", () => this.#pick());
    at("another").addEventListener("click", () => this.#fromTask(this.example.task, this.example.number));
  }

  prepare({ examples, tasks, limits, can }) {
    this.examples = examples;
    this.judged.isPossible = can.classes;
    const cut = (text) => (text.length > SHORT ? `${text.slice(0, SHORT)} …` : text);
    const own = tasks.filter((task) => task.own);
    const others = tasks.filter((task) => !task.own);
    const entry = ({ name, title }) => [`task ${name}`, title];
    const groups = [
      ["Your data", own.map(entry)],
      ["Sentences", examples.map(({ text }, i) => [`example ${i}`, cut(text)])],
      ["From a task", others.map(entry)],
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
    at("add-pair").hidden = !at("pair-field").hidden || this.example !== null;
  }

  // The first example of a corpus, in place of a sentence of ours.
  begin(task) {
    at("examples").value = `task ${task}`;
    return this.#fromTask(task, null);
  }

  // A link names an example of a corpus: its text is on the page already, its label is not.
  async restore(example) {
    if (!example) {
      this.#forget();
      return;
    }
    try {
      at("examples").value = `task ${example.task}`;
      this.judged.prepare(example.task, example.only);
      this.#note(await askExample(example.task, example.number), example.only);
    } catch (error) {
      this.complain(error);
    }
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
    this.waiting = setTimeout(() => (this.examples ? this.#typed() : this.#soon()), PAUSE);
  }

  #typed() {
    this.#forget();
    this.#now();
  }

  // What is typed is no example any more.
  #forget() {
    this.example = null;
    at("examples").value = "";
    at("example-note").textContent = "";
    at("another").hidden = true;
    at("add-pair").hidden = !at("pair-field").hidden;
    this.judged.hide();
  }

  #now(more = {}) {
    clearTimeout(this.waiting);
    this.waiting = null;
    this.change({ text: at("text").value, pair: at("pair").value.trim() ? at("pair").value : null, ...more });
  }

  #pick() {
    const [kind, ...rest] = at("examples").value.split(" ");
    if (kind === "task") this.begin(rest.join(" "));
    else if (kind === "example") {
      const { value } = at("examples");
      this.#forget();
      at("examples").value = value;
      this.#use(this.examples[Number(rest[0])]);
    }
  }

  // The example after `number` among those that are wanted; with null the first of them.
  async #fromTask(task, number) {
    const mine = {};
    this.asked = mine; // only the newest choice counts
    try {
      this.judged.prepare(task);
      const next = await this.judged.next(number);
      const found = await askExample(task, next);
      if (this.asked !== mine) return;
      this.#note(found, this.judged.only);
      this.#use(found, this.example);
    } catch (error) {
      this.complain(error);
    }
  }

  #note({ task, number, total, label }, only) {
    this.example = { task, number, only };
    this.judged.total = total;
    const gold = label === null || label === undefined ? "" : ` · gold label: ${label}`;
    at("example-note").textContent = `Example ${number + 1} of ${total}${gold}`;
    at("another").hidden = false;
  }

  #use({ text, pair, masked }, example = null) {
    at("text").value = text;
    at("pair").value = pair ?? "";
    at("pair-field").hidden = !pair;
    at("add-pair").hidden = Boolean(pair) || example !== null; // an example is shown as it is
    this.#now({ masked: masked ?? [], example });
  }
}

const askExample = (task, number) => get(`/api/examples?task=${encodeURIComponent(task)}&number=${number}`);
