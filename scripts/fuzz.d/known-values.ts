import fc from 'fast-check';

/** Values of a kind that are known at a time. */
const VALUES_PER_KIND = 8;

/** A kind of value that is in answers to requests of a path: the beginning of that, and a pattern whose group it is. */
export type ExtractionRule<Kind extends string> = readonly [path: string, kind: Kind, pattern: RegExp];

/**
 * What an attacker knows at first and learns from answers: the newest values of each kind. There are always as many, so that
 * a seed and a path choose the same again.
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

  /** One of these, as they are known when a request is made. */
  one(kind: Kind): fc.Arbitrary<string> {
    return fc.constantFrom(...Array(VALUES_PER_KIND).keys()).map((index) => this.#values[kind][index] ?? '');
  }

  /** Takes what was issued in an answer. @param path of its request */
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
