// Between the parts of a run: the portal has trouble, one kind at a time, and requests meet it.
import type { FaultOptions } from '../../../src/emulator/index.ts';
import type { Findings } from '../findings.ts';
import { postForm } from './client.ts';
import type { FuzzedHome } from './home.ts';

/** What the portal does, in turn; all kinds have had theirs after so many turns. */
const TROUBLES: readonly FaultOptions[] = [
  { kind: 'status', endpoint: 'token', status: 503, times: null, headers: { 'retry-after': '2' } },
  { kind: 'reset_before', endpoint: '*', times: null },
  { kind: 'status', endpoint: '*', status: 429, times: null },
  { kind: 'not_json', endpoint: '*', times: null },
  { kind: 'status', endpoint: 'config', status: 500, times: null },
];

/**
 * Gives the portal one kind of trouble while the appliance that is to lose its tokens loses one, and while requests come.
 * @param met sends requests that meet it, and judges their answers
 */
export async function hubBout(
  home: FuzzedHome,
  turn: number,
  findings: Findings,
  met: () => Promise<void>,
): Promise<void> {
  const { emulator, doubter } = home;
  const trouble = TROUBLES[turn % TROUBLES.length];
  if (trouble === undefined) return;
  const form = { client_id: doubter.id, client_secret: doubter.secret };
  const ask = () => postForm(home, '/oauth/token', { ...form, grant_type: 'client_credentials' });
  emulator.addFault(trouble);
  try {
    const { body } = await ask();
    await postForm(home, '/oauth/revoke', { ...form, token: String(body['access_token'] ?? 'none') });
    const [told] = await Promise.all([ask(), met()]);
    const honest = told.status === 200 || (told.status === 503 && (told.retryAfter ?? 0) > 0);
    if (!honest)
      findings.problem(
        `a portal in trouble made the hub answer ${told.status}`,
        JSON.stringify({ turn, trouble, told }),
      );
    if (told.status === 200 && told.body['access_token'] === body['access_token']) {
      findings.problem('a revoked token was handed out', JSON.stringify({ turn, trouble }));
    }
  } finally {
    await emulator.clearFaults();
  }
}
