/** Runs one piece of work after another. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve();

  /** Resolves when everything that was requested so far has ended. */
  get idle(): Promise<unknown> {
    return this.#last;
  }

  /** Runs work after everything that was requested before, even if that failed. */
  run<Result>(work: () => Promise<Result> | Result): Promise<Result> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return done;
  }
}
