// The list of what is switched off, and the dimensions, which the grid does not show.

import { at, element, nameOf } from "./elements.js";
import { isAnythingOff } from "./state.js";

const HOWS = {
  uniform: "equal attention to all tokens",
  zero: "no output",
  mean: "mean output",
};

export class Switches {
  constructor({ turn, clear, how, outliers }) {
    this.turn = turn;
    this.outliers = outliers;
    at("all-on").addEventListener("click", clear);
    at("how").addEventListener("change", () => how(at("how").value));
    at("dimension-form").addEventListener("submit", (event) => {
      event.preventDefault();
      const field = at("dimension");
      if (field.value !== "" && field.checkValidity()) this.turn({ dimension: field.valueAsNumber });
      field.select();
    });
    at("outliers").addEventListener("toggle", () => at("outliers").open && outliers());
  }

  prepare({ hows, hidden }) {
    at("how").replaceChildren(
      ...hows.map((how) => element("option", { value: how, text: HOWS[how] ? `${how}: ${HOWS[how]}` : how })),
    );
    at("dimension").max = hidden - 1;
    at("dimension-hint").textContent = `0 to ${hidden - 1}`;
  }

  show(off) {
    at("how").value = off.how;
    const items = [
      ...off.layers.map((layer) => [`Layer ${layer}`, { layer, head: null }]),
      ...off.heads.map(([layer, head]) => [nameOf({ layer, head }), { layer, head }]),
      ...off.dimensions.map((dimension) => [`Dimension ${dimension}`, { dimension }]),
    ].map(([name, what]) => this.#chip(name, what));
    at("off-list").replaceChildren(...items);
    at("nothing-off").hidden = isAnythingOff(off);
    at("all-on").hidden = !isAnythingOff(off);
    for (const box of at("outlier-list").querySelectorAll("input")) {
      box.checked = off.dimensions.includes(Number(box.value));
    }
  }

  #chip(name, what) {
    const button = element("button", {
      type: "button",
      text: `${name} ×`,
      "aria-label": `Switch on again: ${name}`,
      on: { click: () => this.turn(what) },
    });
    return element("li", {}, [button]);
  }

  get wantsOutliers() {
    return at("outliers").open;
  }

  showOutliers({ dimensions, rule }, off) {
    at("outlier-rule").textContent = dimensions.length ? rule : `None here. ${rule}`;
    at("outlier-list").replaceChildren(
      ...dimensions.map(({ dimension, ratio, layers, norms, in_study: inStudy }) => {
        const box = element("input", {
          type: "checkbox",
          value: dimension,
          on: { change: () => this.turn({ dimension }) },
        });
        box.checked = off.dimensions.includes(dimension);
        const whose = inStudy ? "of the weights" : "of this text";
        const weights = norms.length ? `; weights far off in layers ${ranges(norms)}` : "";
        const where = layers.length ? `; large in layers ${ranges(layers)}` : "";
        const size = `${ratio.toFixed(1)} × the median size`;
        const text = `${dimension}, ${whose}${weights}; ${size}${where}`;
        return element("li", {}, [element("label", {}, [box, element("span", { text })])]);
      }),
    );
  }
}

// 1, 2, 3, 5 → 1–3, 5
function ranges(numbers) {
  const runs = [];
  for (const number of [...numbers].sort((a, b) => a - b)) {
    const last = runs.at(-1);
    if (last && number === last[1] + 1) last[1] = number;
    else runs.push([number, number]);
  }
  return runs.map(([from, to]) => (from === to ? from : `${from}–${to}`)).join(", ");
}
