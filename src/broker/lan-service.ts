import { type Instant, trueTime } from '../core/clock.ts';
import type { LanService, TokenResult } from '../core/lan-service.ts';
import { linkFor } from '../core/pairings/pairing.ts';
import { sha256 } from '../system/compare.ts';
import type { Broker } from './open-broker.ts';

/** What of the hub appliances see beside the broker. */
interface LanServiceContext {
  /** When the daemon was started. */
  readonly started: Instant;
  /** The pin of the certificate that appliances pin, as it is now. */
  caFingerprint(): string;
  /** Counts what appliances were answered. */
  tokenRequested(appliance: string, kind: TokenResult['kind']): void;
}

/** How long an appliance is to wait while the hub can't write its store, in seconds. */
const STORE_RETRY = 60;

/** Serves the home network: what the OAuth endpoints and the pages on it offer. */
export function openLanService(
  broker: Broker,
  { started, caFingerprint, tokenRequested }: LanServiceContext,
): LanService {
  const { appliances, grants, pairings, rounds, deviceFlows, sessions, registrations, ready } = broker;
  const { clock } = broker.environment;
  const nameOf = (id: string) => appliances.byId(id)?.name ?? 'The appliance';

  return {
    client: (clientId) => appliances.byClientId(clientId),
    times: () =>
      broker.portalClock.told.flatMap((told) => {
        const [now, since] = [trueTime(told, clock.now()), trueTime(told, started)];
        return now === null || since === null ? [] : [{ now, started: since }];
      }),
    confirmTime: () => broker.portalTimeProbe.confirm(),
    knewBefore: ({ id }) => broker.knownBefore.has(id),
    heard: ({ id }) => registrations.heard(id),

    async issueToken({ id }, request) {
      const result = await broker.tokenIssuer.issue(id, request.scope, request);
      tokenRequested(id, result.kind);
      return result;
    },
    async revoke({ id }, token) {
      const end = await sessions.end(id, token);
      if (end === 'none') await grants.distrust(id, token);
      return end === 'unwritten' ? { kind: 'unavailable', retryAfter: STORE_RETRY } : { kind: 'revoked' };
    },

    async beginDeviceFlow(appliance, scope) {
      await ready;
      return deviceFlows.begin(appliance, scope);
    },
    async pollDeviceFlow({ id }, deviceCode) {
      await ready;
      return deviceFlows.poll(id, deviceCode);
    },
    openSession: ({ id }, deviceCode) => sessions.begin(id, sha256(deviceCode)),
    hasSession: ({ id }, refreshToken) => sessions.has(id, refreshToken),

    get caFingerprint() {
      return caFingerprint();
    },
    get isRegistrationOpen() {
      return registrations.openFor > 0;
    },
    isInvite: (token) => registrations.isInvite(token),
    async register(metadata, token, from) {
      const registration = await registrations.register(metadata, token, from);
      broker.notices.changed();
      return registration;
    },

    async pairingByUserCode(userCode) {
      await ready;
      const pairing = deviceFlows.byUserCode(userCode);
      return pairing && { pairing, appliance: nameOf(pairing.appliance) };
    },
    openLink: (userCode) => deviceFlows.openLink(userCode),
    async pairingByShortKey(key) {
      await ready;
      const run = pairings.byShortKey(key);
      if (run === undefined) return null;
      const { pairing, redirect } = run;
      const authorizeUrl = linkFor(pairing.step, redirect)?.authorizeUrl ?? null;
      return { pairing, appliance: nameOf(pairing.appliance), authorizeUrl };
    },
    async receiveCallback(nonce, callback, { pass, ...browser }) {
      await ready;
      const pairing = await pairings.receive(nonce, callback, browser);
      if (pairing === null) return null;
      const code = callback.kind === 'code' ? callback.code : null;
      const login = code && pairings.get(pairing.id).standingOf(code);
      return { pairing, appliance: nameOf(pairing.appliance), login, round: rounds.forBrowser(nonce, code, pass) };
    },
    sentMark: (pairing) => pairings.sentMark(pairing),
    async goOnInRound(nonce, again, pass) {
      await ready;
      return rounds.goOn(nonce, again, pass);
    },
  };
}
