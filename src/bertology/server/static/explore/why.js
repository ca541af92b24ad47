// Why this answer: how much each word matters to it, by the method that the reader chooses.

import { post } from "../server.js";
import { whenFree } from "./asking.js";
import { at, element, percent } from "./elements.js";
import { apart, legible } from "./letters.js";

const LISTED = 3; // words that are told to screen readers
const SIDES = ["First text", "Second text"];

// Three digits that count, whatever the scale: shares of attention are small, log-odds are not.
const shown = (value) => `${value < 0 ? "−" : ""}${Math.abs(value).toPrecision(3)}`;

export class Why {
  #methods = [];

  constructor({ change }) {
    at("why-method").addEventListener("change", () => change(at("why-method").value));
  }

  prepare({ attributions, live }) {
    this.#methods = live ? (attributions ?? []) : [];
    at("why").hidden = this.#methods.length === 0;
    at("why-method").replaceChildren(
      ...this.#methods.map(({ name, title }) => element("option", { value: name, text: title })),
    );
  }

  // A link may name a method that this page does not have.
  #method(name) {
    return this.#methods.find((method) => method.name === name) ?? this.#methods[0];
  }

  show(name) {
    const method = this.#method(name);
    if (!method) return;
    at("why-method").value = method.name;
    at("why-about").textContent = `${method.about.charAt(0).toUpperCase()}${method.about.slice(1)}.`;
  }

  async ask({ view, page }, signal) {
    const method = this.#method(page.why);
    if (!method) return;
    try {
      const question = () => post("/api/attributions", { view, method: method.name }, { signal });
      const answer = await whenFree(question, {
        signal,
        onBusy: () => { at("why-answer").textContent = "The server is busy. The answer will come in a moment."; },
      });
      if (!signal.aborted) this.#draw(answer, method);
    } catch (error) {
      if (signal.aborted) throw error;
      this.#complain(error); // said here: the rest of the page is as it should be
    }
  }

  #complain(error) {
    at("why-trouble").textContent = error.message;
    at("why-trouble").hidden = false;
    at("why-answer").textContent = "";
    at("why-frame").replaceChildren();
  }

  #draw({ answer, probability, words }, { title, signed }) {
    at("why-trouble").hidden = true;
    const most = Math.max(1e-12, ...words.map(({ relevance }) => Math.abs(relevance ?? 0)));
    const first = words
      .filter(({ special }) => !special)
      .sort((a, b) => b.relevance - a.relevance)
      .slice(0, LISTED);
    const isPair = words.some(({ side }) => side === 1);
    const whose = (side) => (isPair ? ` (${SIDES[side].toLowerCase()})` : ""); // a word may be in both
    const told = first.map(({ word, side }) => `“${apart(word)}”${whose(side)}`).join(", ");
    at("why-answer").textContent = `The model says ${answer} (${percent(probability)}). By ${title}, these words matter most: ${told || "none"}.`;
    at("why-frame").replaceChildren(
      element("table", {}, [
        element("caption", { text: signed ? "Below 0: the word speaks against the answer." : "All are 0 or more." }),
        element("thead", {}, [
          element("tr", {}, [
            element("th", { scope: "col", text: "Word" }),
            element("td", { class: "bars" }),
            element("th", { scope: "col", text: "Relevance" }),
          ]),
        ]),
        ...SIDES.slice(0, isPair ? 2 : 1).map((title, side) =>
          element("tbody", {}, [
            ...(isPair ? [this.#heading(title)] : []),
            ...words.filter((word) => !word.special && word.side === side).map((word) => this.#row(word, most)),
          ]),
        ),
      ]),
    );
  }

  #heading(text) {
    return element("tr", { class: "side" }, [element("th", { scope: "rowgroup", colspan: 3, text })]);
  }

  #row({ word, relevance }, most) {
    const bar = element("span", { class: `bar ${relevance < 0 ? "against" : "for"}` });
    bar.style.width = `${(100 * Math.abs(relevance)) / most}%`;
    return element("tr", {}, [
      element("th", { scope: "row", text: legible(word), title: word }),
      element("td", { class: "bars" }, [element("span", { class: "track" }, [bar])]),
      element("td", { text: shown(relevance) }),
    ]);
  }
}
