import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';

/** Issues a certificate in a process of its own, and prints what that loads into the main thread. */
const PROGRAM = `
  import { createRequire } from 'node:module';
  import { issueLeafInThread } from '${new URL('../../../src/system/x509/issue-in-thread.ts', import.meta.url)}';
  const authority = JSON.parse(process.env.AUTHORITY);
  const leaf = await issueLeafInThread(authority, { names: ['hub.local'], addresses: ['::1'], now: 0 });
  const loaded = Object.keys(createRequire(import.meta.url).cache).filter((file) => file.includes('@peculiar'));
  console.log(JSON.stringify({ leaf, loaded }));
`;

it('a certificate is issued in a thread, without loading what that needs into the main thread', async () => {
  const { createAuthority } = await import('../../../src/system/x509/issuing.ts');
  const authority = await createAuthority();
  const args = ['--input-type=module', '--eval', PROGRAM];
  const env = { AUTHORITY: JSON.stringify(authority) };
  const { stdout, stderr } = spawnSync(process.execPath, args, { env, encoding: 'utf8' });
  expect(stderr).toBe('');
  const { leaf, loaded } = JSON.parse(stdout);
  expect(leaf.certificate.endsWith(authority.certificate)).toBe(true);
  expect(leaf.omitted).toEqual([]);
  expect(loaded).toEqual([]);
});
