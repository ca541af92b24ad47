// Heads worth seeing in a text: one that goes from a verb to its subject, and the sink, a head that
// leaves its attention at the token that ends the text.

import { at, element, nameOf, percent } from "./elements.js";

export const SUBJECT = { kind: "relation", name: "verb-subject" };
export const SINK = { kind: "pattern", name: "separator" };
export const BEFORE = { kind: "pattern", name: "previous" };
export const AFTER = { kind: "pattern", name: "next" };
export const MOST = 0.5; // a sink takes most of the attention
const CLEAR = 0.3; // a head that gives less of its attention does not show the relation

// The best head of a search, or null. `said` names what was found, without its source, and `from` are
// the pieces that the first link goes from.
export function bestOf({ best, found, from }) {
  return best && { ...best, said: found.replace(/ \(by [^()]*\)$/u, ""), from };
}

// A head that attends to the token before finds many subjects, but follows no grammar: what counts is
// what it gives beyond its usual attention at this distance.
export const isClear = (best) => best !== null && best.beyond >= Math.max(CLEAR, best.score / 2);

export class WorthSeeing {
  constructor({ choose }) {
    this.choose = choose;
  }

  show({ subject, sink, end }) {
    const offers = [
      isClear(subject) && [`${subject.said}`, subject],
      sink?.score > MOST && [`the sink: most goes to ${end}`, sink],
    ].filter(Boolean);
    at("worth").hidden = offers.length === 0;
    at("worth").replaceChildren(
      element("span", { class: "quiet", text: "Worth seeing here:" }),
      ...offers.map(([text, { layer, head, score }]) =>
        element("button", {
          type: "button",
          text: `${text} (${percent(score)}; layer ${layer}, head ${head})`,
          "aria-label": `Show ${text}: ${nameOf({ layer, head })}, ${percent(score)}`,
          on: { click: () => this.choose({ layer, head }) },
        }),
      ),
    );
  }

  hide() {
    at("worth").hidden = true;
  }
}
