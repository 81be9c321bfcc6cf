import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder of this test's own, closed to others, that goes away with it. */
export function stateFolder(): Disposable & { readonly path: string } {
  const path = mkdtempSync(join(tmpdir(), 'latchkey-state-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}
