import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * What takes longest on an idle machine, longest first: parts of paths. Whatever is not named goes by what vitest knows
 * of it, which is nothing in a fresh clone.
 */
const LONG = [
  'release/package/',
  'release/machine/',
  'release/container/',
  'release/hub/',
  'release/mdns/',
  'release/oauth-servers/',
  'release/browser/',
  'release/chaos/',
  'release/site/',
  'release/',
  'chaos/',
  'reliability/',
  'hub/',
  'site/',
  'page/redirected-codes',
  'browser/',
  'cli/pair/',
  'project/',
  'systemd/',
];

/** Starts the files that take longest first, so that none of them is left over when all others are done. */
export class LongestFirstSequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => rankOf(a) - rankOf(b));
  }
}

function rankOf({ moduleId }: TestSpecification): number {
  const found = LONG.findIndex((name) => moduleId.startsWith(`${import.meta.dirname}/${name}`));
  return found === -1 ? LONG.length : found;
}
