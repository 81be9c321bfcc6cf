/**
 * A string that must not be seen: it shows itself as `[secret]` wherever it is printed, logged or put into JSON, and
 * gives its value only to who asks for it by name.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The value itself. Call it where the secret goes onto the wire or is sealed, and nowhere else. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return '[secret]';
  }

  toJSON(): string {
    return '[secret]';
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return '[secret]';
  }
}
