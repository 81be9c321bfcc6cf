import fc from 'fast-check';

/** The number of known values of each kind. */
const VALUES_PER_KIND = 8;

/**
 * Extracts a kind of value from responses: the beginning of the request's path, and a pattern whose group is the value.
 */
export type ExtractionRule<Kind extends string> = readonly [path: string, kind: Kind, pattern: RegExp];

/**
 * The values that an attacker knows at first and learns from responses: the newest ones of each kind. Their number is
 * constant, so that a seed and a path make the same choices again.
 */
export class KnownValues<Kind extends string> {
  readonly #values: Readonly<Record<Kind, string[]>>;
  readonly #next = new Map<Kind, number>();

  constructor(first: Readonly<Record<Kind, readonly string[]>>) {
    const repeated = Object.entries<readonly string[]>(first).map(([kind, some]) => [
      kind,
      Array.from({ length: VALUES_PER_KIND }, (_, index) => some[index % some.length] ?? ''),
    ]);
    this.#values = Object.fromEntries(repeated) as Record<Kind, string[]>;
  }

  /** One of the values that are known when the request is made. */
  one(kind: Kind): fc.Arbitrary<string> {
    return fc.constantFrom(...Array(VALUES_PER_KIND).keys()).map((index) => this.#values[kind][index] ?? '');
  }

  /** Adds the values that a response issued. @param path of its request */
  learn(lessons: readonly ExtractionRule<Kind>[], path: string, answer: string): void {
    for (const [of, kind, pattern] of lessons) {
      if (path.startsWith(of)) this.add(kind, pattern.exec(answer)?.[1]);
    }
  }

  all(kind: Kind): readonly string[] {
    return this.#values[kind];
  }

  add(kind: Kind, value: string | undefined): void {
    if (value === undefined) return;
    const next = this.#next.get(kind) ?? 0;
    this.#values[kind][next] = value;
    this.#next.set(kind, (next + 1) % VALUES_PER_KIND);
  }
}
