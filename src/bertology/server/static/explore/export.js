// Saves a view: as a picture, as a link or as lines of Python.

import { post } from "../server.js";
import { at, nameOf } from "./elements.js";
import { gridPicture, linesPicture, matrixPicture, toPng, toSvg } from "./picture.js";

function download(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000); // the browser may still be reading
}

const fileName = (words) =>
  words.join(" ").toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");

export async function save(picture, kind, words) {
  const blob =
    kind === "svg" ? new Blob([toSvg(picture)], { type: "image/svg+xml" }) : await toPng(picture);
  download(blob, `${fileName(words)}.${kind}`);
  return `Saved as ${fileName(words)}.${kind}.`;
}

// Copied if the browser allows it, and always shown, so that users can copy it by hand.
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

// Lines of Python, to copy.
export function showCode(code) {
  at("code").textContent = code;
  at("code-copied").textContent = "";
  at("code-dialog").showModal();
}

export class Exports {
  constructor({ current, link, say, complain }) {
    Object.assign(this, { current, link, say, complain });
    for (const button of document.querySelectorAll("button[data-save]")) {
      button.addEventListener("click", () => this.#attempt(() => this.#save(button.dataset.save)));
    }
    at("copy-link").addEventListener("click", () => this.#attempt(() => this.#copyLink()));
    at("copy-python").addEventListener("click", () => this.#attempt(() => this.#showPython()));
    at("code-copy").addEventListener("click", async () => {
      const copied = await copyText(at("code").textContent);
      at("code-copied").textContent = copied ? "Copied." : "Select the lines and press Ctrl+C.";
    });
    at("code-close").addEventListener("click", () => at("code-dialog").close());
  }

  async #attempt(step) {
    try {
      const said = await step();
      if (said) this.say(said);
    } catch (error) {
      this.complain(error);
    }
  }

  #save(what) {
    const [subject, kind] = what.split(" ");
    const { maps, model, page } = this.current();
    if (!maps) return "";
    const name = model.name.split(/[\\/]/).filter(Boolean).at(-1); // of a path only the last name
    if (subject === "grid") return save(gridPicture(maps, `${name}: all heads`), kind, [name, "all heads"]);
    const map = maps.map(page.chosen);
    const full = page.scale === "common" ? 1 : map.full;
    const title = `${name}: ${nameOf(page.chosen)}`;
    const picture =
      page.look === "matrix"
        ? matrixPicture(map, title, full, page.filter)
        : linesPicture(map, title, full, page.filter);
    return save(picture, kind, [name, nameOf(page.chosen), page.look]);
  }

  async #copyLink() {
    const copied = await copyText(this.link());
    return copied ? "Link copied." : "The link is the address of this page; copy it from the address bar.";
  }

  async #showPython() {
    const { view, page } = this.current();
    const { layer, head } = page.chosen;
    const single = layer !== null && head !== null;
    const place = single ? { layer, head } : { layer: null, head: null }; // a mean: all maps
    const { code } = await post("/api/python", { view, ...place });
    showCode(code);
    return "";
  }
}
