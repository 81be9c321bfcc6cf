import { confirmedTimeAt, type Instant } from '../core/clock.ts';
import type { LanService, TokenResult } from '../core/lan-service.ts';
import { preferredLink } from '../core/pairings/pairing.ts';
import { sha256 } from '../system/secret-hash.ts';
import type { Broker } from './open-broker.ts';

/** What the LAN service needs besides the broker. */
interface LanServiceContext {
  /** When the daemon was started. */
  readonly started: Instant;
  /** The current CA pin. */
  caFingerprint(): string;
  /** Counts the results of token requests. */
  tokenRequested(appliance: string, kind: TokenResult['kind']): void;
}

/** How long an appliance waits before it retries while the store can't be written, in seconds. */
const STORE_RETRY_SECONDS = 60;

/** Creates the service behind the OAuth endpoints and the pages on the LAN. */
export function createLanService(
  broker: Broker,
  { started, caFingerprint, tokenRequested }: LanServiceContext,
): LanService {
  const { appliances, grants, pairings, pairingBatches, deviceFlows, sessions, registrations, ready } = broker;
  const { clock } = broker.environment;
  const nameOf = (id: string) => appliances.byId(id)?.name ?? 'The appliance';

  return {
    findClient: (clientId) => appliances.byClientId(clientId),
    timeReadings: () =>
      broker.referenceClock.readings.flatMap((reading) => {
        const [now, since] = [confirmedTimeAt(reading, clock.now()), confirmedTimeAt(reading, started)];
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
    async receiveCallback(nonce, callback, { batchToken, ...browser }) {
      await ready;
      const pairing = await pairings.receiveCallback(nonce, callback, browser);
      if (pairing === null) return null;
      const code = callback.kind === 'code' ? callback.code : null;
      const login = code && pairings.get(pairing.id).confirmationStatus(code);
      return {
        pairing,
        appliance: nameOf(pairing.appliance),
        login,
        batch: pairingBatches.forBrowser(nonce, code, batchToken),
      };
    },
    browserToken: (pairing) => pairings.browserToken(pairing),
    async continueBatch(nonce, retry, batchToken) {
      await ready;
      return pairingBatches.continueInBrowser(nonce, retry, batchToken);
    },
  };
}
