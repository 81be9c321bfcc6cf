/**
 * Sends refreshes to an emulator with the hub's own HTTP client, one after another, and writes when the hub asked
 * whether it may send each: a line with nanoseconds (CLOCK_MONOTONIC). Arguments: the emulator's origin, its CA file,
 * how many.
 */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { MAIN } from '../../support/program.ts';

const { postForm, TOKEN_REQUEST_LIMITS } = (await import(
  join(dirname(MAIN), 'portal/http.js')
)) as typeof import('../../../src/portal/http.ts');
const [origin = '', caFile = '', count = '0'] = process.argv.slice(2);
const ca = [readFileSync(caFile, 'utf8')];
const checks: bigint[] = [];
const maySend = () => {
  checks.push(process.hrtime.bigint());
  return true;
};
for (let sent = 0; sent < Number(count); sent++) {
  const form = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: 'x'.repeat(80) });
  const request = { url: new URL(`${origin}/oauth2/token`), form };
  const outcome = await postForm(request, ca, { ...TOKEN_REQUEST_LIMITS, maySend });
  if (outcome.kind !== 'answer') throw new Error(`the emulator did not answer: ${outcome.detail}`);
}
console.log(checks.join('\n'));
