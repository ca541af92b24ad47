// A tour in six steps: each shows something on the page and says what it is. The numbers are those
// of the model on the page, so the tour also works, and stays true, with a model that nobody knows.

import { at, nameOf, percent } from "./elements.js";
import { endsOf } from "./about.js";
import { AFTER, BEFORE, MOST, SINK, SUBJECT, isClear } from "./worth-seeing.js";

const named = (words) => `“${words}”`;

// Each step gets what `aboutTour` found.
const STEPS = [
  function tokens({ maps, ends }) {
    const [first, last] = ends;
    const added = first && last ? ` It adds ${first} at the beginning and ${last} at the end.` : "";
    return {
      title: "What the model reads",
      text: `A model does not read letters or words. It reads tokens: a frequent word is one token, a rare word is cut into several pieces.${added} This text has ${maps.size} tokens.`,
      target: ".tokens",
    };
  },
  function heads({ maps }) {
    const count = maps.layers * maps.heads;
    return {
      title: `${count} heads, ${count} maps`,
      text: `Each head shares out attention: how much does every token look at every other token? Here is one small map for each head, ${maps.layers} layers from top to bottom and ${maps.heads} heads from left to right. A row of a map is one token that looks; its cells add up to 100 %. Vertical stripes, diagonals, single points: heads do different things.`,
      target: ".heads",
    };
  },
  function step({ before, after }) {
    const [best, where] = after && (!before || after.score > before.score) ? [after, "next"] : [before, "previous"];
    if (!best) return lookYourself;
    const isStep = best.score > MOST;
    return {
      title: isStep ? "A head that looks one step aside" : "Does a head look one step aside?",
      text: !isStep
        ? `In many models some heads look only at the token before or after. Here ${nameOf(best).toLowerCase()} comes nearest: it gives ${percent(best.score)} of its attention to the ${where} token.`
        : `${nameOf(best)} gives ${percent(best.score)} of its attention to the ${where} token: the map shows a diagonal line. Such a head follows the order of the words, not their meaning.`,
      target: ".chosen",
      page: { chosen: best },
    };
  },
  function sink({ sink: best, ends }) {
    if (!best) return lookYourself;
    const end = ends[1] ?? "the last token";
    if (best.score <= MOST) {
      return {
        title: "Is there a sink?",
        text: `In many models some heads leave most of their attention at ${end}, a token without a meaning of its own. Not here: ${nameOf(best).toLowerCase()} gives most to it, ${percent(best.score)}.`,
        target: ".chosen",
        page: { chosen: best },
      };
    }
    return {
      title: "The sink",
      text: `${nameOf(best)} gives ${percent(best.score)} of its attention to ${end}, a token without a meaning of its own. Attention must go somewhere, as each row adds up to 100 %. Clark et al. (2019) think that heads do this when they find nothing to look for. So much attention does not always mean that a token is important.`,
      target: ".chosen",
      page: { chosen: best },
    };
  },
  function grammar({ subject, telling }) {
    if (!subject) {
      const { place, from, to, weight } = telling;
      return {
        title: "A head that looks at other words",
        text: `In ${nameOf(place).toLowerCase()}, ${named(from)} gives ${percent(weight)} of its attention to ${named(to)}. Is this grammar, meaning, or chance? One sentence cannot tell: look at more of them.`,
        target: ".chosen",
        page: { chosen: place, look: "lines" },
      };
    }
    const told = `${subject.said} (${percent(subject.score)} of the attention of the verb)`;
    return isClear(subject)
      ? {
          title: "From a verb to its subject",
          text: `${nameOf(subject)} goes from a verb to its subject: ${told}. Nobody told the model what a subject is. One sentence may be chance: try others. A thick line is much attention.`,
          target: ".chosen",
          page: { chosen: subject, look: "lines" },
        }
      : {
          title: "From a verb to its subject?",
          text: `We looked for heads that go from a verb to its subject. The best one is ${nameOf(subject).toLowerCase()}, and it gives little: ${told}. In this text, no single head of this model does it.`,
          target: ".chosen",
          page: { chosen: subject, look: "lines" },
        };
  },
  function without({ model, subject, telling, change }) {
    const verb = subject?.from ?? [];
    const place = subject ?? telling.place;
    const hides = model.can.masked && verb.length > 0;
    if (!model.live || !(hides || model.can.classes || model.value)) return lookYourself;
    const hidden = hides ? "The verb is hidden, so the model must guess it. " : "";
    return {
      title: "Is this head needed?",
      text: `${hidden}${nameOf(place)} is now switched off: it attends to all tokens alike.${change ? ` The largest change: ${change}` : ""} If the answer changes, the head was needed; if not, others do the same work. Switch off more heads and try!`,
      target: "#predicting",
      view: { masked: hides ? verb : [], off: [place.layer, place.head] },
      page: { chosen: place },
    };
  },
];

const lookYourself = {
  title: "Look for yourself",
  text: "“Find heads” puts all heads in an order: those that look from a verb to its object, at the word before, at punctuation, and so on. The ten best get a number in the grid. Click any map to enlarge it, and read the weights under it.",
  target: ".finding",
  page: { search: { kind: "pattern", name: "focused" } },
};

// What the steps talk about, on one text: the best heads of some searches, and its words.
export async function aboutTour({ maps, model, ask }) {
  const [before, after] = [await ask(BEFORE), await ask(AFTER)];
  const [subject, sink] = [await ask(SUBJECT), await ask(SINK)];
  const place = maps.mostTelling();
  const telling = { place, ...maps.strongestWords(place) };
  return { maps, model, before, after, subject, sink, telling, ends: endsOf(maps) };
}

export class Tour {
  // `prepare` shows the sentence of the tour and finds what it talks about; `show` puts a step on the
  // page; `told` is what is known then; `ended` is called at the end.
  constructor(acts) {
    this.acts = acts;
    this.number = null;
    at("start-tour").addEventListener("click", () => this.go(0));
    at("tour-back").addEventListener("click", () => this.go(this.number - 1));
    at("tour-next").addEventListener("click", () => (this.isLast ? this.end() : this.go(this.number + 1)));
    at("tour-end").addEventListener("click", () => this.end());
  }

  static length = STEPS.length;

  get isLast() {
    return this.number === STEPS.length - 1;
  }

  get isOn() {
    return this.number !== null;
  }

  async go(number) {
    this.number = number;
    this.found ??= await this.acts.prepare();
    if (!this.found) {
      this.end();
      return;
    }
    const { view = {}, page = {} } = STEPS[number](this.found);
    const change = await this.acts.show(number, { view, page });
    if (this.number === number) this.#draw(change);
  }

  // A link leads into the middle of a tour: what is on the page stays, only the words are added.
  async resume(number) {
    this.number = number;
    this.found ??= await this.acts.find();
    if (this.found && this.number === number) this.#draw("");
    else this.end();
  }

  // The tour is over. The page stays as it is, and the keyboard goes back to where the tour began.
  end({ focus = true } = {}) {
    if (!this.isOn) return;
    this.number = null;
    this.found = null;
    at("tour").hidden = true;
    this.#point(null);
    if (focus) at("start-tour").focus();
    this.acts.ended();
  }

  #draw(change) {
    const { title, text, target } = STEPS[this.number]({ ...this.found, change });
    at("tour-count").textContent = `Step ${this.number + 1} of ${STEPS.length}`;
    at("tour-title").textContent = title;
    at("tour-text").textContent = text;
    at("tour-back").disabled = this.number === 0;
    at("tour-next").textContent = this.isLast ? "Finish" : "Next";
    at("tour-end").hidden = this.isLast;
    at("tour").hidden = false;
    at("tour-title").focus({ preventScroll: true });
    this.#point(document.querySelector(target));
  }

  #point(target) {
    for (const old of document.querySelectorAll(".toured")) old.classList.remove("toured");
    document.body.classList.toggle("touring", target !== null);
    target?.classList.add("toured");
    target?.scrollIntoView({ block: "start" });
  }
}
