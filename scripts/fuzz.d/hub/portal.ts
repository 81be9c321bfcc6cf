// Faults of the portal while the hub is fuzzed, and checks of the requests that the portal gets.
import type { FaultOptions } from '../../../src/emulator/index.ts';
import { FuzzProblem } from '../batch.ts';
import { postForm } from './client.ts';
import type { FuzzedHub } from './fuzzed-hub.ts';

/** The faults of the portal, one after another. */
const PORTAL_FAULTS: readonly FaultOptions[] = [
  { kind: 'status', endpoint: 'token', status: 503, times: null, headers: { 'retry-after': '2' } },
  { kind: 'reset_before', endpoint: '*', times: null },
  { kind: 'status', endpoint: '*', status: 429, times: null },
  { kind: 'not_json', endpoint: '*', times: null },
  { kind: 'status', endpoint: 'config', status: 500, times: null },
];

/**
 * Gives the portal one fault while an appliance revokes its token, and while requests are sent.
 * @param sendRequests sends requests during the fault, and checks their responses
 */
export async function disturbPortal(home: FuzzedHub, turn: number, sendRequests: () => Promise<void>): Promise<void> {
  const { emulator, doubter } = home;
  const fault = PORTAL_FAULTS[turn % PORTAL_FAULTS.length];
  if (fault === undefined) return;
  const form = { client_id: doubter.id, client_secret: doubter.secret };
  const requestToken = () => postForm(home, '/oauth/token', { ...form, grant_type: 'client_credentials' });
  emulator.addFault(fault);
  try {
    const { body } = await requestToken();
    await postForm(home, '/oauth/revoke', { ...form, token: String(body['access_token'] ?? 'none') });
    const [response] = await Promise.all([requestToken(), sendRequests()]);
    const details = JSON.stringify({ turn, fault, response });
    const isExpected = response.status === 200 || (response.status === 503 && (response.retryAfter ?? 0) > 0);
    if (!isExpected) throw new FuzzProblem(`with a faulty portal the hub responded ${response.status}`, details);
    if (response.status === 200 && response.body['access_token'] === body['access_token']) {
      throw new FuzzProblem('a revoked token was issued', details);
    }
  } finally {
    await emulator.clearFaults();
  }
}

/** Requests for the good flows of one part, and for the attacker's own links. */
const MAX_PORTAL_REQUESTS_PER_PART = 60;
/** Polls for open links: a few appliances, three links each, every five seconds. */
const MAX_PORTAL_REQUESTS_PER_SECOND = 5;

/**
 * Counts the portal's requests in a part: an attacker on the LAN must not be able to make the hub flood the portal.
 * @returns a function that checks them at the end, and throws a FuzzProblem
 */
export function limitPortalRequests({ emulator, portalRequests }: FuzzedHub): () => void {
  const all = () => Object.values(portalRequests()).reduce((sum, count) => sum + count, 0);
  const [before, since] = [all(), performance.now()];
  return () => {
    const seconds = (performance.now() - since) / 1000;
    const got = all() - before;
    if (got > MAX_PORTAL_REQUESTS_PER_PART + MAX_PORTAL_REQUESTS_PER_SECOND * seconds) {
      const each = JSON.stringify(portalRequests());
      throw new FuzzProblem('the hub floods the portal', `${got} requests in ${seconds.toFixed(1)} s; all: ${each}`);
    }
    const { reusedRefreshTokens, repeatedCodes, overlappingRefreshes, failedAuthentications } = emulator.findings();
    for (const one of [...reusedRefreshTokens, ...repeatedCodes, ...overlappingRefreshes, ...failedAuthentications]) {
      throw new FuzzProblem('the emulator reports an error of the hub', one.message);
    }
  };
}
