import type { PortalOperation } from '../clouds/odd-answers.ts';
import { CLOCK_FAILURE_OFFSET, CLOCK_WARNING_OFFSET, formatDuration, rfc3339 } from '../core/clock.ts';
import { type CredentialLocation, describeCredentials, howToApplyCorrection } from '../core/portals/identity.ts';
import type { InspectedPortal, PortalCheck } from '../core/portals/portal-status.ts';
import type { TokenOutcome } from '../core/portals/token-outcome.ts';
import type { PortalRoute, RequestOutcome } from './http.ts';
import { describeProbe, type ProbedAddress, probeOrigins } from './probe.ts';
import { type ResponseRules, readTokenEndpointResponse, toTokenOutcome } from './responses.ts';
import { describeError, describeRedirect } from './token-outcome.ts';
import { parseErrorCode } from './token-response.ts';

/** A refresh token and an authorization code that no portal has issued. */
export const MADE_UP = 'not-a-token-of-this-portal';
/** A client secret that no portal has issued. */
export const WRONG_SECRET = 'not-the-secret-of-this-client';

/** What it means if a portal has no revocation endpoint, as part of a sentence. */
export const NO_REVOCATION = 'none to revoke a login: "latchkey unpair" ends it only at the hub';

/** The answer to a request of a check. */
export interface ProbeAnswer {
  readonly kind: TokenOutcome['kind'];
  /** As part of a sentence. */
  readonly answer: string;
  /** A redirect, as part of a sentence that says what to correct; left out if it is none. */
  readonly redirect?: string;
  /** Whether something else than the endpoint has answered. */
  readonly isOther?: boolean;
}

/**
 * Sends one request that yields nothing: as the hub, or as a wrong client, which differs from the hub in its secret or
 * key, or without one in its client ID.
 */
export type ClientProbe = (client: 'hub' | 'wrong') => Promise<ProbeAnswer>;

/**
 * The answer to a token request.
 * @param key the configuration key that names the endpoint
 */
export function probeAnswer(
  outcome: RequestOutcome,
  operation: PortalOperation,
  rules: ResponseRules,
  key: string,
): ProbeAnswer {
  if (outcome.kind !== 'answer') return { kind: 'not_sent', answer: outcome.detail };
  const { response } = outcome;
  const { status, redirect } = response;
  const { kind } = toTokenOutcome(readTokenEndpointResponse(response, operation, rules));
  return {
    kind,
    answer: describeError(status, parseErrorCode(response)),
    isOther: isOtherEndpoint(status) || (kind === 'ambiguous' && status < 300),
    ...(redirect !== undefined && { redirect: describeRedirect(status, redirect, key) }),
  };
}

/** Whether an endpoint that takes POST requests does not answer so: there is none, or it is somewhere else. */
export function isOtherEndpoint(status: number): boolean {
  return status === 404 || status === 405 || (status >= 300 && status < 400);
}

/** The portal itself has answered, and does not blame the client. */
const TELLING: readonly TokenOutcome['kind'][] = ['granted', 'refused', 'rejected'];

/**
 * Whether a portal accepts the hub as its client. Some portals look at the token before the client, so their error says
 * nothing: it does only if a wrong client gets another answer.
 * @param tokenKey the configuration key that names the token endpoint
 */
export async function checkClient(
  probes: readonly ClientProbe[],
  location: CredentialLocation,
  tokenKey: 'frontend_url' | 'token_endpoint',
): Promise<PortalCheck> {
  const answers: { readonly probe: ClientProbe; readonly own: ProbeAnswer }[] = [];
  for (const probe of probes) answers.push({ probe, own: await probe('hub') });
  const rejection = answers.find(({ own }) => own.kind === 'misconfigured');
  if (rejection !== undefined) return clientRejected(rejection.own.answer, location);
  const redirect = answers.find(({ own }) => own.redirect !== undefined)?.own.redirect;
  if (redirect !== undefined)
    return {
      name: 'client',
      result: 'fail',
      detail: `the token endpoint answers with ${redirect}`,
      wrongKey: tokenKey,
    };
  const telling = answers.filter(({ own }) => TELLING.includes(own.kind));
  for (const { probe, own } of telling) {
    const wrong = await probe('wrong');
    const isOfPortal = [...TELLING, 'misconfigured'].includes(wrong.kind) || wrong.answer === 'HTTP 401';
    if (isOfPortal && wrong.answer !== own.answer)
      return clientAccepted(`${own.answer}, and ${wrong.answer} for a wrong client`);
  }
  const { own } = telling[0] ?? answers[0] ?? { own: null };
  if (own === null) return clientUnchecked('the portal has no token endpoint');
  const isOther = answers.every((answer) => answer.own.isOther);
  return { ...clientUnchecked(whyUnknown(own)), ...(isOther && { wrongKey: tokenKey }) };
}

/** What the answer to a request as the hub says of it, see `InspectedPortal.probeClient`. */
export function toAcceptance({ kind }: ProbeAnswer): Awaited<ReturnType<InspectedPortal['probeClient']>> {
  if (kind === 'misconfigured') return 'rejected';
  return TELLING.includes(kind) ? 'accepted' : 'no_answer';
}

function whyUnknown({ kind, answer }: ProbeAnswer): string {
  switch (kind) {
    case 'not_sent':
      return `the token endpoint did not respond (${answer})`;
    case 'deferred':
      return `the portal asked to wait (${answer}); try again later`;
    case 'ambiguous':
      return `the token endpoint has a problem (${answer}); try again later`;
    case 'blocked':
      return answer === 'HTTP 401'
        ? 'the token endpoint responds with HTTP 401 and no error code, so the client secret may be wrong; only a login shows it'
        : `something before the portal refuses the hub, or the address of the token endpoint is wrong (${answer})`;
    default:
      return `it answers a wrong client in the same way (${answer}); only a login shows it`;
  }
}

/** @param answer what the portal responded */
function clientAccepted(answer: string): PortalCheck {
  return { name: 'client', result: 'ok', detail: `the portal accepts the hub as its client (${answer})` };
}

/** @param answer what the portal responded */
export function clientRejected(answer: string, location: CredentialLocation): PortalCheck {
  const detail = `the portal does not accept the hub as its client (${answer}): correct ${describeCredentials(location, 'or')}, and ${howToApplyCorrection(location)}`;
  return { name: 'client', result: 'fail', detail, wrongKey: 'client_id' };
}

/** @param why as the end of a sentence */
export function clientUnchecked(why: string): PortalCheck {
  return { name: 'client', result: 'warn', detail: `it is not known whether the portal accepts the hub: ${why}` };
}

interface ConnectionContext {
  readonly route: PortalRoute;
  /** The hub's clock, in ms since 1970. */
  readonly wall: () => number;
}

/** How long a person waits for the probes, in ms. */
const TIMEOUT = 15_000;

/** The keys of addresses that can be named as wrong. */
const WRONG_KEYS = ['base_url', 'frontend_url', 'issuer', 'token_endpoint'] as const;

/**
 * Probes the origins of these addresses, and compares the hub's clock with that of the first one that reports its time.
 * If one answers, the internet connection works, so the address of one that can't be reached is wrong.
 */
export async function checkConnections(
  addresses: readonly ProbedAddress[],
  { route, wall }: ConnectionContext,
): Promise<PortalCheck[]> {
  const probes = await probeOrigins(addresses, { route, wall, signal: AbortSignal.timeout(TIMEOUT) });
  const isOnline = probes.some(({ outcome }) => outcome.kind === 'answered');
  const connections = probes.map((probe): PortalCheck => {
    const isWrong = isOnline && probe.outcome.kind !== 'answered';
    const wrongKey = WRONG_KEYS.find((key) => isWrong && probe.key.endsWith(`.${key}`));
    return { name: 'tls', ...describeProbe(probe, wall()), ...(wrongKey !== undefined && { wrongKey }) };
  });
  const times = probes.flatMap(({ origin, outcome }) =>
    outcome.kind === 'answered' && outcome.clockAheadMs !== null
      ? [{ origin, ahead: outcome.clockAheadMs, now: wall() }]
      : [],
  );
  return [...connections, compareClocks(times[0])];
}

function compareClocks(
  compared: { readonly origin: string; readonly ahead: number; readonly now: number } | undefined,
): PortalCheck {
  if (compared === undefined)
    return { name: 'clock', result: 'warn', detail: 'the portal did not report its time: see "latchkey doctor"' };
  const { origin, ahead, now } = compared;
  const off = Math.abs(ahead);
  if (off <= CLOCK_WARNING_OFFSET)
    return { name: 'clock', result: 'ok', detail: `the clock of this machine agrees with ${origin}` };
  const by = `${formatDuration(off / 1000)} ${ahead > 0 ? 'ahead of' : 'behind'} ${origin}`;
  return {
    name: 'clock',
    result: off > CLOCK_FAILURE_OFFSET ? 'fail' : 'warn',
    detail: `the clock of this machine says ${rfc3339(now)}, ${by}: "latchkey doctor" says how to correct it`,
  };
}
