// Which examples of a corpus a classifier answers rightly: the menu that keeps only those, or the
// others.

import { post } from "../server.js";
import { at, element } from "./elements.js";

const NAMES = { all: "all examples", right: "only right answers", wrong: "only wrong answers" };

export class JudgedExamples {
  constructor({ change }) {
    Object.assign(this, { only: "all", isPossible: false, task: null, total: 1 });
    at("judged").addEventListener("change", () => {
      this.only = at("judged").value;
      change();
    });
  }

  // The model must answer every example once; the page does not wait for it until it is needed.
  prepare(task, only = "all") {
    if (!this.isPossible || task === this.task) return;
    Object.assign(this, { task, only });
    this.answers = post("/api/judged", { task });
    this.#fill(null);
    at("judged").hidden = true;
    this.answers.then(
      (answers) => task === this.task && this.#fill(answers),
      () => {}, // whoever needs the answers hears of it
    );
  }

  hide() {
    this.task = null;
    this.only = "all";
    at("judged").hidden = true;
  }

  #fill(answers) {
    const counts = answers && { right: answers.right.length, wrong: answers.wrong.length };
    at("judged").hidden = !answers?.matched;
    at("judged").replaceChildren(
      ...Object.entries(NAMES).map(([value, text]) => {
        const count = counts?.[value];
        return element("option", { value, text: count === undefined ? text : `${text} (${count})`, disabled: count === 0 });
      }),
    );
    at("judged").value = this.only;
  }

  // The number of the example after `number`, or of the first one; after the last comes the first.
  async next(number) {
    if (this.only === "all") return number === null || number + 1 >= this.total ? 0 : number + 1;
    const wanted = (await this.answers)[this.only];
    const found = wanted.find((one) => number !== null && one > number) ?? wanted[0];
    if (found === undefined) throw new Error(`There are no examples of this kind: ${NAMES[this.only]}.`);
    return found;
  }
}
