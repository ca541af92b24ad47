// The search for heads: a ranked list, and the ranks in the grid.

import { at, element, isSame, nameOf } from "./elements.js";

const LISTED = 10;

export class Search {
  constructor({ ask, choose }) {
    this.choose = choose;
    this.queries = [null];
    at("search").addEventListener("change", () => ask(this.queries[Number(at("search").value)]));
  }

  prepare({ relations, patterns, live }) {
    this.live = live;
    this.known = [
      ["Heads that attend, in this text", relations.map((r) => [r.title, { kind: "relation", name: r.name }])],
      ["Heads that attend to", patterns.map((p) => [p.title, { kind: "pattern", name: p.name }])],
    ];
  }

  // The last entry names the chosen head, so the menu is made again for each choice.
  show(query, chosen) {
    const single = this.live && chosen && chosen.layer !== null && chosen.head !== null;
    const target = query?.kind === "similar" ? query : single && { kind: "similar", ...chosen };
    const similar = target
      ? [["Heads with similar maps", [[`like layer ${target.layer}, head ${target.head}`, target]]]]
      : [];
    if (query?.kind === "similar" && single && !isSame(query, { kind: "similar", ...chosen })) {
      similar[0][1].push([`like layer ${chosen.layer}, head ${chosen.head}`, { kind: "similar", ...chosen }]);
    }
    const shown = JSON.stringify([query, similar]);
    if (this.shown === shown) return;
    this.shown = shown;
    this.queries = [null];
    const groups = [...this.known, ...similar].map(([label, entries]) =>
      element("optgroup", { label }, entries.map(([text, what]) => this.#option(text, what))),
    );
    at("search").replaceChildren(element("option", { value: 0, text: "(choose what to look for)" }), ...groups);
    at("search").value = Math.max(0, this.queries.findIndex((what) => isSame(what, query)));
    if (!query) this.#clear();
  }

  #option(text, what) {
    this.queries.push(what);
    return element("option", { value: this.queries.length - 1, text });
  }

  #clear() {
    at("ranking").replaceChildren();
    at("found").textContent = "";
  }

  showFound({ heads, found, unit }) {
    at("found").textContent = heads.length ? `${found}. Score: ${unit}.` : found;
    const most = Math.max(1e-9, ...heads.map(({ score }) => Math.abs(score)));
    at("ranking").replaceChildren(
      ...heads.slice(0, LISTED).map(({ layer, head, score }) => {
        const bar = element("span", { class: "bar" });
        bar.style.width = `${(100 * Math.abs(score)) / most}%`;
        const button = element("button", { type: "button", on: { click: () => this.choose({ layer, head }) } }, [
          element("span", { class: "name", text: nameOf({ layer, head }) }),
          element("span", { class: "track" }, [bar]),
          element("span", { class: "score", text: score.toFixed(3) }),
        ]);
        return element("li", {}, [button]);
      }),
    );
  }

  static ranksOf({ heads }) {
    return heads.length ? new Map(heads.map(({ layer, head }, i) => [`${layer} ${head}`, i + 1])) : null;
  }
}
