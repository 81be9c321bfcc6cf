import { confirmedTimeAt, type Instant } from '../core/clock.ts';
import type { LanService, TokenResult } from '../core/lan-service.ts';
import { preferredLink } from '../core/pairings/pairing.ts';
import { sha256 } from '../system/secret-hash.ts';
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
const STORE_RETRY_SECONDS = 60;

/** Serves the home network: what the OAuth endpoints and the pages on it offer. */
export function createLanService(
  broker: Broker,
  { started, caFingerprint, tokenRequested }: LanServiceContext,
): LanService {
  const { appliances, grants, pairings, pairingBatches: rounds, deviceFlows, sessions, registrations, ready } = broker;
  const { clock } = broker.environment;
  const nameOf = (id: string) => appliances.byId(id)?.name ?? 'The appliance';

  return {
    findClient: (clientId) => appliances.byClientId(clientId),
    timeReadings: () =>
      broker.referenceClock.readings.flatMap((told) => {
        const [now, since] = [confirmedTimeAt(told, clock.now()), confirmedTimeAt(told, started)];
        return now === null || since === null ? [] : [{ now, startedAt: since }];
      }),
    confirmTime: () => broker.portalTimeProbe.confirm(),
    existedBeforeStart: ({ id }) => broker.previouslyKnown.has(id),
    recordAuthentication: ({ id }) => registrations.markAuthenticated(id),

    async issueToken({ id }, request) {
      const result = await broker.tokenIssuer.issue(id, request.scope, request);
      tokenRequested(id, result.kind);
      return result;
    },
    async revoke({ id }, token) {
      const end = await sessions.end(id, token);
      if (end === 'none') await grants.reportRejectedToken(id, token);
      return end === 'unwritten' ? { kind: 'unavailable', retryAfter: STORE_RETRY_SECONDS } : { kind: 'revoked' };
    },

    async beginDeviceFlow(appliance, scope) {
      await ready;
      return deviceFlows.begin(appliance, scope);
    },
    async pollDeviceFlow({ id }, deviceCode) {
      await ready;
      return deviceFlows.poll(id, deviceCode);
    },
    createSession: ({ id }, deviceCode) => sessions.create(id, sha256(deviceCode)),
    hasSession: ({ id }, refreshToken) => sessions.has(id, refreshToken),

    get caFingerprint() {
      return caFingerprint();
    },
    get isRegistrationOpen() {
      return registrations.remainingOpenMs > 0;
    },
    isInvite: (token) => registrations.isInvite(token),
    async register(metadata, token, from) {
      const registration = await registrations.register(metadata, token, from);
      broker.notices.scheduleCheck();
      return registration;
    },

    async findPairingByUserCode(userCode) {
      await ready;
      const pairing = deviceFlows.findByUserCode(userCode);
      return pairing && { pairing, appliance: nameOf(pairing.appliance) };
    },
    requestLoginLink: (userCode) => deviceFlows.openLink(userCode),
    async findPairingByShortKey(key) {
      await ready;
      const run = pairings.findByShortKey(key);
      if (run === undefined) return null;
      const { pairing, redirect } = run;
      const authorizeUrl = preferredLink(pairing.step, redirect)?.authorizeUrl ?? null;
      return { pairing, appliance: nameOf(pairing.appliance), authorizeUrl };
    },
    async receiveCallback(nonce, callback, { pass, ...browser }) {
      await ready;
      const pairing = await pairings.receiveCallback(nonce, callback, browser);
      if (pairing === null) return null;
      const code = callback.kind === 'code' ? callback.code : null;
      const login = code && pairings.get(pairing.id).confirmationStatus(code);
      return { pairing, appliance: nameOf(pairing.appliance), login, batch: rounds.forBrowser(nonce, code, pass) };
    },
    browserBinding: (pairing) => pairings.browserToken(pairing),
    async continueBatch(nonce, again, pass) {
      await ready;
      return rounds.continueInBrowser(nonce, again, pass);
    },
  };
}
