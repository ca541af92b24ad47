// Presentation mode: large type for a projector, and only what is looked at.

import { at } from "./elements.js";

export class Presenting {
  constructor({ change }) {
    at("present").addEventListener("click", () => change(!this.isOn));
  }

  get isOn() {
    return document.documentElement.classList.contains("presenting");
  }

  show(isOn) {
    document.documentElement.classList.toggle("presenting", isOn);
    at("present").setAttribute("aria-pressed", isOn);
  }
}
