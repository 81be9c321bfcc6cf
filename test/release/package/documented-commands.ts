import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { Machine } from '../../support/machine.ts';

/** A page of the documentation. @param name its path below docs/ */
export function readPage(name: string): string {
  return readFileSync(join(import.meta.dirname, '../../../docs', name), 'utf8');
}

/** The commands (```sh) below a heading of a page, one string per block. */
export function shellBlocks(page: string, heading: string): string[] {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`));
  const found = [...(section ?? '').matchAll(/^ *```sh\n([\s\S]*?)^ *```$/gm)].map(([, block]) => block ?? '');
  expect(found, heading).not.toEqual([]);
  return found;
}

const SUDO = `#!/bin/sh
[ "$1" = -u ] || exec "$@"
user=$2
shift 2
exec runuser -u "$user" -- "$@"
`;

/** Makes sudo and apt on a machine run without a prompt, as no person answers them. */
export async function promptForNothing(machine: Machine): Promise<void> {
  await machine.write('/usr/bin/sudo', SUDO, '755');
  await machine.write('/etc/apt/apt.conf.d/yes', 'APT::Get::Assume-Yes "true";\n');
}
