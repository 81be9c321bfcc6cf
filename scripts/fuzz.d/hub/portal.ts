// What the portal does to the hub while that is fuzzed, and what it sees of it.
import type { FaultOptions } from '../../../src/emulator/index.ts';
import { FuzzProblem } from '../batch.ts';
import { postForm } from './client.ts';
import type { FuzzedHub } from './fuzzed-hub.ts';

/** What the portal does, in turn; all kinds have had theirs after so many turns. */
const PORTAL_FAULTS: readonly FaultOptions[] = [
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
export async function disturbPortal(home: FuzzedHub, turn: number, met: () => Promise<void>): Promise<void> {
  const { emulator, doubter } = home;
  const trouble = PORTAL_FAULTS[turn % PORTAL_FAULTS.length];
  if (trouble === undefined) return;
  const form = { client_id: doubter.id, client_secret: doubter.secret };
  const ask = () => postForm(home, '/oauth/token', { ...form, grant_type: 'client_credentials' });
  emulator.addFault(trouble);
  try {
    const { body } = await ask();
    await postForm(home, '/oauth/revoke', { ...form, token: String(body['access_token'] ?? 'none') });
    const [told] = await Promise.all([ask(), met()]);
    const details = JSON.stringify({ turn, trouble, told });
    const honest = told.status === 200 || (told.status === 503 && (told.retryAfter ?? 0) > 0);
    if (!honest) throw new FuzzProblem(`a portal in trouble made the hub answer ${told.status}`, details);
    if (told.status === 200 && told.body['access_token'] === body['access_token']) {
      throw new FuzzProblem('a revoked token was handed out', details);
    }
  } finally {
    await emulator.clearFaults();
  }
}

/** Requests of the good flows of one part, and what may come with them by the attacker's own links. */
const MAX_PORTAL_REQUESTS_PER_PART = 60;
/** Polls of links that are open: a few appliances, three links each, every five seconds. */
const MAX_PORTAL_REQUESTS_PER_SECOND = 5;

/**
 * Counts what the portal gets in a part: an attacker at home must not be able to storm it.
 * @returns what judges it at the end, and throws a Problem
 */
export function limitPortalRequests({ emulator, portalRequests }: FuzzedHub): () => void {
  const all = () => Object.values(portalRequests()).reduce((sum, count) => sum + count, 0);
  const [before, since] = [all(), performance.now()];
  return () => {
    const seconds = (performance.now() - since) / 1000;
    const got = all() - before;
    if (got > MAX_PORTAL_REQUESTS_PER_PART + MAX_PORTAL_REQUESTS_PER_SECOND * seconds) {
      const each = JSON.stringify(portalRequests());
      throw new FuzzProblem('the portal is stormed', `${got} requests in ${seconds.toFixed(1)} s; all: ${each}`);
    }
    const { reusedRefreshTokens, repeatedCodes, overlappingRefreshes, failedAuthentications } = emulator.findings();
    for (const one of [...reusedRefreshTokens, ...repeatedCodes, ...overlappingRefreshes, ...failedAuthentications]) {
      throw new FuzzProblem('the portal finds fault with the hub', one.message);
    }
  };
}
