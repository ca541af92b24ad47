// The address of the page holds all that is shown. Browsers change it slowly, so this waits until an
// answer is drawn, but not for long.

const LATEST = 400; // milliseconds

export class Address {
  #timer = null; // while the address is not up to date

  constructor(write) {
    this.write = write;
  }

  keepSoon() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.keep(), LATEST);
  }

  keep() {
    if (this.#timer === null) return;
    clearTimeout(this.#timer);
    this.#timer = null;
    try {
      window.history.replaceState(null, "", this.write());
    } catch {
      // In a cell of a notebook the page has no address of its own.
    }
  }

  get link() {
    this.keep();
    return window.location.href;
  }
}
