import { describe, expect, test } from 'vitest';
import { CommitTimes } from '../../src/store/sqlite/commit-times.ts';
import { instantAt, sampleGrant } from '../core/samples.ts';
import { memoryStateFolder } from '../support/state-folder.ts';
import { addAppliance, HEATER, open, WALLBOX } from './test-store.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** Commits on a clock that only the test advances. */
function virtualCommits() {
  let now = 5000;
  const times = new CommitTimes(() => now);
  const commit = (duration: number) => {
    const end = times.begin();
    now += duration;
    end();
  };
  return {
    times,
    commit,
    pass(duration: number) {
      now += duration;
    },
    /** Commits of these durations, each after an interval. */
    commitEvery(interval: number, ...durations: number[]) {
      for (const duration of durations) {
        now += interval;
        commit(duration);
      }
    },
    get isSlow() {
      return times.summary().slowFor !== null;
    },
  };
}

describe('the summary of commits', () => {
  test('without a commit the summary is empty, and the store is not slow', () => {
    const { times } = virtualCommits();
    expect(times.summary()).toEqual({ count: 0, slowCount: 0, median: 0, p90: 0, longest: 0, slowFor: null });
  });

  test('the summary has the number of commits, the median, the 90th percentile and the longest duration', () => {
    const { times, commitEvery } = virtualCommits();
    commitEvery(SECOND, 100, 90, 80, 70, 60, 50, 40, 30, 20, 1001);
    expect(times.summary()).toEqual({ count: 10, slowCount: 1, median: 60, p90: 100, longest: 1001, slowFor: null });
  });

  test('the summary leaves out commits of more than 15 minutes ago, but keeps the last eight', () => {
    const { times, commitEvery, pass } = virtualCommits();
    commitEvery(SECOND, ...Array(20).fill(10));
    pass(14 * MINUTE);
    expect(times.summary().count).toBe(20);
    pass(2 * MINUTE);
    expect(times.summary().count).toBe(8);
    commitEvery(MINUTE, ...Array(12).fill(10));
    expect(times.summary().count).toBe(12);
  });

  test('the summary keeps the last 256 commits of a busy hub', () => {
    const { times, commitEvery } = virtualCommits();
    commitEvery(SECOND, 5000, ...Array(256).fill(10));
    expect(times.summary()).toMatchObject({ count: 256, longest: 10 });
  });

  test('commits may overlap, and one in progress is counted as soon as it is slow', () => {
    const { times, pass } = virtualCommits();
    const [first, second] = [times.begin(), times.begin()];
    pass(SECOND);
    second();
    expect(times.summary()).toMatchObject({ count: 1, slowCount: 0, longest: 1000 });
    pass(SECOND);
    expect(times.summary()).toMatchObject({ count: 2, slowCount: 1, longest: 2000 });
    first();
    expect(times.summary()).toMatchObject({ count: 2, slowCount: 1, longest: 2000 });
  });
});

describe('whether the store is slow', () => {
  test('the store is slow after the third slow commit, if each began at least a minute after the one before', () => {
    const commits = virtualCommits();
    commits.commitEvery(MINUTE, 1001, 1001);
    expect(commits.isSlow).toBe(false);
    commits.commitEvery(MINUTE, 1001);
    expect(commits.times.summary()).toMatchObject({ slowCount: 3, slowFor: 2 * MINUTE + 3 * 1001 });
  });

  test.each<[what: string, interval: number, durations: number[]]>([
    ['a burst within two minutes', 4 * SECOND, Array(14).fill(4000)],
    ['commits of a second', MINUTE, Array(20).fill(1000)],
    ['one slow commit in three', 30 * SECOND, Array(10).fill([2000, 10, 10]).flat()],
  ])('the store is not slow after %s', (_what, interval, durations) => {
    const commits = virtualCommits();
    commits.commitEvery(interval, ...durations);
    expect(commits.isSlow).toBe(false);
  });

  test('the store is slow while a commit has been in progress for two minutes, and not after it', () => {
    const commits = virtualCommits();
    commits.commitEvery(SECOND, ...Array(8).fill(10));
    const end = commits.times.begin();
    commits.pass(2 * MINUTE - 1);
    expect(commits.isSlow).toBe(false);
    commits.pass(1);
    expect(commits.times.summary().slowFor).toBe(2 * MINUTE);
    end();
    expect(commits.isSlow).toBe(false);
  });

  test('a store that was slow stays so while a quarter of its commits are slow, and keeps its beginning', () => {
    const commits = virtualCommits();
    commits.commitEvery(MINUTE, ...Array(6).fill(2000));
    const before = commits.times.summary().slowFor ?? 0;
    commits.commitEvery(MINUTE, 10, 10, 10, 10, 10, 10);
    expect(commits.times.summary()).toMatchObject({ count: 12, slowFor: before + 6 * MINUTE + 60 });
    commits.pass(HOUR);
    expect(commits.isSlow).toBe(true);
    commits.commitEvery(MINUTE, 10);
    expect(commits.times.summary()).toMatchObject({ count: 8, slowCount: 1, slowFor: null });
  });
});

describe('the commits of a store', () => {
  test('each write of the store is one commit, whatever it consists of, and reading is none', async () => {
    using folder = memoryStateFolder();
    using store = open(folder.path);
    await addAppliance(store, WALLBOX);
    const next = sampleGrant({ connection: WALLBOX.id, generation: 2 });
    await store.grants.replace(sampleGrant({ connection: WALLBOX.id, generation: 1 }));
    let count = 0;
    store.commitTimes.onEnded((ms) => {
      expect(ms).toBeGreaterThanOrEqual(0);
      count += 1;
    });
    const writes: readonly (() => Promise<unknown>)[] = [
      () => store.settings.save({ b: '1', c: '2' }),
      () => addAppliance(store, HEATER),
      () => store.grants.replace(next),
      () => store.grants.beginAttempt(next, { token: 'hash', at: instantAt(1) }),
    ];
    for (const write of writes) {
      const before = count;
      await write();
      expect(count - before, write.toString()).toBe(1);
    }
    const before = count;
    await store.settings.get('a');
    await store.grants.all();
    await store.pairings.all();
    expect(count).toBe(before);
  });

  test('a write that fails is a commit that has ended', async () => {
    using folder = memoryStateFolder();
    using store = open(folder.path);
    store[Symbol.dispose]();
    await expect(store.settings.save({ a: '1' })).rejects.toThrow('store');
    await expect(store.settings.save({ a: '1' })).rejects.toThrow('store');
    expect(store.commitTimes.summary().count).toBe(2);
  });
});
