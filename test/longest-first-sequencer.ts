import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * What takes longest on an idle machine, longest first: folders and files. Whatever is not named goes by what vitest knows
 * of it, which is nothing in a fresh clone.
 */
const LONG = [
  'machine/late-network',
  'browser/pairing-on-page',
  'browser/installer-page',
  'hub/claimed-name',
  'machine/service',
  'systemd/daemon',
  'browser/first-hour',
  'package/',
  'machine/',
  'oauth-servers/hub-',
  'chaos/',
  'hub/demo',
  'browser/',
  'mdns/conflicts',
  'lan/refresh-token',
  'cli/pair/pair-all',
  'emulator/examples',
  'doctor/network',
  'hub/custom-certificate',
  'reliability/',
  'hub/several-networks',
  'systemd/reload',
  'hub/ca-rotation',
  'hub/network-loss',
  'arm64/',
  'bench/small',
  'project/',
  'page/redirected-codes',
  'cli/pair/pair.test',
  'hub/',
  'lan/',
  'mdns/',
  'oauth-servers/',
  'cli/',
  'emulator/',
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
