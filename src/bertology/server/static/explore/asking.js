// Questions to the server: of each kind only the newest counts, and older ones are cancelled.

const PATIENCE = 1500; // milliseconds until a busy server is asked again

export class Asking {
  #newest = new Map(); // question -> the controller that aborts it
  #troubles = new Map(); // question -> what went wrong the last time
  #waiting = []; // questions of the series that have no answer yet
  #turn = 0;
  #running = 0;

  constructor({ showBusy, showTrouble }) {
    this.showBusy = showBusy;
    this.showTrouble = showTrouble;
  }

  // One question by itself; other questions are not cancelled. Returns whether it was answered.
  async ask(question) {
    this.#newest.get(question)?.abort();
    const controller = new AbortController();
    const { signal } = controller;
    this.#newest.set(question, controller);
    this.#count(1);
    try {
      await question(signal);
      if (!signal.aborted) this.#troubles.delete(question);
    } catch (error) {
      if (!signal.aborted) this.#troubles.set(question, error);
    } finally {
      this.#count(-1);
    }
    const [trouble] = this.#troubles.values();
    this.showTrouble(trouble ?? null);
    return !signal.aborted && !this.#troubles.has(question);
  }

  // A series of questions, one after the other: there are few cores, and the first answer is the
  // most urgent. Questions of the last series that have no answer yet come at the end.
  async askInTurn(questions) {
    this.#turn += 1;
    const mine = this.#turn;
    for (const question of questions) this.#newest.get(question)?.abort();
    this.#waiting = [...questions, ...this.#waiting.filter((q) => !questions.includes(q))];
    this.#count(1); // until the series ends, not only until its next answer
    while (mine === this.#turn && this.#waiting.length) {
      const answered = await this.ask(this.#waiting[0]);
      if (mine !== this.#turn) break;
      if (answered) this.#waiting.shift();
      else this.#waiting = []; // the others would only fail in the same way
    }
    this.#count(-1);
  }

  // Cancel all questions, and forget all errors.
  drop() {
    this.#turn += 1;
    this.#waiting = [];
    this.#newest.forEach((controller) => controller.abort());
    this.#troubles.clear();
    this.showTrouble(null);
  }

  #count(step) {
    const was = this.#running > 0;
    this.#running += step;
    if (was !== this.#running > 0) this.showBusy(!was);
  }
}

// The server computes only a few means at once. If it is busy, wait and ask again; this is no error.
export async function whenFree(question, { signal, onBusy }) {
  for (;;) {
    try {
      return await question();
    } catch (error) {
      if (!error.isBusy || signal.aborted) throw error;
    }
    onBusy();
    await new Promise((done) => setTimeout(done, PATIENCE));
    signal.throwIfAborted();
  }
}
