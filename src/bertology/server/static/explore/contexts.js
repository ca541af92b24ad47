// Words in contexts: the occurrences of a word in a plane, coloured by sense, or else by cluster.

import { post } from "../server.js";
import { Plane } from "../points.js";
import { Asking, whenFree } from "./asking.js";
import { at, element, isSame } from "./elements.js";
import { save, showCode } from "./export.js";

const FIRST = "bank"; // the word to begin with, where the bundled sentences have it
const METHODS = {
  pca: ["PCA", "PCA keeps large distances: what is far apart here is far apart in the states."],
  "t-sne": ["t-SNE", "t-SNE keeps neighbours: who is near whom counts, distances between groups say little."],
  umap: ["UMAP", "UMAP keeps neighbours: who is near whom counts, distances between groups say little."],
};
const MANY = 200; // texts that take a while
const LINE = /^(.*?)(?:\t+| \| *)([^\t|]*)$/; // a text, then its sense

// Lines of the field; what follows a tab or a bar is a sense.
function contextsOf(lines) {
  return lines.split("\n").filter((line) => line.trim()).map((line) => {
    const [, text, sense] = LINE.exec(line) ?? [null, line, ""];
    return { text: text.trim(), sense: sense.trim() || null };
  });
}

export class Contexts {
  #asking = new Asking({
    showBusy: (busy) => at("contexts").setAttribute("aria-busy", busy),
    showTrouble: (error) => {
      at("contexts-trouble").textContent = error ? error.message : "";
      at("contexts-trouble").hidden = !error;
    },
  });
  #plane = null;
  #shown = null; // what the plane shows: { asked, answer }
  #read = null; // the text that was read last

  // `changed` gets what the address must hold; `look` shows a text's attention.
  constructor({ changed, look }) {
    this.changed = changed;
    this.look = look;
    at("contexts-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#ask();
    });
    for (const id of ["layer", "pooling", "method", "clusters"]) {
      at(`contexts-${id}`).addEventListener("change", () => this.#shown && this.#ask());
    }
    at("contexts-texts").addEventListener("input", () => this.#showClusters());
    at("contexts-box").addEventListener("toggle", () => {
      if (at("contexts-box").open && !this.#shown && at("contexts-word").value) this.#ask();
    });
    for (const kind of ["png", "svg"]) {
      at(`contexts-${kind}`).addEventListener("click", () => this.#save(kind));
    }
    at("contexts-python").addEventListener("click", () => this.#asking.ask(this.#python));
    at("contexts-look").addEventListener("click", () => this.look(this.#read));
  }

  prepare({ contexts, layers, name, live }) {
    if (!live) return; // a copy of the page cannot ask the model
    this.model = name.split(/[\\/]/).filter(Boolean).at(-1);
    this.most = contexts.most;
    const option = (value, text) => element("option", { value, text });
    at("contexts-words").replaceChildren(...contexts.words.map((word) => option(word, word)));
    at("contexts-word").value = contexts.words.includes(FIRST) ? FIRST : (contexts.words[0] ?? "");
    const numbers = Array.from({ length: layers }, (_, i) => option(i, `layer ${i}`));
    at("contexts-layer").replaceChildren(option(-1, "embeddings"), ...numbers);
    at("contexts-layer").value = layers - 1;
    at("contexts-method").replaceChildren(...contexts.methods.map((method) => option(method, METHODS[method][0])));
    at("contexts-limits").textContent =
      `At most ${contexts.most.toLocaleString("en")} texts of ${contexts.longest.toLocaleString("en")} characters.`;
    this.#plane = new Plane({ noun: "sense", of: "occurrences" });
    this.#plane.onread = (text) => {
      this.#read = text;
      at("contexts-look").hidden = text === null;
    };
    at("contexts-plane").replaceChildren(this.#plane.element);
    this.#showClusters();
  }

  // What a link holds; null: nothing was asked.
  restore(kept) {
    if (!kept || !this.#plane || isSame(kept, this.#shown?.kept)) return;
    for (const [key, value] of Object.entries(kept)) at(`contexts-${key}`).value = value;
    for (const id of ["layer", "pooling", "method"]) {
      const menu = at(`contexts-${id}`);
      if (menu.selectedIndex < 0) menu.selectedIndex = menu.options.length - 1; // of another model
    }
    this.#showClusters();
    at("contexts-box").open = true;
    this.#ask();
  }

  get #asked() {
    const value = (id) => at(`contexts-${id}`).value;
    return {
      word: value("word").trim(),
      contexts: contextsOf(value("texts")),
      layer: Number(value("layer")),
      pooling: value("pooling"),
      method: value("method"),
      clusters: Math.min(Math.max(Math.round(Number(value("clusters"))) || 3, 2), 10),
    };
  }

  // Clusters are looked for only where senses are not known.
  #showClusters() {
    const contexts = contextsOf(at("contexts-texts").value);
    at("contexts-clusters-field").hidden = !contexts.length || contexts.some(({ sense }) => sense);
  }

  #ask() {
    return this.#asking.ask(this.#answer);
  }

  #answer = async (signal) => {
    const asked = this.#asked;
    if (!asked.word) throw new Error("Give a word to look for, such as: bank");
    const { length } = asked.contexts;
    const patience = length > MANY ? `Reading ${length.toLocaleString("en")} texts. This may take a minute …` : "Reading …";
    at("contexts-note").textContent = patience;
    try {
      const answer = await whenFree(() => post("/api/contexts", asked, { signal }), {
        signal,
        onBusy: () => (at("contexts-note").textContent = "The server is busy. The plane will come in a moment."),
      });
      this.#show(asked, answer);
    } finally {
      if (!signal.aborted && at("contexts-note").textContent.startsWith("Reading")) at("contexts-note").textContent = "";
    }
  };

  #show(asked, answer) {
    const { layer, pooling, method, clusters, word } = asked;
    const kept = { word, texts: at("contexts-texts").value, layer, pooling, method, clusters };
    this.#shown = { asked, kept };
    const where = layer < 0 ? "embeddings" : `layer ${layer}`;
    this.title = `${word}: ${where}, ${METHODS[method][0]}`;
    this.#plane.noun = answer.kind;
    this.#plane.show(answer, this.title);
    const isCluster = answer.kind === "cluster";
    const kinds = isCluster
      ? `Colours are clusters that k-means finds in the states (${clusters} were asked for). They are not senses: ` +
        "no sense was given."
      : asked.contexts.length ? "Colours are the senses that you gave." : "Colours are the senses that these sentences were made for.";
    at("contexts-note").textContent = `${answer.note} ${kinds} ${METHODS[method][1]}`;
    at("contexts-shown").hidden = false;
    this.changed(kept);
  }

  #save(kind) {
    const picture = this.#plane.picture(`${this.model}: ${this.title}`, at("contexts-note").textContent);
    return save(picture, kind, [this.model, this.title]);
  }

  #python = async (signal) => {
    const { code } = await post("/api/contexts/python", this.#shown.asked, { signal });
    showCode(code);
  };
}
