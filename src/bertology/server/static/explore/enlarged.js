// The chosen head, or a mean of heads: as a matrix or as lines, for all tokens or for one; or as a
// tree.

import { currentRamp } from "./colour.js";
import { at, element, nameOf, percent } from "./elements.js";
import { apart, legible } from "./letters.js";
import { Lines } from "./lines.js";
import { Matrix } from "./matrix.js";
import { Tree } from "./tree.js";

const HINTS = {
  matrix: "Point at a cell to see its weight; click a token at the edge to see only its row or column.",
  lines: "Point at a token to see only its lines; click it to keep this choice.",
  tree: "",
};

export class Enlarged {
  constructor({ change }) {
    this.change = change;
    const acts = { say: (cell) => this.#say(cell), filter: (filter) => this.#filter(filter) };
    this.views = { matrix: new Matrix(at("matrix"), acts), lines: new Lines(at("lines"), acts) };
    this.tree = new Tree({ change });
    at("filter-token").addEventListener("change", () => this.#filterByMenu());
    at("filter-direction").addEventListener("change", () => this.#filterByMenu());
    at("scale").addEventListener("change", () => change({ scale: at("scale").value }));
    for (const radio of document.querySelectorAll("input[name=look]")) {
      radio.addEventListener("change", () => change({ look: radio.value }));
    }
  }

  show(maps, { chosen, isOff, look, scale, filter, averaged, tree }) {
    this.map = maps.map(chosen);
    this.options = { look, scale, filter };
    this.name(chosen, isOff);
    at("averaged").textContent = averaged ?? "";
    at("averaged").hidden = !averaged;
    this.#menus(maps);
    for (const [name, view] of Object.entries(this.views)) {
      at(name).hidden = name !== look;
      if (name === look) view.show(this.map, { scale, filter });
    }
    at("tree").hidden = look !== "tree";
    for (const one of document.querySelectorAll("[data-of-map]")) one.hidden = look === "tree";
    if (look === "tree") this.tree.show(tree.found, { ...tree, chosen });
    this.#legend();
    this.#say(null);
  }

  name(chosen, isOff) {
    at("chosen-title").textContent = nameOf(chosen) + (isOff ? " (off)" : "");
  }

  #menus(maps) {
    const { look, scale, filter } = this.options;
    document.querySelector(`input[name=look][value=${look}]`).checked = true;
    at("scale").value = scale;
    if (this.tokens !== maps.tokens) {
      this.tokens = maps.tokens;
      const options = maps.tokens.map((token, i) => element("option", { value: i, text: `${i + 1}. ${apart(legible(token))}` }));
      at("filter-token").replaceChildren(element("option", { value: "", text: "every token" }), ...options);
    }
    at("filter-token").value = filter && filter.token < maps.size ? filter.token : "";
    at("filter-direction").value = filter?.direction ?? at("filter-direction").value;
  }

  #filterByMenu() {
    const token = at("filter-token").value;
    const direction = at("filter-direction").value;
    this.change({ filter: token === "" ? null : { token: Number(token), direction } });
  }

  // Choosing the same token again removes the filter.
  #filter(filter) {
    const kept = this.options.filter;
    const again = filter && kept?.token === filter.token && kept.direction === filter.direction;
    this.change({ filter: again ? null : filter });
  }

  #legend() {
    const { scale } = this.options;
    at("legend-most").textContent =
      scale === "common" || this.map.full === 1
        ? "100 %"
        : `${percent(this.map.peak)}, its maximum`;
    for (const canvas of document.querySelectorAll("canvas.ramp")) {
      const context = canvas.getContext("2d");
      for (let x = 0; x < canvas.width; x += 1) {
        context.fillStyle = currentRamp().css(x / (canvas.width - 1));
        context.fillRect(x, 0, 1, canvas.height);
      }
    }
    at("legend-boundary").hidden = this.map.boundary === null || this.options.look !== "matrix";
  }

  #say(cell) {
    at("cell").classList.toggle("hint", !cell);
    if (!cell) {
      at("cell").textContent = HINTS[this.options?.look] ?? "";
      return;
    }
    const { tokens, size } = this.map;
    const where = `row ${cell.row + 1}, column ${cell.column + 1} of ${size}`;
    at("cell").textContent =
      `${apart(legible(tokens[cell.row]))} → ${apart(legible(tokens[cell.column]))}: ${percent(cell.weight)} of its attention (${where})`;
  }
}
