/** A commit that takes longer than this is slow, in ms. On a good SD card one takes some ten milliseconds. */
const SLOW_COMMIT = 1000;
/** The time whose commits are evaluated, in ms. */
const WINDOW = 15 * 60_000;
/** At least so many commits are evaluated, however old they are: a hub with one login commits twice an hour. */
const MIN_COMMITS = 8;
/** At most so many commits are kept. */
const MAX_COMMITS = 256;
/** The store becomes slow when this share of the evaluated commits is slow. */
const SLOW_SHARE = 1 / 2;
/** It stays slow as long as this share is. */
const STILL_SLOW_SHARE = 1 / 4;
/**
 * The slow commits must have begun at so many times, each at least {@link OCCURRENCE_INTERVAL} after the one before: a
 * burst at the start of the machine or during an update does not count.
 */
const MIN_OCCURRENCES = 3;
/** In ms. */
const OCCURRENCE_INTERVAL = 60_000;
/** A single commit that is in progress for so long makes the store slow, in ms. */
const MAX_IN_PROGRESS = 120_000;

/** How long the latest commits took. All durations are in ms. */
export interface CommitSummary {
  /** How many commits are summarized, and how many of them took longer than a second. */
  readonly count: number;
  readonly slowCount: number;
  /** The median, the 90th percentile and the longest duration; 0 if there is no commit. */
  readonly median: number;
  readonly p90: number;
  readonly longest: number;
  /** For how long the store has been slow, since its first slow commit; null if it is not slow. */
  readonly slowFor: number | null;
}

interface Commit {
  /** On the clock of {@link CommitTimes}. */
  readonly began: number;
  readonly duration: number;
}

/**
 * Measures commits, and decides whether the store is slow, as on an SD card that is about to fail.
 *
 * It evaluates the commits of the last 15 minutes, and at least the last 8. The store becomes slow when at least half of
 * these took longer than a second, at three times that are at least a minute apart, or when one commit has been in
 * progress for two minutes. It stays slow as long as at least a quarter of them did.
 */
export class CommitTimes {
  readonly #now: () => number;
  readonly #inProgress = new Set<Pick<Commit, 'began'>>();
  #ended: Commit[] = [];
  #slowSince: number | null = null;
  #listener: (ms: number) => void = () => undefined;

  /** @param now a monotonic clock, in ms */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Marks the beginning of a commit. @returns a function that marks its end, also if it failed */
  begin(): () => void {
    const began = this.#now();
    const commit = { began };
    this.#inProgress.add(commit);
    return () => {
      const now = this.#now();
      const duration = now - began;
      this.#inProgress.delete(commit);
      this.#ended = [...this.#ended, { began, duration }].slice(-MAX_COMMITS);
      this.#evaluate(now);
      this.#listener(duration);
    };
  }

  /** Calls `listener` with the duration of each commit that ends from now on, in ms. */
  onEnded(listener: (ms: number) => void): void {
    this.#listener = listener;
  }

  /** Summarizes the evaluated commits. A commit in progress counts with its age as soon as it is slow. */
  summary(): CommitSummary {
    const now = this.#now();
    const commits = this.#evaluate(now);
    const durations = commits.map(({ duration }) => duration).sort((a, b) => a - b);
    const percentile = (share: number) => durations[Math.ceil(durations.length * share) - 1] ?? 0;
    return {
      count: commits.length,
      slowCount: commits.filter(isSlow).length,
      median: percentile(0.5),
      p90: percentile(0.9),
      longest: durations.at(-1) ?? 0,
      slowFor: this.#slowSince === null ? null : now - this.#slowSince,
    };
  }

  /** Decides whether the store is slow. @returns the commits that decide this */
  #evaluate(now: number): readonly Commit[] {
    const inProgress = [...this.#inProgress].map(({ began }) => ({ began, duration: now - began }));
    const recent = this.#ended.filter(({ began, duration }) => began + duration >= now - WINDOW);
    const ended = this.#ended.slice(-Math.max(recent.length, MIN_COMMITS));
    const commits = [...ended, ...inProgress.filter(isSlow)];
    const slow = commits.filter(isSlow);
    const hangs = inProgress.some(({ duration }) => duration >= MAX_IN_PROGRESS);
    if (this.#slowSince !== null) {
      if (!hangs && slow.length < commits.length * STILL_SLOW_SHARE) this.#slowSince = null;
    } else if (hangs || (slow.length >= commits.length * SLOW_SHARE && occurrences(slow) >= MIN_OCCURRENCES)) {
      this.#slowSince = Math.min(...slow.map(({ began }) => began));
    }
    return commits;
  }
}

function isSlow({ duration }: Commit): boolean {
  return duration > SLOW_COMMIT;
}

/** At how many times, each at least {@link OCCURRENCE_INTERVAL} after the one before, commits began. */
function occurrences(commits: readonly Commit[]): number {
  let count = 0;
  let last = Number.NEGATIVE_INFINITY;
  for (const began of commits.map((commit) => commit.began).sort((a, b) => a - b)) {
    if (began - last < OCCURRENCE_INTERVAL) continue;
    count += 1;
    last = began;
  }
  return count;
}
