import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * What takes longest on an idle machine, longest first: folders and files. Whatever is not named goes by what vitest knows
 * of it, which is nothing in a fresh clone.
 */
const LONG = [
  'reliability/ten-appliances',
  'machine/',
  'browser/first-hour',
  'emulator/examples',
  'chaos/kills',
  'browser/installer-page',
  'package/',
  'arm64/',
  'browser/pairing-on-page',
  'reliability/thousand-appliances',
  'chaos/',
  'reliability/',
  'project/setup',
  'hub/own-certificate',
  'browser/',
  'lan/testssl',
  'hub/demo',
  'hub/bad-input',
  'hub/declared',
  'emulator/fuzz',
  'hub/doctor/network',
  'lan/',
  'cli/',
];

/**
 * Starts the files that take longest first, so that none of them is left over when all others are done. Those that share a
 * process follow upon one another: it ends where the next file is to have one of its own.
 */
export class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => sharingOf(a) - sharingOf(b) || rankOf(a) - rankOf(b));
  }
}

/** 1 for a file that shares its process. */
function sharingOf({ project }: TestSpecification): number {
  return project.config.isolate ? 0 : 1;
}

function rankOf({ moduleId }: TestSpecification): number {
  const found = LONG.findIndex((name) => moduleId.startsWith(`${import.meta.dirname}/${name}`));
  return found === -1 ? LONG.length : found;
}
