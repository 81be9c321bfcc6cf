import { type Clock, DAY, HOUR } from '../../core/clock.ts';
import { type RateLimit, TokenBuckets } from '../../system/limits/token-buckets.ts';

/** A problem that has not been resolved. */
interface OpenProblem {
  /** When it began, on the boot clock in ms. */
  readonly since: number;
  times: number;
  readonly subjects: Set<string>;
  /** When it was last logged, and for how long it is not logged again, in ms; null until it has been logged. */
  logged: { readonly at: number; readonly silence: number } | null;
}

/** What a log line says of a problem. */
export interface ProblemSummary {
  /** How often it has occurred since it began. */
  readonly occurrences: number;
  /** Seconds since it began. */
  readonly durationSeconds: number;
  /** How many subjects it has affected. */
  readonly subjectCount: number;
}

/** Limits how often the start of an intermittent problem is logged; a problem that lasts is logged regardless. */
const START_LOG_LIMIT: RateLimit = { burst: 3, interval: 2 * HOUR };

/**
 * Decides when a problem that occurs on every attempt is worth a log line: when it begins, then after an hour, two,
 * four and so on while it lasts (at least once a day), and when it is resolved. A problem that comes and goes
 * too often is not logged when it begins, but as soon as the limit permits it. Its end is logged only if its start was.
 */
export class LogDeduplicator {
  readonly #clock: Clock;
  readonly #problems = new Map<string, OpenProblem>();
  readonly #startBuckets = new TokenBuckets();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Records an occurrence of a problem.
   * @param key what fails, and where
   * @param subject what it has affected, such as an appliance
   * @returns null if that is not worth a log line
   */
  recordOccurrence(key: string, subject: string): ProblemSummary | null {
    const now = this.#clock.now().uptime;
    const problem = this.#problems.get(key) ?? { since: now, times: 0, subjects: new Set<string>(), logged: null };
    this.#problems.set(key, problem);
    problem.times += 1;
    problem.subjects.add(subject);
    if (problem.logged === null) {
      if (this.#startBuckets.take(key, START_LOG_LIMIT, now) > 0) return null;
      problem.logged = { at: now, silence: HOUR };
    } else {
      const { at, silence } = problem.logged;
      if (now - at < silence) return null;
      problem.logged = { at: now, silence: Math.min(DAY, 2 * silence) };
    }
    return summaryOf(problem, now);
  }

  /** Records that a problem is resolved, if there was one. @returns null if that is not worth a log line */
  recordResolution(key: string): ProblemSummary | null {
    const problem = this.#problems.get(key);
    this.#problems.delete(key);
    return problem === undefined || problem.logged === null ? null : summaryOf(problem, this.#clock.now().uptime);
  }
}

function summaryOf({ times, since, subjects }: OpenProblem, now: number): ProblemSummary {
  return { occurrences: times, durationSeconds: Math.round((now - since) / 1000), subjectCount: subjects.size };
}
