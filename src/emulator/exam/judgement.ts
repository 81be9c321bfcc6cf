export type Verdict = 'passed' | 'failed' | 'not_applicable';

/** The end of a situation that was not passed. */
export class Judgement extends Error {
  override readonly name = 'Judgement';
  readonly verdict: Exclude<Verdict, 'passed'>;

  /** @param seen what was seen on the wire */
  constructor(verdict: Exclude<Verdict, 'passed'>, seen: string) {
    super(seen);
    this.verdict = verdict;
  }
}

/** Ends a situation: the client is wrong. */
export function fail(seen: string): never {
  throw new Judgement('failed', seen);
}

/** Ends a situation: the client does not do what it is about. */
export function doesNotApply(seen: string): never {
  throw new Judgement('not_applicable', seen);
}
