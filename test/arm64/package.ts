import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const TEST_DEB = join(import.meta.dirname, '../../scripts/test-deb');

/** The arm64 package of this tree, built once for the same sources. @returns its path */
export async function arm64Package(): Promise<string> {
  return (await promisify(execFile)(TEST_DEB, ['--arm64'], { timeout: 200_000 })).stdout.trim();
}
